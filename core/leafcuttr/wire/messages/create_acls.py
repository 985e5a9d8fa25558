"""Create ACLs; one that there is already stays."""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class AclCreation:
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    resource_pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


@message("1-3", flexible="2+")
class CreateAclsRequest:
    creations: Sequence[AclCreation] = field(array(AclCreation), "0+")


@struct
class AclCreationResult:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


@message("1-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[AclCreationResult] = field(array(AclCreationResult), "0+")
