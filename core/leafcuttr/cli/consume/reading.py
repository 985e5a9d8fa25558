"""Records of one topic as they come from a broker, for `consume`: where to begin, where to end, when there is no more.

Without `follow` the end of each partition is the end that it had at the start (the last stable offset for
read_committed): a topic that is written to all the time is read to an end too.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import click

from leafcuttr.cli.common.librdkafka.client import REACH_S, fail, topics
from leafcuttr.cli.common.options.positions import Position, PositionKind
from leafcuttr.cli.common.target import TIMEOUT_S

BATCH: Final = 500
_WAIT_S: Final = 0.2
_QUIET_S: Final = 1.0


class Bounds(NamedTuple):
    """What to read of each partition: from `first` up to, not including, `end`."""

    first: dict[int, int]
    end: dict[int, int]


def partitions(consumer: Any, topic: str, wanted: tuple[int, ...], address: str) -> list[int]:
    """The partitions to read; ends the command with one line if there is no such topic or partition."""
    # A request for all topics does not create the one that is missing.
    found = topics(consumer, address).get(topic)
    if found is None:
        fail(f"there is no topic {topic}", address)
    for number in wanted:
        if number not in found.partitions:
            fail(f"{topic} has no partition {number}", address)
    return sorted(wanted or found.partitions)


def bounds(consumer: Any, topic: str, numbers: list[int], start: Position, stop: Position | None) -> Bounds:
    """Where to begin and to end; offsets outside of the log are moved into it. Raises KafkaException."""
    from confluent_kafka import TopicPartition

    low: dict[int, int] = {}
    high: dict[int, int] = {}
    for number in numbers:
        low[number], high[number] = consumer.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S)

    def at(position: Position) -> dict[int, int]:
        if position.kind is PositionKind.TIME:
            wanted = [TopicPartition(topic, number, position.number) for number in numbers]
            results = {one.partition: one for one in consumer.offsets_for_times(wanted, TIMEOUT_S)}
            for one in results.values():
                if one.error is not None:
                    raise_error(one.error)
            found = {n: high[n] if results[n].offset < 0 else results[n].offset for n in numbers}
        else:
            found = {
                number: {
                    PositionKind.EARLIEST: low[number],
                    PositionKind.LATEST: high[number],
                    PositionKind.OFFSET: position.number,
                    PositionKind.BEFORE_END: high[number] - position.number,
                }[position.kind]
                for number in numbers
            }
        return {number: min(max(offset, low[number]), high[number]) for number, offset in found.items()}

    return Bounds(at(start), high if stop is None else at(stop))


def raise_error(error: Any) -> None:
    """Raise an error that librdkafka returned as a value."""
    from confluent_kafka import KafkaException

    raise KafkaException(error)


class Watch:
    """Remembers that no broker could be reached. The client reports it once, and not when one can be reached again."""

    def __init__(self) -> None:
        self.down = False

    def heard(self, error: Any) -> None:
        """For the client's `error_cb`."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.down = True


class TopicReader:
    """Batches of messages, in order in each partition, until the end is reached or for ever.

    `ends` are the offsets to stop at, None to follow. A consumer of a group reads what the group gives it.
    """

    def __init__(
        self,
        consumer: Any,
        watch: Watch,
        address: str,
        ends: dict[int, int] | None,
        idle_s: float | None = None,
    ) -> None:
        self._watch = watch
        self._consumer = consumer
        self._address = address
        self._ends = ends
        self._idle_s = idle_s
        self._ended: set[int] = set()
        self._in_group = True
        self._given: set[int] | None = None  # None until the group has given this member anything, or nothing

    def assign(self, topic: str, first: dict[int, int]) -> None:
        """Read these partitions from these offsets."""
        from confluent_kafka import TopicPartition

        self._in_group = False
        self._given = set(first)
        if self._ends is not None:
            self._ended = {number for number, offset in first.items() if offset >= self._ends[number]}
        self._consumer.assign(
            [
                TopicPartition(topic, number, offset)
                for number, offset in first.items()
                if number not in self._ended
            ]
        )

    def subscribe(self, topic: str) -> None:
        """Read as a member of the consumer's group."""

        def assigned(_: Any, given: list[Any]) -> None:
            self._given = (self._given or set()) | {one.partition for one in given}
            self._ended -= {one.partition for one in given}

        def revoked(_: Any, taken: list[Any]) -> None:
            # None left: the next ones come with the rebalance that this belongs to.
            self._given = ((self._given or set()) - {one.partition for one in taken}) or None

        self._consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)

    def batches(self, limit: Callable[[], int]) -> Iterator[list[Any]]:
        """Lists of messages before the ends, at most `limit()` a time, also empty ones.

        Raises KafkaException, KeyboardInterrupt.
        """
        last = heard = time.monotonic()
        while limit() > 0 and not self._done():
            # `consume` alone would wait until it has as many as it may take.
            try:
                first = self._consumer.poll(_WAIT_S)
                got = [] if first is None else [first, *self._consumer.consume(min(limit(), BATCH) - 1, 0)]
            except SystemError:
                # Ctrl-C while librdkafka calls back: confluent-kafka loses the KeyboardInterrupt on its way.
                raise KeyboardInterrupt from None
            wanted = [message for message in got if self._is_wanted(message)]
            now = time.monotonic()
            if wanted:
                last = now
            elif self._idle_s is not None and now - last > self._idle_s:
                return
            if got:
                heard = now
            elif now - heard > (_QUIET_S if self._watch.down else TIMEOUT_S):
                self._look_for_the_broker()
                heard = time.monotonic()
            yield wanted

    def _done(self) -> bool:
        return self._ends is not None and self._given is not None and self._given <= self._ended

    def _is_wanted(self, message: Any) -> bool:
        from confluent_kafka import KafkaError

        error = message.error()
        if error is not None:
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self._in_group:
                return False  # librdkafka looks for a coordinator all the same
            if error.code() != KafkaError._PARTITION_EOF:
                raise_error(error)
            self._ended.add(message.partition())
            return False
        if self._ends is None:
            return True
        end = self._ends[message.partition()]
        if message.offset() + 1 >= end:
            self._ended.add(message.partition())
        return bool(message.offset() < end)

    def _look_for_the_broker(self) -> None:
        """Nothing has come for a while: find out whether the broker is still there."""
        from confluent_kafka import KafkaException

        if self._ends is None and not self._watch.down:
            return  # with --follow it is right to wait
        try:
            self._consumer.list_topics(timeout=_QUIET_S if self._ends is None else REACH_S)
        except KafkaException as error:
            if self._ends is not None:
                fail(error, self._address)
            click.echo(f"leafcuttr: no broker answers at {self._address}; trying again", err=True)
        self._watch.down = False
