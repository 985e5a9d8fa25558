"""The log of transaction state: the topic `__transaction_state`. What the records mean is in `records`."""

from typing import Final

from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode
from leafcuttr.state.internal_log import InternalLog
from leafcuttr.state.topic_names import TRANSACTION_STATE
from leafcuttr.state.topics import Topics
from leafcuttr_sdk import Clock

# What a client is answered when the log refuses. After NOT_COORDINATOR it finds the coordinator again and comes back.
_ANSWERS: Final = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class TransactionLog(InternalLog):
    """The topic `__transaction_state` as a store of keyed records."""

    def __init__(self, *, topics: Topics, settings: Settings, clock: Clock) -> None:
        super().__init__(
            TRANSACTION_STATE,
            partitions_setting="transaction.state.log.num.partitions",
            load_setting="transaction.state.log.load.buffer.size",
            answers=_ANSWERS,
            topics=topics,
            settings=settings,
            clock=clock,
        )

    def coordinator_epoch(self, partition: int) -> int:
        """The epoch that markers carry: that of the partition's leader, which is always this broker."""
        topic = self.topic
        return 0 if topic is None else topic.partitions[partition].log.leader_epoch
