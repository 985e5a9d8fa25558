"""What ends a flow, and what ends one attempt of it. Errors of clusters are `leafcuttr_sdk.errors.BrokerError`."""

from collections.abc import Collection

from leafcuttr_sdk.errors import (
    BrokerError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    PolicyViolation,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from leafcuttr_sdk.types import TopicPartition

REFUSALS = (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    PolicyViolation,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
"""Errors of a cluster that are about the records: they will not be taken later either."""


class FlowStopped(Exception):
    """The flow has ended for good, for the reason that its one line gives: as it was configured to."""


class RecordsRefused(Exception):
    """The target does not take records that come from these partitions of the source."""

    def __init__(self, partitions: Collection[TopicPartition], error: BrokerError) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.partitions = partitions
        self.error = error


class PoisonRecord(Exception):
    """One record of the source cannot be copied; the message says why, in one line."""

    def __init__(self, partition: TopicPartition, offset: int, why: str) -> None:
        super().__init__(why)
        self.partition = partition
        self.offset = offset


class NotReadyYet(Exception):
    """A filter cannot judge yet; the message says what it lacks."""


def line_of(error: BaseException) -> str:
    """The error in one line for a person."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
