"""Delete topics by name, from version 6 on also by id.

Versions:
- 3: TOPIC_DELETION_DISABLED may be answered.
- 4: flexible.
- 5: error message, THROTTLING_QUOTA_EXCEEDED (KIP-599).
- 6: `topics` with name or id in place of `topic_names` (KIP-516).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class DeleteTopicState:
    name: str | None = field(STRING, "6+", nullable="6+", default=None)
    topic_id: bytes = field(UUID, "6+")


@message("1-6", flexible="4+")
class DeleteTopicsRequest:
    topics: Sequence[DeleteTopicState] = field(array(DeleteTopicState), "6+")
    topic_names: Sequence[str] = field(array(STRING), "0-5", ignorable=True)
    timeout_ms: int = field(INT32, "0+")


@struct
class DeletableTopicResult:
    name: str | None = field(STRING, "0+", nullable="6+")
    topic_id: bytes = field(UUID, "6+", ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message("1-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    responses: Sequence[DeletableTopicResult] = field(array(DeletableTopicResult), "0+")
