"""Which broker coordinates a group or a transactional id.

Versions:
- 1: key types, error messages.
- 3: flexible.
- 4: several keys; the answer's single fields give way to `coordinators` (KIP-699).
- 5: TRANSACTION_ABORTABLE may be answered (KIP-890).
- 6: share groups (KIP-932).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@message("0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = field(STRING, "0-3")
    key_type: int = field(INT8, "1+")
    coordinator_keys: Sequence[str] = field(array(STRING), "4+")


@struct
class Coordinator:
    key: str = field(STRING, "4+")
    node_id: int = field(INT32, "4+")
    host: str = field(STRING, "4+")
    port: int = field(INT32, "4+")
    error_code: int = field(INT16, "4+")
    error_message: str | None = field(STRING, "4+", nullable="4+", ignorable=True)


@message("0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0-3")
    error_message: str | None = field(STRING, "1-3", nullable="1-3", ignorable=True)
    node_id: int = field(INT32, "0-3")
    host: str = field(STRING, "0-3")
    port: int = field(INT32, "0-3")
    coordinators: Sequence[Coordinator] = field(array(Coordinator), "4+")
