"""Rights: who may do what on which resource; and the security of the broker for plugins that have clients of their own.

A plugin brings authorizers (`leafcuttr_register_authorizers`); `lc.authorizer` names the one that the broker uses.
`Broker.security` says what clients may do, whose credentials these are, and gives a broker that acts for a client: what
a plugin does without it, it does as the broker.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from leafcuttr_sdk._described import described
from leafcuttr_sdk.errors import (
    AuthorizationFailed,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from leafcuttr_sdk.principals import Principal

if TYPE_CHECKING:
    from leafcuttr_sdk.authentication import Authenticated, Credentials, Refused

B_co = TypeVar("B_co", covariant=True)


class Operation(StrEnum):
    """Kafka's `AclOperation`."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"

    __hash__ = str.__hash__


class ResourceType(StrEnum):
    """Kafka's `ResourceType`."""

    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"
    USER = "USER"

    __hash__ = str.__hash__


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of the type CLUSTER."""
LOCALHOST: Final = "127.0.0.1"


@described
class Resource(NamedTuple):
    """What something is done to."""

    type: ResourceType
    name: str | None
    """None: on any one of the type, whichever. Producers that are idempotent need WRITE on some topic (KIP-679)."""


@described
class Requester(NamedTuple):
    """A client, as far as rights go."""

    principal: Principal
    host: str
    """Its IP address."""
    listener: str
    """Where it came in: the name of a listener of Kafka's protocol; `IN_PROCESS` for the client of a plugin."""


class Authorizer(Protocol):
    """An authorizer that has been made. `leafcuttr_sdk.testing.check_authorizer` tests one against this contract."""

    def verdict(self, requester: Requester, operation: Operation, resource: Resource) -> bool | None:
        """Whether the client may do this. None: this authorizer has no opinion; then the ACLs decide if
        `authorizer.class.name` names Kafka's authorizer, and otherwise it is denied.

        Called on the loop, in the middle of a request: it answers at once, from memory. The same question gets the same
        answer until `changed` is called, and need not come again. One that raises, or returns something else, denies.
        """
        ...


@described
class AuthorizerSpec(NamedTuple):
    """An authorizer by its name: what `leafcuttr_register_authorizers` returns."""

    name: str
    """Unique among all authorizers; `lc.authorizer` names it."""
    summary: str
    make: Callable[[Any, Callable[[], None]], Authorizer]
    """Makes it, where `lc.authorizer` names it, before any client is served. It gets the plugin's `Broker`, and
    `changed`, to be called on the loop after each change of what `verdict` answers. It may raise PluginError with one
    line, which ends the start."""


class ClientQuota(Protocol):
    """What is left to a client of its quotas (KIP-13); shared by all clients that have the quota together."""

    def produced(self, size: int) -> None:
        """Count bytes that it has sent. A `Broker` that acts for a client counts by itself."""
        ...

    def consumed(self, size: int) -> None:
        """Count bytes that it was sent. A `Broker` that acts for a client counts what it reads."""
        ...

    @property
    def is_of_time(self) -> bool:
        """Whether the client may have a part only of the event loop's time: `request_percentage`."""
        ...

    def spent(self, seconds: float) -> None:
        """The event loop has worked so long for it."""
        ...

    def wait_s(self) -> float:
        """For how long it is to be held back, in seconds; 0: not at all."""
        ...


class Security(Protocol[B_co]):
    """`Broker.security`, a `Security[Broker]`: principals and rights, for plugins that have clients of their own."""

    @property
    def authorizes(self) -> bool:
        """Whether there is an authorizer. Without one everything is allowed."""
        ...

    @property
    def version(self) -> int:
        """Grows with each change of what `allowed` answers: an answer may be remembered until then."""
        ...

    def allowed(
        self,
        principal: Principal,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        host: str = LOCALHOST,
        quietly: bool = False,
    ) -> bool:
        """Whether a client may do this. The authorizer's answer is remembered, and a denial is written to the audit log
        unless it is asked `quietly`, as for a list that leaves out what may not be seen."""
        ...

    def check(
        self,
        principal: Principal,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        host: str = LOCALHOST,
    ) -> None:
        """Raise AuthorizationFailed, which says what is missing, if it is not `allowed`."""
        ...

    async def authenticate(self, credentials: "Credentials") -> "Authenticated | Refused":
        """Whose credentials these are, for the broker itself: a name and password of its users (those that SCRAM and
        PLAIN know), a token as OAUTHBEARER takes it, or a certificate (`ssl.principal.mapping.rules`). A password is
        checked in a worker, and once it was right by a keyed hash. The authenticator `broker`, which every
        `<prefix>.authenticators` may name, answers so. It raises nothing."""
        ...

    def acting_for(
        self, principal: Principal, *, host: str = LOCALHOST, client_id: str | None = None
    ) -> B_co:
        """The broker, for this client: what it produces, fetches, commits, creates and so on is authorized as a request
        of Kafka's protocol would be, and counts for its quotas. What it may not do is an AuthorizationFailed; lists
        leave out what it may not see. Subjects of `schemas` are topics of ACLs (`subject_topic`); a schema is found by
        its id only in a subject that the client may read, and all functions of `schemas` belong to the loop's thread.

        Settings, listeners, workers, metrics and clusters of others are the plugin's all the same. A consumer or a
        producer of it is that client's to its end."""
        ...

    def quota(self, principal: Principal, client_id: str | None = None) -> "ClientQuota | None":
        """What holds for a client now; None: no quota does. It is cheap where there are none."""
        ...

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called on the loop after each change of users, tokens, rights or quotas: then log-ins may hold no
        longer (`Authenticated.still_holds`), and `version` and quotas may be others. Returns what ends that."""
        ...


_FAILURES: Final[dict[ResourceType, type[AuthorizationFailed]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
}


def subject_topic(subject: str) -> str:
    """The name under which ACLs of topics have a subject of the schema registry. `/` is in no topic of Kafka, so it is
    never that of a real one."""
    return f"subject/{subject}"


def denied(
    principal: Principal, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
) -> AuthorizationFailed:
    """The error of a client that lacks this right: `User:alice may not WRITE topic orders`."""
    kind = resource_type.value.lower().replace("_", " ")
    what = "the cluster" if resource_type is ResourceType.CLUSTER else f"{kind} {name}"
    failed = _FAILURES.get(resource_type, ClusterAuthorizationFailed)(
        f"{principal} may not {operation} {what}"
    )
    failed.operation, failed.resource_type, failed.resource_name = operation.value, resource_type.value, name
    return failed
