"""The rights that requests need, and whether the client of a request has one.

Handlers name the rights themselves, because the order of checks, and what is answered, is each API's own; the table of
them is in `access_table`. Without an authorizer everything is allowed, and nothing is looked up.

Where a list leaves out what may not be seen nobody has requested that one, so it is not in the audit log (`quietly`).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security.acl import CLUSTER_NAME, OPERATIONS_ON, AclOperation, AclResourceType

_ERRORS: Final = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    AclResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
_WORDS: Final = {
    AclResourceType.TOPIC: "Topic authorization failed.",
    AclResourceType.GROUP: "Group authorization failed.",
    AclResourceType.CLUSTER: "Cluster authorization failed.",
    AclResourceType.TRANSACTIONAL_ID: "Transactional Id authorization failed.",
    AclResourceType.DELEGATION_TOKEN: "Delegation Token authorization failed.",
    AclResourceType.USER: "Delegation Token authorization failed.",
}


class Right(NamedTuple):
    """An operation on a type of resource."""

    operation: AclOperation
    resource_type: AclResourceType

    @property
    def error(self) -> ErrorCode:
        """The answer to a client that lacks it."""
        return _ERRORS[self.resource_type]

    @property
    def words(self) -> str:
        """Kafka's words for that, where the answer has some."""
        return _WORDS[self.resource_type]

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


class TopicAccessDenied(BrokerError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAccessDenied(BrokerError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAccessDenied(BrokerError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class TransactionAccessDenied(BrokerError):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class TokenAccessDenied(BrokerError):
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


_DENIED: Final[Mapping[AclResourceType, type[BrokerError]]] = {
    AclResourceType.TOPIC: TopicAccessDenied,
    AclResourceType.GROUP: GroupAccessDenied,
    AclResourceType.CLUSTER: ClusterAccessDenied,
    AclResourceType.TRANSACTIONAL_ID: TransactionAccessDenied,
    AclResourceType.DELEGATION_TOKEN: TokenAccessDenied,
    AclResourceType.USER: TokenAccessDenied,
}


def denied(right: Right, message: str | None = None) -> BrokerError:
    """The error of a client that lacks this right."""
    found = _DENIED[right.resource_type]
    return found() if message is None else found(message)


READ_TOPIC: Final = Right(AclOperation.READ, AclResourceType.TOPIC)
WRITE_TOPIC: Final = Right(AclOperation.WRITE, AclResourceType.TOPIC)
CREATE_TOPIC: Final = Right(AclOperation.CREATE, AclResourceType.TOPIC)
DELETE_TOPIC: Final = Right(AclOperation.DELETE, AclResourceType.TOPIC)
ALTER_TOPIC: Final = Right(AclOperation.ALTER, AclResourceType.TOPIC)
DESCRIBE_TOPIC: Final = Right(AclOperation.DESCRIBE, AclResourceType.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC)
ALTER_TOPIC_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, AclResourceType.TOPIC)
READ_GROUP: Final = Right(AclOperation.READ, AclResourceType.GROUP)
DELETE_GROUP: Final = Right(AclOperation.DELETE, AclResourceType.GROUP)
DESCRIBE_GROUP: Final = Right(AclOperation.DESCRIBE, AclResourceType.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, AclResourceType.GROUP)
ALTER_GROUP_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, AclResourceType.GROUP)
WRITE_TRANSACTION: Final = Right(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION: Final = Right(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID)
CREATE_ON_CLUSTER: Final = Right(AclOperation.CREATE, AclResourceType.CLUSTER)
DELETE_ON_CLUSTER: Final = Right(AclOperation.DELETE, AclResourceType.CLUSTER)
ALTER_CLUSTER: Final = Right(AclOperation.ALTER, AclResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = Right(AclOperation.DESCRIBE, AclResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, AclResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER)
CLUSTER_ACTION: Final = Right(AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER)
IDEMPOTENT_WRITE: Final = Right(AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER)
DESCRIBE_TOKEN: Final = Right(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN)
CREATE_TOKENS_OF_USER: Final = Right(AclOperation.CREATE_TOKENS, AclResourceType.USER)
DESCRIBE_TOKENS_OF_USER: Final = Right(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER)


def may(
    broker: Broker, context: RequestContext, right: Right, name: str = CLUSTER_NAME, *, quietly: bool = False
) -> bool:
    """Whether the client of this request has the right on the resource of this name."""
    return broker.authorizer is None or client_may(
        broker, context.client, context.api_key, right, name, quietly=quietly
    )


def client_may(
    broker: Broker,
    client: ClientIdentity,
    api_key: int | str,
    right: Right,
    name: str,
    *,
    quietly: bool = False,
) -> bool:
    """`may`, where the context may have gone on to another request, or for a client of a plugin, by its name."""
    authorizer = broker.authorizer
    if authorizer is None:
        return True
    allowed = authorizer.allows(client, right.operation, right.resource_type, name)
    audit = broker.audit
    if audit is not None and not quietly and (not allowed or audit.every):
        audit.note(client, api_key, right.operation, right.resource_type, name, allowed=allowed)
    return allowed


def refusal(broker: Broker, context: RequestContext, *rights: Right) -> BrokerError | None:
    """Why a request is refused that needs one of these rights on the cluster; None if the client has one."""
    if any(may(broker, context, right, quietly=True) for right in rights[:-1]):
        return None
    right = rights[-1]
    if may(broker, context, right):
        return None
    return denied(right, f"The request needs {right.operation.name} permission on the cluster.")


def operations(broker: Broker, context: RequestContext, resource_type: AclResourceType, name: str) -> int:
    """What the client may do on a resource, as a bit set of operations (KIP-430)."""
    known = OPERATIONS_ON[resource_type]
    if broker.authorizer is None:
        return known
    return broker.authorizer.operations(context.client, resource_type, name) & known


def cluster_operations(broker: Broker, context: RequestContext) -> int:
    """The same for the cluster; 0 for a client that may not describe it."""
    if not may(broker, context, DESCRIBE_CLUSTER):
        return 0
    return operations(broker, context, AclResourceType.CLUSTER, CLUSTER_NAME)
