"""The log of group state: the topic `__consumer_offsets`. Nobody here knows what a group is."""

from typing import Final

from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode
from leafcuttr.state.internal_log import InternalLog
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.state.topics import Topics
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk import Clock

# What a client hears when the log refuses. After NOT_COORDINATOR it asks for the coordinator anew and comes
# back.
_ANSWERS: Final = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}


class OffsetsLog(InternalLog):
    """The topic `__consumer_offsets` as a store of keyed records."""

    def __init__(self, *, topics: Topics, settings: Settings, clock: Clock) -> None:
        super().__init__(
            CONSUMER_OFFSETS,
            partitions_setting="offsets.topic.num.partitions",
            answers=_ANSWERS,
            topics=topics,
            settings=settings,
            clock=clock,
            codec=Codec(settings.int("offsets.topic.compression.codec")),
        )

    def knows(self, name: str, topic_id: bytes) -> bool:
        """Whether what was committed for this topic is about a topic that exists."""
        return topic_id in self.ids(name)

    def ids(self, name: str) -> tuple[bytes, ...]:
        """The ids that a commit for this topic may carry; older commits have none."""
        topic = self._topics.by_name.get(name)
        return () if topic is None else (ZERO_UUID, topic.id)
