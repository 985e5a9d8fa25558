"""Delete groups that have no members (KIP-229).

Versions:
- 2: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@message("0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: Sequence[str] = field(array(STRING), "0+")


@struct
class DeletableGroupResult:
    group_id: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")


@message("0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[DeletableGroupResult] = field(array(DeletableGroupResult), "0+")
