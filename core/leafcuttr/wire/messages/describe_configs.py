"""The settings of topics and brokers, with their sources.

Versions:
- 1: synonyms and sources in place of `is_default` (KIP-226).
- 3: types and documentation (KIP-569).
- 4: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class DescribeConfigsResource:
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configuration_keys: Sequence[str] | None = field(array(STRING), "0+", nullable="0+")


@message("1-4", flexible="4+")
class DescribeConfigsRequest:
    resources: Sequence[DescribeConfigsResource] = field(array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(BOOL, "1+")
    include_documentation: bool = field(BOOL, "3+")


@struct
class DescribeConfigsSynonym:
    name: str = field(STRING, "1+")
    value: str | None = field(STRING, "1+", nullable="0+")
    source: int = field(INT8, "1+")


@struct
class DescribeConfigsResourceResult:
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")
    read_only: bool = field(BOOL, "0+")
    config_source: int = field(INT8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL, "0+")
    synonyms: Sequence[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym), "1+", ignorable=True)
    config_type: int = field(INT8, "3+", ignorable=True)
    documentation: str | None = field(STRING, "3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configs: Sequence[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult), "0+")


@message("1-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[DescribeConfigsResult] = field(array(DescribeConfigsResult), "0+")
