"""What each API needs on which resource, and whether the client of a request has it.

`NEEDS` is the table: the page of ACLs is made from it, and tests walk it, beside a Kafka too. Handlers name the rights
themselves, because the order of checks, and what is answered, is each API's own. Without an authorizer everything is
allowed, and nothing is looked up.

Where a list leaves out what may not be seen nobody has requested that one, so it is not in the audit log (`quietly`).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security.acl import CLUSTER_NAME, OPERATIONS_ON, AclOperation, ResourceType
from leafcuttr.wire.api import ApiKey

_ERRORS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
_WORDS: Final = {
    ResourceType.TOPIC: "Topic authorization failed.",
    ResourceType.GROUP: "Group authorization failed.",
    ResourceType.CLUSTER: "Cluster authorization failed.",
    ResourceType.TRANSACTIONAL_ID: "Transactional Id authorization failed.",
    ResourceType.DELEGATION_TOKEN: "Delegation Token authorization failed.",
    ResourceType.USER: "Delegation Token authorization failed.",
}


class Right(NamedTuple):
    """An operation on a type of resource."""

    operation: AclOperation
    resource_type: ResourceType

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


_DENIED: Final[Mapping[ResourceType, type[BrokerError]]] = {
    ResourceType.TOPIC: TopicAccessDenied,
    ResourceType.GROUP: GroupAccessDenied,
    ResourceType.CLUSTER: ClusterAccessDenied,
    ResourceType.TRANSACTIONAL_ID: TransactionAccessDenied,
    ResourceType.DELEGATION_TOKEN: TokenAccessDenied,
    ResourceType.USER: TokenAccessDenied,
}


def denied(right: Right, message: str | None = None) -> BrokerError:
    """The error of a client that lacks this right."""
    found = _DENIED[right.resource_type]
    return found() if message is None else found(message)


READ_TOPIC: Final = Right(AclOperation.READ, ResourceType.TOPIC)
WRITE_TOPIC: Final = Right(AclOperation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC: Final = Right(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC: Final = Right(AclOperation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC: Final = Right(AclOperation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = Right(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_TOPIC_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC)
READ_GROUP: Final = Right(AclOperation.READ, ResourceType.GROUP)
DELETE_GROUP: Final = Right(AclOperation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP: Final = Right(AclOperation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_GROUP_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, ResourceType.GROUP)
WRITE_TRANSACTION: Final = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION: Final = Right(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
CREATE_ON_CLUSTER: Final = Right(AclOperation.CREATE, ResourceType.CLUSTER)
DELETE_ON_CLUSTER: Final = Right(AclOperation.DELETE, ResourceType.CLUSTER)
ALTER_CLUSTER: Final = Right(AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = Right(AclOperation.DESCRIBE, ResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Right(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Right(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
CLUSTER_ACTION: Final = Right(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
IDEMPOTENT_WRITE: Final = Right(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
DESCRIBE_TOKEN: Final = Right(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
CREATE_TOKENS_OF_USER: Final = Right(AclOperation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKENS_OF_USER: Final = Right(AclOperation.DESCRIBE_TOKENS, ResourceType.USER)


class Need(NamedTuple):
    """Any one of these rights suffices, for what the words say."""

    rights: tuple[Right, ...]
    words: str = ""


def _need(*rights: Right, words: str = "") -> Need:
    return Need(rights, words)


NEEDS: Final[Mapping[ApiKey, tuple[Need, ...]]] = {
    ApiKey.PRODUCE: (
        _need(WRITE_TRANSACTION, words="for transactional records"),
        _need(WRITE_TOPIC),
    ),
    ApiKey.FETCH: (_need(READ_TOPIC), _need(CLUSTER_ACTION, words="with a replica id")),
    ApiKey.LIST_OFFSETS: (_need(DESCRIBE_TOPIC),),
    ApiKey.METADATA: (
        _need(DESCRIBE_TOPIC, words="a list of all topics leaves out the others"),
        _need(CREATE_ON_CLUSTER, CREATE_TOPIC, words="to have a topic created"),
        _need(DESCRIBE_CLUSTER, words="for the authorized operations on the cluster"),
    ),
    ApiKey.OFFSET_COMMIT: (_need(READ_GROUP), _need(READ_TOPIC)),
    ApiKey.OFFSET_FETCH: (
        _need(DESCRIBE_GROUP),
        _need(DESCRIBE_TOPIC, words="a list of all offsets leaves out the others"),
    ),
    ApiKey.FIND_COORDINATOR: (
        _need(DESCRIBE_GROUP, words="for groups"),
        _need(DESCRIBE_TRANSACTION, words="for transactional ids"),
    ),
    ApiKey.JOIN_GROUP: (_need(READ_GROUP),),
    ApiKey.HEARTBEAT: (_need(READ_GROUP),),
    ApiKey.LEAVE_GROUP: (_need(READ_GROUP),),
    ApiKey.SYNC_GROUP: (_need(READ_GROUP),),
    ApiKey.DESCRIBE_GROUPS: (_need(DESCRIBE_GROUP),),
    ApiKey.LIST_GROUPS: (_need(DESCRIBE_CLUSTER, DESCRIBE_GROUP, words="leaves out the others"),),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.API_VERSIONS: (),
    ApiKey.CREATE_TOPICS: (
        _need(CREATE_ON_CLUSTER, CREATE_TOPIC),
        _need(DESCRIBE_TOPIC_CONFIGS, words="for the settings of the new topic in the answer"),
    ),
    ApiKey.DELETE_TOPICS: (
        _need(DELETE_ON_CLUSTER, DELETE_TOPIC),
        _need(DELETE_ON_CLUSTER, DESCRIBE_TOPIC, words="for the name of a topic that is named by its id"),
    ),
    ApiKey.DELETE_RECORDS: (_need(DELETE_TOPIC),),
    ApiKey.INIT_PRODUCER_ID: (
        _need(WRITE_TRANSACTION, words="with a transactional id"),
        _need(IDEMPOTENT_WRITE, WRITE_TOPIC, words="without one; WRITE on some topic"),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_need(CLUSTER_ACTION, DESCRIBE_TOPIC),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _need(WRITE_TRANSACTION, words="before version 4"),
        _need(WRITE_TOPIC, words="before version 4"),
        _need(CLUSTER_ACTION, words="from version 4 on"),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_need(WRITE_TRANSACTION), _need(READ_GROUP)),
    ApiKey.END_TXN: (_need(WRITE_TRANSACTION),),
    ApiKey.WRITE_TXN_MARKERS: (_need(ALTER_CLUSTER, CLUSTER_ACTION),),
    ApiKey.TXN_OFFSET_COMMIT: (_need(WRITE_TRANSACTION), _need(READ_GROUP), _need(READ_TOPIC)),
    ApiKey.DESCRIBE_ACLS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.CREATE_ACLS: (_need(ALTER_CLUSTER),),
    ApiKey.DELETE_ACLS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_CONFIGS: (
        _need(DESCRIBE_TOPIC_CONFIGS, words="for topics"),
        _need(DESCRIBE_CLUSTER_CONFIGS, words="for brokers, loggers and client metrics"),
        _need(DESCRIBE_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_CONFIGS: (
        _need(ALTER_TOPIC_CONFIGS, words="for topics"),
        _need(ALTER_CLUSTER_CONFIGS, words="for brokers and client metrics"),
        _need(ALTER_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.CREATE_PARTITIONS: (_need(ALTER_TOPIC),),
    ApiKey.CREATE_DELEGATION_TOKEN: (_need(CREATE_TOKENS_OF_USER, words="for another owner"),),
    ApiKey.RENEW_DELEGATION_TOKEN: (),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        _need(DESCRIBE_TOKEN, DESCRIBE_TOKENS_OF_USER, words="for tokens of others, which are left out"),
    ),
    ApiKey.DELETE_GROUPS: (_need(DELETE_GROUP),),
    ApiKey.ELECT_LEADERS: (_need(ALTER_CLUSTER),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        _need(ALTER_TOPIC_CONFIGS, words="for topics"),
        _need(ALTER_CLUSTER_CONFIGS, words="for brokers, loggers and client metrics"),
        _need(ALTER_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_need(ALTER_CLUSTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.OFFSET_DELETE: (_need(DELETE_GROUP), _need(READ_TOPIC)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_need(DESCRIBE_CLUSTER_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_need(ALTER_CLUSTER_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_QUORUM: (_need(DESCRIBE_CLUSTER),),
    ApiKey.UPDATE_FEATURES: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_CLUSTER: (_need(DESCRIBE_CLUSTER, words="for the authorized operations on the cluster"),),
    ApiKey.DESCRIBE_PRODUCERS: (_need(READ_TOPIC),),
    ApiKey.UNREGISTER_BROKER: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _need(DESCRIBE_TRANSACTION),
        _need(DESCRIBE_TOPIC, words="leaves out the others"),
    ),
    ApiKey.LIST_TRANSACTIONS: (_need(DESCRIBE_TRANSACTION, words="leaves out the others"),),
    ApiKey.LIST_CONFIG_RESOURCES: (_need(DESCRIBE_CLUSTER_CONFIGS),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        _need(DESCRIBE_TOPIC, words="a list of all topics leaves out the others"),
    ),
}
"""Every API; one without needs is open to everybody, as far as ACLs go."""


def may(
    broker: Broker, context: RequestContext, right: Right, name: str = CLUSTER_NAME, *, quietly: bool = False
) -> bool:
    """Whether the client of this request has the right on the resource of this name."""
    return broker.authorizer is None or client_may(
        broker, context.client, context.api_key, right, name, quietly=quietly
    )


def client_may(
    broker: Broker, client: ClientIdentity, api_key: int, right: Right, name: str, *, quietly: bool = False
) -> bool:
    """`may`, where the context may have gone on to another request."""
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


def operations(broker: Broker, context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """What the client may do on a resource, as a bit set of operations (KIP-430)."""
    known = OPERATIONS_ON[resource_type]
    if broker.authorizer is None:
        return known
    return broker.authorizer.operations(context.client, resource_type, name) & known


def cluster_operations(broker: Broker, context: RequestContext) -> int:
    """The same for the cluster; 0 for a client that may not describe it."""
    if not may(broker, context, DESCRIBE_CLUSTER):
        return 0
    return operations(broker, context, ResourceType.CLUSTER, CLUSTER_NAME)
