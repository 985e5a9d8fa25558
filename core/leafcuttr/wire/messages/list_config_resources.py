"""The resources that have settings of their own (KIP-1142).

Flexible from version 0, which was ListClientMetricsResources (KIP-714) and lists only those.

Versions:
- 1: types to list, all when empty.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@message("0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: Sequence[int] = field(array(INT8), "1+")


@struct
class ConfigResource:
    resource_name: str = field(STRING, "0+")
    resource_type: int = field(INT8, "1+", default=16, ignorable=True)


@message("0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    config_resources: Sequence[ConfigResource] = field(array(ConfigResource), "0+")
