"""The quotas of users, client ids and addresses (KIP-546).

A component of a filter matches by `match_type`: 0 this name, 1 the default entity, 2 any that is named.

Versions:
- 1: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, FLOAT64, INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class ComponentData:
    entity_type: str = field(STRING, "0+")
    match_type: int = field(INT8, "0+")
    match: str | None = field(STRING, "0+", nullable="0+")


@message("0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: Sequence[ComponentData] = field(array(ComponentData), "0+")
    strict: bool = field(BOOL, "0+")


@struct
class EntityData:
    entity_type: str = field(STRING, "0+")
    entity_name: str | None = field(STRING, "0+", nullable="0+")


@struct
class ValueData:
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")


@struct
class EntryData:
    entity: Sequence[EntityData] = field(array(EntityData), "0+")
    values: Sequence[ValueData] = field(array(ValueData), "0+")


@message("0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    entries: Sequence[EntryData] | None = field(array(EntryData), "0+", nullable="0+")
