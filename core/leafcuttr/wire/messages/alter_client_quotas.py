"""Set and remove the quotas of users, client ids and addresses (KIP-546).

A null name of an entity is the default one of its type.

Versions:
- 1: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, FLOAT64, INT16, INT32, STRING, array, field, message, struct


@struct
class EntityData:
    entity_type: str = field(STRING, "0+")
    entity_name: str | None = field(STRING, "0+", nullable="0+")


@struct
class OpData:
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")
    remove: bool = field(BOOL, "0+")


@struct
class RequestEntryData:
    entity: Sequence[EntityData] = field(array(EntityData), "0+")
    ops: Sequence[OpData] = field(array(OpData), "0+")


@message("0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: Sequence[RequestEntryData] = field(array(RequestEntryData), "0+")
    validate_only: bool = field(BOOL, "0+")


@struct
class EntryData:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    entity: Sequence[EntityData] = field(array(EntityData), "0+")


@message("0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = field(INT32, "0+")
    entries: Sequence[EntryData] = field(array(EntryData), "0+")
