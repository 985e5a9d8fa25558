"""Kafka Streams counts words with `exactly_once_v2` while it and the broker are killed: every count is exact."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from support import jars
from support.broker_process import Restarting
from support.librdkafka import create, watermarks
from support.streams_program import VERSION, StreamsProgram, streams_program
from support.waiting import until
from support.word_counts import SECONDS, Counts, check, send_lines

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Streams", version=VERSION),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
PARTITIONS = 3
LINES = 6000
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker", SETTINGS)
    yield one
    one.end()


def word_count(folder: Path, address: str, name: str = "streams") -> AbstractContextManager[StreamsProgram]:
    arguments = (address, "lines", "counts", "word-count", str(folder / f"{name}.state"))
    return streams_program(folder / f"{name}.out", "WordCount.java", *arguments)


def fill(address: str) -> Counter[str]:
    """Make the topics and the input; how often each word is in it."""
    for topic in ("lines", "counts"):
        create(address, topic, PARTITIONS)
    return send_lines({"bootstrap.servers": address}, "lines", LINES, PARTITIONS)


def test_word_count_through_kills(broker: Restarting, tmp_path: Path) -> None:
    """Streams is killed once and the broker is killed once, each with transactions under way."""
    expected = fill(broker.address)
    total = expected.total()
    counts = Counts({"bootstrap.servers": broker.address}, "counts", PARTITIONS)
    with word_count(tmp_path, broker.address) as program:
        program.start()
        counts.wait_for(total // 10)
        program.stop(signal.SIGKILL)
        program.start()
        counts.wait_for(total // 2)
        broker.restart(signal.SIGKILL)
        counts.wait_for(total)
        until(lambda: purged(broker.address), "the end of what has been counted", seconds=SECONDS)
        assert program.stop(signal.SIGTERM) == 143, program.tail()
    counts.close()
    check(counts, expected)


def purged(address: str) -> bool:
    """Whether Streams has deleted what it is done with: the records of its topic in between."""
    topic = "word-count-counts-repartition"
    return all(low > 0 for low, _ in (watermarks(address, topic, each) for each in range(PARTITIONS)))


def test_one_takes_over_from_another(broker: Restarting, tmp_path: Path) -> None:
    """Of two processes one is killed and stays away: the other goes on with its partitions, from its changelog."""
    expected = fill(broker.address)
    total = expected.total()
    counts = Counts({"bootstrap.servers": broker.address}, "counts", PARTITIONS)
    with (
        word_count(tmp_path, broker.address, "stays") as stays,
        word_count(tmp_path, broker.address, "goes") as goes,
    ):
        goes.start()
        counts.wait_for(total // 10)
        stays.start()
        goes.stop(signal.SIGKILL)
        counts.wait_for(total // 2)
        broker.restart(signal.SIGKILL)
        counts.wait_for(total)
        assert stays.stop(signal.SIGTERM) == 143, stays.tail()
    counts.close()
    check(counts, expected)
