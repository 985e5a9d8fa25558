"""Kafka Streams over SASL_SSL has the rights of the page, and no others: what is missing it names, and goes on once
it is given; each word is counted once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import jars
from support.needed_rights import STREAMS, Need, Rights, authorized_broker, client
from support.secured_broker import SecuredBroker
from support.streams_program import VERSION, streams_program
from support.waiting import until
from support.word_counts import SECONDS, Counts, check, send_lines

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Streams", version=VERSION),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(600),
]
LINES = 200
PARTITIONS = 2
Fresh = Callable[[str], str]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("streams")) as broker:
        yield broker


def begins(secured: SecuredBroker, app: str, partition: int) -> int:
    """The log start offset of the topic in between, of which Streams deletes what it is done with."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**secured.administrator, "group.id": "none"})
    try:
        return int(
            consumer.get_watermark_offsets(TopicPartition(f"{app}-counts-repartition", partition), 60)[0]
        )
    finally:
        consumer.close()


@pytest.mark.parametrize("missing", STREAMS, ids=str)
def test_a_right_is_missing(secured: SecuredBroker, fresh: Fresh, tmp_path: Path, missing: Need) -> None:
    app, rights = fresh("app"), Rights(secured)
    rights.give([one for one in STREAMS if one != missing], app)
    rights.create([f"in-{app}", f"out-{app}"], PARTITIONS)
    expected = send_lines(secured.administrator, f"in-{app}", LINES, PARTITIONS)
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in client(secured).items()))
    words = (f"in-{app}", f"out-{app}", app, str(tmp_path / "state"), str(settings))
    counts = Counts(secured.administrator, f"out-{app}", PARTITIONS)
    with streams_program(
        tmp_path / "out", "WordCount.java", client(secured)["bootstrap.servers"], *words
    ) as program:
        program.begin()
        rights.wait_for(missing, app, program.said)
        if missing.operation == "delete":
            counts.wait_for(expected.total())
            assert {begins(secured, app, each) for each in range(PARTITIONS)} == {0}
        rights.give([missing], app)
        counts.wait_for(expected.total())
        until(
            lambda: all(begins(secured, app, each) > 0 for each in range(PARTITIONS)),
            "the end of what has been counted",
            seconds=SECONDS,
        )
        assert program.stop(signal.SIGTERM) == 143, program.tail()
    counts.close()
    check(counts, expected)
