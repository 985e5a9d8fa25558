"""Keep a member of a classic group alive, and let it know of a rebalance.

Versions:
- 3: static members (KIP-345).
- 4: flexible.
"""

from leafcuttr.wire.schema import INT16, INT32, STRING, field, message


@message("0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str = field(STRING, "0+")
    generation_id: int = field(INT32, "0+")
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)


@message("0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
