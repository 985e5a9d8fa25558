"""The groups this broker coordinates.

Versions:
- 3: flexible.
- 4: filter by state, and the state in the answer (KIP-518).
- 5: filter by type, and the type in the answer (KIP-848).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@message("0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: Sequence[str] = field(array(STRING), "4+")
    types_filter: Sequence[str] = field(array(STRING), "5+")


@struct
class ListedGroup:
    group_id: str = field(STRING, "0+")
    protocol_type: str = field(STRING, "0+")
    group_state: str = field(STRING, "4+", ignorable=True)
    group_type: str = field(STRING, "5+", ignorable=True)


@message("0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
    groups: Sequence[ListedGroup] = field(array(ListedGroup), "0+")
