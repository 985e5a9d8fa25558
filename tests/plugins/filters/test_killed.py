"""SIGKILL while filters work: what was acknowledged is where it belongs, dead letters in their topic, and what a filter
took is nowhere."""

from __future__ import annotations

import itertools
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.waiting import until
from support.wire_client import WireClient

NOW = 1_700_000_000_000
WRITERS = 4
KINDS = b"kdlc"  # kept, dropped, a dead letter, changed


class Writer(threading.Thread):
    """Produces batches one after the other until the connection breaks. `answered` are the numbers of the records that
    were acknowledged, with their offsets."""

    def __init__(self, address: str, number: int, seed: int) -> None:
        super().__init__()
        self._address = address
        self._number = number
        self._chance = random.Random(seed + number)
        self.answered: list[tuple[bytes, int]] = []

    def run(self) -> None:
        idempotent = self._number % 2 == 0
        sequence = 0
        try:
            with WireClient(self._address) as wire:
                for turn in itertools.count():
                    count = self._chance.choice((1, 1, 3, 20))
                    rows = [
                        b"%c-%d-%d-%d" % (self._chance.choice(KINDS), self._number, turn, n)
                        for n in range(count)
                    ]
                    batch = encode_batch(
                        [Stored(n, NOW, None, row) for n, row in enumerate(rows)],
                        producer_id=7000 + self._number if idempotent else -1,
                        producer_epoch=0 if idempotent else -1,
                        base_sequence=sequence if idempotent else -1,
                    )
                    answer = wire.produce("t", batch, partition=self._number % 2)
                    if answer.error_code:
                        return
                    sequence += count
                    self.answered += [(row, answer.base_offset + n) for n, row in enumerate(rows)]
        except (OSError, EOFError):
            pass


def stored(
    broker: BrokerProcess, topic: str, partition: int
) -> Iterator[tuple[int, bytes, dict[str, bytes]]]:
    """Offset, value and headers of everything in a partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "none", "enable.partition.eof": True}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(60)
            assert message is not None
            if message.error():
                assert message.error().name() == "_PARTITION_EOF"
                return
            yield message.offset(), message.value(), dict(message.headers() or ())
    finally:
        consumer.close()


def run_once(folder: Path, plugins: Path, seed: int, point: str | None) -> None:
    """Kill the broker at a point, or at some moment, and check the log after the next start."""
    settings = {"lc.plugins.path": str(plugins)}
    arming = folder / "point"
    with running_broker(folder, settings, environ={"LEAFCUTTR_CRASH_POINT": f"@{arming}"}) as broker:
        librdkafka.create(broker.address, "t", partitions=2, lc_filters="sort")
        writers = [Writer(broker.address, number, seed) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        until(lambda: all(len(w.answered) > 20 for w in writers), "some answers")
        if point is not None:
            (folder / "point.new").write_text(point)
            (folder / "point.new").rename(arming)
            until(lambda: not broker.alive(), f"the kill at {point}")
        broker.stop(signal.SIGKILL)
        for writer in writers:
            writer.join()
    with running_broker(folder, settings) as broker:
        records = {p: {o: v for o, v, _ in stored(broker, "t", p)} for p in range(2)}
        letters = {p: list(stored(broker, "t.dlq", p)) for p in range(2)}
        by_place = {(p, int(h["lc.dead.letter.offset"])): v for p in range(2) for _, v, h in letters[p]}
        for writer in writers:
            partition = writer._number % 2
            for value, offset in writer.answered:
                kind = value[:1]
                if kind == b"l":
                    assert by_place[partition, offset] == value
                expected = {b"k": value, b"c": b"C" + value[1:]}.get(kind)
                assert records[partition].get(offset) == expected
        for partition in range(2):
            assert not [value for value in records[partition].values() if value[:1] not in (b"k", b"C")]
            # No offset was given twice: each dead letter stands for a place where nothing is.
            offsets = [int(headers["lc.dead.letter.offset"]) for _, _, headers in letters[partition]]
            assert len(offsets) == len(set(offsets))
            assert not set(offsets) & records[partition].keys()
            end = librdkafka.watermarks(broker.address, "t", partition)[1]
            answered = [o for w in writers if w._number % 2 == partition for _, o in w.answered]
            assert end > max(answered)
        # And it goes on.
        librdkafka.send(broker.address, "t", [b"k-again"], timestamp=NOW)


@pytest.mark.parametrize("point", ["append.published:3", "writer.written:4"])
def test_nothing_acknowledged_is_lost(tmp_path: Path, plugins: Path, point: str | None) -> None:
    run_once(tmp_path / "broker", plugins, 1, point)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_nothing_acknowledged_is_lost_at_any_moment(tmp_path: Path, plugins: Path, seed: int) -> None:
    points = ("append.published", "append.written", "writer.written", "append.staged")
    chance = random.Random(seed)
    run_once(tmp_path / "broker", plugins, seed, f"{chance.choice(points)}:{chance.randint(1, 400)}")
