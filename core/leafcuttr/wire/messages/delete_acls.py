"""Delete all ACLs that some filter takes. The answer has those of each filter."""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: int = field(INT8, "0+")
    resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, "0+", nullable="0+")
    host_filter: str | None = field(STRING, "0+", nullable="0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


@message("1-3", flexible="2+")
class DeleteAclsRequest:
    filters: Sequence[DeleteAclsFilter] = field(array(DeleteAclsFilter), "0+")


@struct
class DeleteAclsMatchingAcl:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


@struct
class DeleteAclsFilterResult:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    matching_acls: Sequence[DeleteAclsMatchingAcl] = field(array(DeleteAclsMatchingAcl), "0+")


@message("1-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    filter_results: Sequence[DeleteAclsFilterResult] = field(array(DeleteAclsFilterResult), "0+")
