"""The ACLs that a filter takes, grouped by the pattern of their resources.

Null, and 1, are everything; a pattern type of 2 is every pattern that covers the resource of that name.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@message("1-3", flexible="2+")
class DescribeAclsRequest:
    resource_type_filter: int = field(INT8, "0+")
    resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, "0+", nullable="0+")
    host_filter: str | None = field(STRING, "0+", nullable="0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


@struct
class AclDescription:
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


@struct
class DescribeAclsResource:
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "1+", default=3)
    acls: Sequence[AclDescription] = field(array(AclDescription), "0+")


@message("1-3", flexible="2+")
class DescribeAclsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resources: Sequence[DescribeAclsResource] = field(array(DescribeAclsResource), "0+")
