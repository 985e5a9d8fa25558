"""ACLs and filters as the three APIs of ACLs carry them.

A number that stands for nothing is an INVALID_REQUEST, where Kafka closes the connection.
"""

from enum import IntEnum
from typing import Protocol, TypeVar

from leafcuttr.errors import InvalidRequest
from leafcuttr.state.security.acl import AclFilter, AclOperation, AclPermission, AclResourceType, PatternType


class FilterFields(Protocol):
    """What requests that filter have in common."""

    @property
    def resource_type_filter(self) -> int: ...

    @property
    def resource_name_filter(self) -> str | None: ...

    @property
    def pattern_type_filter(self) -> int: ...

    @property
    def principal_filter(self) -> str | None: ...

    @property
    def host_filter(self) -> str | None: ...

    @property
    def operation(self) -> int: ...

    @property
    def permission_type(self) -> int: ...


E = TypeVar("E", bound=IntEnum)


def known(kind: type[E], number: int) -> E:
    """The member with this number. Raises InvalidRequest for 0, which is UNKNOWN, and any other that is none."""
    try:
        found = kind(number)
    except ValueError:
        found = kind(0)
    if not found:
        raise InvalidRequest(f"Unknown {kind.__name__} {number}")
    return found


def filter_of(fields: FilterFields) -> AclFilter:
    """Raises InvalidRequest."""
    return AclFilter(
        known(AclResourceType, fields.resource_type_filter),
        fields.resource_name_filter,
        known(PatternType, fields.pattern_type_filter),
        fields.principal_filter,
        fields.host_filter,
        known(AclOperation, fields.operation),
        known(AclPermission, fields.permission_type),
    )
