"""Dead letters of a topic: read, and sent back as the records that they were."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka import Producer

from leafcuttr_sdk.batches import BatchBuilder
from leafcuttr_sdk.blocking_peers import BlockingPeer, open_peer
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.letters import Letter, read_letters, send_back
from support import librdkafka
from support.live_broker import LiveBroker

_NUMBERS = count()


@pytest.fixture
def peer(live: LiveBroker) -> Iterator[BlockingPeer]:
    with open_peer({"bootstrap.servers": live.address}) as found:
        yield found


@pytest.fixture
def topics(live: LiveBroker) -> tuple[str, str]:
    """Where records come from, and where their dead letters are."""
    number = next(_NUMBERS)
    names = (f"read-{number}", f"read-{number}-dead")
    librdkafka.create(live.address, names[0], 3)
    librdkafka.create(live.address, names[1], 2)
    return names


def write(address: str, topic: str, source: str | None, values: list[bytes], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number, value in enumerate(values):
        about = [("lc.dead.letter.reason", b"not JSON"), ("lc.dead.letter.step", b"sources.orders")]
        if source is not None:
            about += [("lc.dead.letter.topic", source.encode()), ("lc.dead.letter.timestamp", b"1234")]
        headers = [("a", b"1"), *about, ("b", None)]
        producer.produce(topic, value, b"key-%d" % number, partition=partition, headers=headers, timestamp=99)
    producer.flush(30)


def test_they_are_read_with_what_they_say(
    live: LiveBroker, peer: BlockingPeer, topics: tuple[str, str]
) -> None:
    source, dead = topics
    write(live.address, dead, source, [b"x", b"y"], partition=1)
    first, second = read_letters(peer, dead)
    assert first == Letter(
        (dead, 1), 0, 99, b"key-0", b"x", (("a", b"1"), ("b", None)),
        {"reason": "not JSON", "step": "sources.orders", "topic": source, "timestamp": "1234"},
    )  # fmt: skip
    assert (first.reason, first.step, first.topic) == ("not JSON", "sources.orders", source)
    assert second.value == b"y"


def test_a_topic_that_is_not_there(peer: BlockingPeer) -> None:
    with pytest.raises(PluginError, match="has no topic nowhere"):
        list(read_letters(peer, "nowhere"))


def test_each_is_sent_back_once(live: LiveBroker, peer: BlockingPeer, topics: tuple[str, str]) -> None:
    source, dead = topics
    group = f"{dead}-replay"
    write(live.address, dead, source, [b"x", b"y"])
    write(live.address, dead, source, [b"z"], partition=1)

    def send() -> int:
        return send_back(
            peer, read_letters(peer, dead, group), group, None, lambda letter: letter.value != b"y"
        )

    assert send() == 2
    assert send() == 0
    found = list(read_letters(peer, source))
    assert sorted(letter.value or b"" for letter in found) == [b"x", b"z"]
    assert {letter.key for letter in found} == {b"key-0"}
    assert {letter.headers for letter in found} == {(("a", b"1"), ("b", None))}
    assert {letter.at_ms for letter in found} == {1234}
    assert not any(letter.about for letter in found)
    write(live.address, dead, source, [b"new"])
    assert send() == 1


def test_to_another_topic(live: LiveBroker, peer: BlockingPeer, topics: tuple[str, str]) -> None:
    source, dead = topics
    write(live.address, dead, None, [b"x"])
    group = f"{dead}-to"
    with pytest.raises(PluginError, match="does not say which topic it came from: name one with --to"):
        send_back(peer, read_letters(peer, dead, group), group, None, lambda letter: True)
    with pytest.raises(PluginError, match="has no topic nowhere"):
        send_back(peer, read_letters(peer, dead, group), group, "nowhere", lambda letter: True)
    assert send_back(peer, read_letters(peer, dead, group), group, source, lambda letter: True) == 1
    assert [letter.value for letter in read_letters(peer, source)] == [b"x"]
    assert send_back(peer, read_letters(peer, dead, group), group, source, lambda letter: True) == 0


def test_from_the_middle_of_a_batch_on(peer: BlockingPeer, topics: tuple[str, str]) -> None:
    dead = TopicPartition(topics[1], 0)
    builder = BatchBuilder()
    for value in (b"x", b"y"):
        builder.add(value, 99)
    with peer.appender() as appender:
        appender.append([NewBatch(dead, builder.finish())])
    group = f"{dead.topic}-middle"
    peer.commit(group, {dead: CommittedOffset(1)})
    assert [letter.value for letter in read_letters(peer, dead.topic, group)] == [b"y"]
