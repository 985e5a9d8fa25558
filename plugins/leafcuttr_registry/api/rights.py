"""What each endpoint needs where the broker has an authorizer. A subject is the topic `subject/<name>`: no topic of
Kafka has a `/` in its name, so that Kafka's tools give rights on subjects. What is about all subjects needs a right on
the cluster. Lists leave out what the client may not see.

`NEEDS` is the table; the page of the registry is compared with it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from leafcuttr_registry.api.endpoints import Api
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects.names import DEFAULT, beside, context_of, normalized, qualified
from leafcuttr_registry.subjects.refusals import Incompatible, Refusal
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.front import Handler
from leafcuttr_sdk.web.routes import Routes

T = TypeVar("T")


class Need(NamedTuple):
    """One right. `on` is `subject`, its alias if it has one; `scope`, a subject or a context by its name, or the
    cluster without one; or `cluster`."""

    operation: str
    on: str


_OPEN: Final[None] = None
_READ: Final = Need("READ", "subject")
_WRITE: Final = Need("WRITE", "subject")
_DELETE: Final = Need("DELETE", "subject")
_CONFIGS: Final = Need("DESCRIBE_CONFIGS", "scope")
_ALTER_CONFIGS: Final = Need("ALTER_CONFIGS", "scope")
_SEE_ALL: Final = Need("DESCRIBE", "cluster")
_ALTER_ALL: Final = Need("ALTER", "cluster")
_VERSIONS: Final = "/subjects/{subject}/versions"
_TAGS: Final = f"{_VERSIONS}/{{version}}/tags"
_NO_ID: Final = -1
_COMPATIBILITY: Final = "/compatibility/subjects/{subject}/versions"

NEEDS: Final[Mapping[tuple[str, str], Need | None]] = {
    ("GET", "/"): _OPEN,
    ("POST", "/"): _OPEN,
    ("GET", "/openapi.json"): _OPEN,
    ("GET", "/v1/metadata/id"): _OPEN,
    ("GET", "/v1/metadata/version"): _OPEN,
    ("POST", "/restart"): _ALTER_ALL,
    # Lists, and what has an id: `may_read_one_of` and `seen` see to these.
    ("GET", "/schemas"): _OPEN,
    ("GET", "/schemas/types"): _OPEN,
    ("GET", "/schemas/ids/{id}"): _OPEN,
    ("GET", "/schemas/ids/{id}/schema"): _OPEN,
    ("GET", "/schemas/ids/{id}/subjects"): _OPEN,
    ("GET", "/schemas/ids/{id}/versions"): _OPEN,
    ("GET", "/schemas/guids/{guid}"): _OPEN,
    ("GET", "/schemas/guids/{guid}/ids"): _OPEN,
    ("GET", "/subjects"): _OPEN,
    ("GET", "/associations/resources/{id}"): _OPEN,
    ("GET", "/associations/resources/{namespace}/{name}"): _OPEN,
    ("POST", "/subjects/{subject}"): _READ,
    ("DELETE", "/subjects/{subject}"): _DELETE,
    ("GET", "/subjects/{subject}/metadata"): _READ,
    ("GET", _VERSIONS): _READ,
    ("POST", _VERSIONS): _WRITE,
    ("GET", f"{_VERSIONS}/{{version}}"): _READ,
    ("DELETE", f"{_VERSIONS}/{{version}}"): _DELETE,
    ("GET", f"{_VERSIONS}/{{version}}/schema"): _READ,
    ("GET", f"{_VERSIONS}/{{version}}/referencedby"): _READ,
    ("POST", _TAGS): _WRITE,
    ("POST", _COMPATIBILITY): _READ,
    ("POST", f"{_COMPATIBILITY}/{{version}}"): _READ,
    ("GET", "/config"): _CONFIGS,
    ("PUT", "/config"): _ALTER_CONFIGS,
    ("DELETE", "/config"): _ALTER_CONFIGS,
    ("GET", "/config/{subject}"): _CONFIGS,
    ("PUT", "/config/{subject}"): _ALTER_CONFIGS,
    ("DELETE", "/config/{subject}"): _ALTER_CONFIGS,
    ("GET", "/mode"): _CONFIGS,
    ("PUT", "/mode"): _ALTER_CONFIGS,
    ("DELETE", "/mode"): _ALTER_CONFIGS,
    ("GET", "/mode/{subject}"): _CONFIGS,
    ("PUT", "/mode/{subject}"): _ALTER_CONFIGS,
    ("DELETE", "/mode/{subject}"): _ALTER_CONFIGS,
    ("GET", "/contexts"): _SEE_ALL,
    ("DELETE", "/contexts/{context}"): _ALTER_ALL,
    ("GET", "/associations/subjects/{subject}"): _READ,
    ("POST", "/associations"): _ALTER_ALL,
    ("PUT", "/associations/resources/{id}"): _ALTER_ALL,
    ("DELETE", "/associations/resources/{id}"): _ALTER_ALL,
}


class GuardedRoutes(Routes):
    """Routes whose handlers are called for clients only that have the right."""

    def __init__(self, api: Api) -> None:
        super().__init__()
        self._api = api

    def add(
        self, method: str, path: str, handler: Handler, operation: Mapping[str, Any] | None = None
    ) -> None:
        super().add(method, path, partial(self._guarded, NEEDS[method, path], handler), operation)

    async def _guarded(self, need: Need | None, handler: Handler, exchange: Exchange) -> None:
        if exchange.serving.broker.security.authorizes and isinstance(exchange, RegistryExchange):
            if need is not None:
                self._check(need, exchange)
            exchange.check_body = partial(self._check_body, need, exchange)
            try:
                await handler(exchange)
            except Incompatible as refused:
                raise self._without_details(exchange, refused) from None
            return
        await handler(exchange)

    def _check(self, need: Need, exchange: RegistryExchange) -> None:
        """Raises AuthorizationFailed."""
        from leafcuttr_sdk.security import CLUSTER_NAME, Operation, ResourceType, subject_topic

        given, operation = exchange.parameters.get("subject"), Operation[need.operation]
        if need.on == "cluster" or given is None or (need.on == "scope" and not normalized(given)):
            exchange.serving.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)
            return
        subject = self._api.subject(exchange) if need.on == "subject" else normalized(given)
        exchange.serving.check(operation, ResourceType.TOPIC, subject_topic(subject))

    def _check_body(self, need: Need | None, exchange: RegistryExchange, body: Mapping[str, Any]) -> None:
        """Once it has come, and before anybody else has a turn. Raises AuthorizationFailed."""
        if need is not None:
            # While it came the right may have gone, or the subject may have got an alias, which counts from now on.
            self._check(need, exchange)
        self._check_references(exchange, body)
        if exchange.method == "POST" and exchange.endpoint in (_VERSIONS, _TAGS):
            self._check_registration(exchange, body)

    def _check_registration(self, exchange: RegistryExchange, body: Mapping[str, Any]) -> None:
        """Ids are those of all subjects of a context, and the next one is behind the highest: to choose one is to take
        it from them. Without a schema of its own a registration takes, and is answered, that of the version before.
        Raises AuthorizationFailed."""
        from leafcuttr_sdk.security import CLUSTER_NAME, Operation, ResourceType, subject_topic

        subject = self._api.subject(exchange)
        if body.get("id") not in (None, _NO_ID):
            context = context_of(subject)
            if context == DEFAULT:
                exchange.serving.check(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
            else:
                exchange.serving.check(
                    Operation.ALTER_CONFIGS, ResourceType.TOPIC, subject_topic(qualified(context, ""))
                )
        text = body.get("schema")
        if exchange.endpoint == _TAGS or not (isinstance(text, str) and text.strip()):
            exchange.serving.check(Operation.READ, ResourceType.TOPIC, subject_topic(subject))

    def _without_details(self, exchange: RegistryExchange, refused: Incompatible) -> Refusal:
        """Why a schema is not compatible shows the one before, which only those may see who may read it."""
        from leafcuttr_sdk.security import Operation, ResourceType, subject_topic

        name = subject_topic(refused.subject)
        if exchange.serving.allowed(Operation.READ, ResourceType.TOPIC, name, quietly=True):
            return refused
        return Incompatible(refused.subject, [f"to see them takes READ on topic {name}"])

    def _check_references(self, exchange: RegistryExchange, body: Mapping[str, Any]) -> None:
        """What a schema names it may take in, so its client has to be able to read it. Raises AuthorizationFailed."""
        from leafcuttr_sdk.security import Operation, ResourceType, subject_topic

        parent, found = normalized(exchange.parameters.get("subject", "")), body.get("references")
        for each in found if isinstance(found, list) else ():
            name = each.get("subject") if isinstance(each, dict) else None
            if isinstance(name, str):
                whole = normalized(beside(parent, name))
                for subject in dict.fromkeys((whole, self._api.aliased(whole))):
                    exchange.serving.check(Operation.READ, ResourceType.TOPIC, subject_topic(subject))


def seen(
    exchange: RegistryExchange,
    things: Iterable[T],
    subject_of: Callable[[T], str],
    operation: str = "READ",
) -> list[T]:
    """Those whose subjects the client may read, or describe."""
    serving = exchange.serving
    if not serving.broker.security.authorizes:
        return list(things)
    from leafcuttr_sdk.security import Operation, ResourceType, subject_topic

    right = Operation[operation]
    return [
        each
        for each in things
        if serving.allowed(right, ResourceType.TOPIC, subject_topic(subject_of(each)), quietly=True)
    ]
