"""ACLs as values: who may, or must not, do what on which resources, from where. Numbers and names are Kafka's.

The rules by which they decide are in `authorizer`.
"""

from enum import IntEnum
from typing import Final, NamedTuple


class _Number(IntEnum):
    """Enum's own hash, of the name, is computed in Python, and these are in the keys of what is remembered."""

    __hash__ = int.__hash__


class AclResourceType(_Number):
    """org.apache.kafka.common.resource.ResourceType."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Number):
    """org.apache.kafka.common.resource.PatternType; MATCH, of filters only, is whatever decides for a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Number):
    """org.apache.kafka.common.acl.AclOperation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(_Number):
    """org.apache.kafka.common.acl.AclPermissionType."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of the type CLUSTER."""
WILDCARD: Final = "*"
"""Any name, as the name of a literal pattern; any host; any user, in `EVERYBODY`."""
EVERYBODY: Final = "User:*"
_EVERY_OPERATION: Final = sum(1 << one for one in AclOperation if one > AclOperation.ALL)


def bit_set(*operations: AclOperation) -> int:
    """As answers carry them (KIP-430)."""
    return sum(1 << one for one in operations)


OPERATIONS_ON: Final = {
    AclResourceType.TOPIC: bit_set(
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: bit_set(
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: bit_set(
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.TRANSACTIONAL_ID: bit_set(
        AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT
    ),
    AclResourceType.DELEGATION_TOKEN: bit_set(AclOperation.DESCRIBE),
    AclResourceType.USER: bit_set(AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""What can be done on each, as bit sets of operations (KIP-430)."""

_IMPLIED_BY: Final = {
    AclOperation.READ: AclOperation.DESCRIBE,
    AclOperation.WRITE: AclOperation.DESCRIBE,
    AclOperation.DELETE: AclOperation.DESCRIBE,
    AclOperation.ALTER: AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}


class Acl(NamedTuple):
    """One rule, as Kafka's `AclBinding`. `principal` is a text such as `User:alice`, `host` an IP address or `*`."""

    resource_type: AclResourceType
    name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def operations(self) -> int:
        """The operations that it allows or denies, as a bit set. What is allowed may imply another operation; what is
        denied does not."""
        if self.operation == AclOperation.ALL:
            return _EVERY_OPERATION
        implied = _IMPLIED_BY.get(self.operation) if self.permission == AclPermission.ALLOW else None
        return 1 << self.operation | (0 if implied is None else 1 << implied)

    def covers(self, name: str) -> bool:
        """Whether a resource of its type that has this name is meant."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def __str__(self) -> str:
        pattern = "" if self.pattern_type == PatternType.LITERAL else f" {self.pattern_type.name.lower()}"
        return (
            f"{self.permission.name.lower()} {self.principal} {self.operation.name} on "
            f"{self.resource_type.name.lower()}{pattern} {self.name} from {self.host}"
        )


class AclFilter(NamedTuple):
    """Kafka's `AclBindingFilter`: None, and ANY, are everything."""

    resource_type: AclResourceType = AclResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def takes(self, acl: Acl) -> bool:
        return (
            self.resource_type in (AclResourceType.ANY, acl.resource_type)
            and self._takes_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
        )

    def _takes_pattern(self, acl: Acl) -> bool:
        if self.pattern_type == PatternType.MATCH:
            return self.name is None or acl.covers(self.name)
        return self.pattern_type in (PatternType.ANY, acl.pattern_type) and self.name in (None, acl.name)
