"""What ends a flow, and what ends one attempt of it. Errors of clusters are `leafcuttr_sdk.errors.BrokerError`."""

from collections.abc import Iterator
from contextlib import contextmanager

from leafcuttr_sdk.errors import (
    BrokerError,
    CorruptMessage,
    InvalidConfig,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTopic,
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
NO_TOPIC = (InvalidConfig, InvalidTopic, PolicyViolation)
"""Errors of a cluster that cannot create a topic, now or later."""


class FlowStopped(Exception):
    """The flow has ended for good, for the reason that its one line gives: as it was configured to."""


class PoisonRecord(Exception):
    """A record of the source cannot be copied, or a whole batch, which ends before `next_offset`. The message says why,
    in one line. `broken`: its bytes are damaged, which may be better at the next read."""

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        why: str,
        *,
        next_offset: int | None = None,
        broken: bool = False,
    ) -> None:
        super().__init__(why)
        self.partition = partition
        self.offset = offset
        self.next_offset = offset + 1 if next_offset is None else next_offset
        self.broken = broken


class NotReadyYet(Exception):
    """A filter cannot judge yet; the message says what it lacks."""


def line_of(error: BaseException) -> str:
    """The error in one line for a person."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


class SourceDiffers(Exception):
    """A source of a failover is no copy of the one before: the message says where."""


@contextmanager
def one_error() -> Iterator[None]:
    """Of a group of exceptions that leaves the block, raises the one that decides: the end of the flow before errors of
    clusters, and whatever is neither before both. A cancellation is raised without errors of clusters beside it."""
    try:
        yield
    except BaseExceptionGroup as group:
        errors = [*_leaves(group)]
        if all(isinstance(error, Exception) for error in errors):
            raise min(errors, key=_weight) from None
        rest = group.subgroup(lambda error: not isinstance(error, BrokerError | BaseExceptionGroup))
        raise (rest or group) from None


def _weight(error: BaseException) -> int:
    order = (FlowStopped, SourceDiffers, BrokerError)
    return next((index for index, kind in enumerate(order, 1) if isinstance(error, kind)), 0)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
