"""Change single settings: set, delete, append to or subtract from a list (KIP-339).

Versions:
- 1: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class AlterableConfig:
    name: str = field(STRING, "0+")
    config_operation: int = field(INT8, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")


@struct
class AlterConfigsResource:
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configs: Sequence[AlterableConfig] = field(array(AlterableConfig), "0+")


@message("0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    resources: Sequence[AlterConfigsResource] = field(array(AlterConfigsResource), "0+")
    validate_only: bool = field(BOOL, "0+")


@struct
class AlterConfigsResourceResponse:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")


@message("0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    responses: Sequence[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse), "0+")
