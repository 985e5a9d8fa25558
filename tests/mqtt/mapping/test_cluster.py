"""The other cluster is a LeafCuttr broker with sockets of its own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from leafcuttr.client.peer import open_remote_peer
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_mqtt.mapping import producer as module
from leafcuttr_mqtt.mapping.cluster import ClusterTurn, ClusterWriter
from leafcuttr_mqtt.mapping.rules import make_rules
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk.batches import partition_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.testing import RunningBroker, running_broker

RULES = make_rules({"a/#": "t", "b/+": "of-{1}", "c": "small", "a/x": "u"}, {"c": ""})


def open_peer(properties: Mapping[str, str]) -> AbstractAsyncContextManager[Peer]:
    """As `Broker.peer`."""
    logger = logging.getLogger("test")
    return open_remote_peer(properties, clock=SystemClock(), logger=logger, strict=True)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "cluster", {"num.partitions": 3}) as broker:
        yield broker


@asynccontextmanager
async def writing(servers: str, **properties: str) -> AsyncIterator[ClusterWriter]:
    writer = ClusterWriter(open_peer, servers, "proxy", properties, RULES, "letters")
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: writer.run(task_status=task_status))
        yield writer
        nursery.cancel_scope.cancel()


def put(writer: ClusterWriter, turn: ClusterTurn, topic: str, *payloads: bytes) -> None:
    for payload in payloads:
        turn.add(Message(topic, payload, 1, client_id="dev", arrived_ms=1234), writer.targets(topic))


async def write(turn: ClusterTurn) -> None:
    with trio.fail_after(60):
        while turn.pending:
            await turn.advance()
            assert turn.batches() == []


async def write_missing(writer: ClusterWriter, turn: ClusterTurn) -> None:
    """What a turn could not store, until it is stored."""
    with trio.fail_after(60):
        while turn.failures:
            later = writer.begin()
            for index, failure in turn.failures.items():
                assert failure.refused is None
                later.again(turn._messages[index][0], failure)
            await write(later)
            turn = later


async def test_records_are_stored_as_in_this_broker(cluster: RunningBroker) -> None:
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        assert not turn.pending
        put(writer, turn, "a/x", b"1", b"2", b"3")
        put(writer, turn, "b/y", b"4")
        turn.add(
            Message("a/z", b"5", 2, True, "dev", 1235, user_properties=(("u", "v"),)),
            writer.targets("a/z"),
            9,
        )
        await write(turn)
        assert not turn.failures
        found = cluster.consume("t", 4)
        assert [(r.key, r.value, r.timestamp) for r in found if r.key == b"a/x"] == [
            (b"a/x", b"1", 1234),
            (b"a/x", b"2", 1234),
            (b"a/x", b"3", 1234),
        ]
        assert all(record.partition == partition_of(record.key or b"", 3) for record in found)
        (last,) = [record for record in found if record.key == b"a/z"]
        assert last.headers == (
            ("mqtt.topic", b"a/z"),
            ("mqtt.qos", b"2"),
            ("mqtt.retain", b"true"),
            ("mqtt.client_id", b"dev"),
            ("mqtt.message.number", b"9"),
            ("u", b"v"),
        )
        assert [record.value for record in cluster.consume("of-y", 1)] == [b"4"]
        assert [record.value for record in cluster.consume("u", 3)] == [b"1", b"2", b"3"]


async def test_many_messages_in_many_turns_stay_in_their_order(cluster: RunningBroker) -> None:
    async with writing(cluster.bootstrap_servers) as writer:
        sent = 0
        for _ in range(5):
            turn = writer.begin()
            put(writer, turn, "a/y", *[b"%d" % (sent + n) for n in range(1000)])
            sent += 1000
            await write(turn)
            assert not turn.failures
        assert [int(record.value or b"") for record in cluster.consume("t", 5000)] == list(range(5000))


async def test_what_is_refused_for_good(cluster: RunningBroker) -> None:
    cluster.create_topic("small", configs={"max.message.bytes": "2000"})
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        put(writer, turn, "c", b"x" * 3000)
        put(writer, turn, "b/no name", b"1")
        put(writer, turn, "a/y", b"x" * 2_000_000, b"2")
        await write(turn)
        codes = {index: failure.refused and failure.refused.code for index, failure in turn.failures.items()}
        assert codes == {
            0: ReasonCode.QUOTA_EXCEEDED,
            1: ReasonCode.TOPIC_NAME_INVALID,
            2: ReasonCode.QUOTA_EXCEEDED,
        }
        assert [record.value for record in cluster.consume("t", 1)] == [b"2"]
        turn.dead_letter(0)
        await write(turn)
        assert sorted(turn.failures) == [1, 2]
        (letter,) = cluster.consume("letters", 1)
        assert (letter.key, letter.value) == (b"c", b"x" * 3000)
        assert dict(letter.headers)["mqtt.refused.topic"] == b"small"


async def test_a_topic_that_is_not_there_is_waited_for_unless_a_client_made_it_up(tmp_path: Path) -> None:
    with running_broker(tmp_path / "strict", {"auto.create.topics.enable": False}) as cluster:
        async with writing(
            cluster.bootstrap_servers, **{"topic.metadata.propagation.max.ms": "100"}
        ) as writer:
            turn = writer.begin()
            put(writer, turn, "a/y", b"1")
            put(writer, turn, "b/y", b"2")
            await write(turn)
            assert (turn.failures[0].refused, turn.failures[0].missing) == (None, ("t",))
            refused = turn.failures[1].refused
            assert refused is not None
            assert refused.code is ReasonCode.TOPIC_NAME_INVALID
            assert not writer.producer._topics, "what clients make up is not remembered"


async def test_a_cluster_that_is_away_keeps_nobody_waiting_for_ever(
    cluster: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MESSAGE_TIMEOUT_MS", 500)
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        put(writer, turn, "a/x", b"1")
        await write(turn)
        await write_missing(writer, turn)
        await trio.to_thread.run_sync(cluster.stop)
        turn = writer.begin()
        put(writer, turn, "a/x", b"2", b"3")
        await write(turn)
        assert [turn.failures[index].refused for index in (0, 1)] == [None, None]
        assert sorted(turn.failures[0].missing) == ["t", "u"]
        assert turn.failures[0].reason.startswith("Kafka topic ")
        await trio.to_thread.run_sync(cluster.start)
        await write_missing(writer, turn)
        for name in ("t", "u"):
            assert {record.value for record in cluster.consume(name)} == {b"1", b"2", b"3"}


async def test_too_much_under_way_is_not_taken(cluster: RunningBroker) -> None:
    servers = cluster.bootstrap_servers
    await trio.to_thread.run_sync(cluster.stop)
    async with writing(servers) as writer:
        outcomes: list[module.DeliveryError | None] = []
        for _ in range(70):
            writer.producer.send("t", b"k", b"x" * 990_000, (), 1, outcomes.append)
        with trio.fail_after(60):
            while not outcomes:
                await trio.sleep(0.01)
        assert outcomes[0] is not None
        assert outcomes[0].text == "too much is under way to the cluster"


async def test_properties_that_librdkafka_does_not_know() -> None:
    writer = ClusterWriter(open_peer, "localhost:1", "proxy", {"no.such.property": "1"}, RULES, "letters")
    with pytest.raises(
        PluginError, match=r"^the client of the other Kafka cluster cannot be made: .*no\.such\."
    ):
        await writer.run()


async def test_the_others_of_a_batch_that_one_record_spoils(cluster: RunningBroker) -> None:
    """They are stored in their order; the batch was refused as a whole."""
    cluster.create_topic("small", configs={"max.message.bytes": "2000"})
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        payloads = [b"%d" % number for number in range(100)]
        put(writer, turn, "c", *payloads[:60], b"x" * 3000, *payloads[60:])
        await write(turn)
        assert list(turn.failures) == [60]
        assert [record.value for record in cluster.consume("small", 100)] == payloads


async def test_batches_behind_one_that_is_refused_go_again_in_their_order(cluster: RunningBroker) -> None:
    """Several are under way: those behind it are refused because of it."""
    cluster.create_topic("small", configs={"max.message.bytes": "300000"})
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        payloads = [b"%d " % number * 300 for number in range(1500)]
        put(writer, turn, "c", *payloads[:100], b"x" * 400_000, *payloads[100:])
        await write(turn)
        assert list(turn.failures) == [100]
        assert [record.value for record in cluster.consume("small", 1500)] == payloads


async def test_what_is_stored_makes_place_for_more(cluster: RunningBroker) -> None:
    producer = module.ClusterProducer(open_peer, cluster.bootstrap_servers, "proxy", {}, 100_000)
    outcomes: list[module.DeliveryError | None] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: producer.run(task_status=task_status))
        for number in range(1, 6):
            producer.send("t", b"k", b"x" * 60_000, (), 1, outcomes.append)
            with trio.fail_after(60):
                while len(outcomes) < number:
                    await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert outcomes == [None] * 5


async def test_a_topic_that_was_deleted_is_made_again(cluster: RunningBroker) -> None:
    async with writing(cluster.bootstrap_servers) as writer:
        turn = writer.begin()
        put(writer, turn, "a/y", b"1")
        await write(turn)
        assert not turn.failures
        await trio.to_thread.run_sync(lambda: cluster.call(lambda inside: inside.topics.delete("t")))
        turn = writer.begin()
        put(writer, turn, "a/y", b"2")
        await write(turn)
        await write_missing(writer, turn)
        assert [record.value for record in cluster.consume("t", 1)] == [b"2"]


async def test_what_is_under_way_at_the_end_is_stored(cluster: RunningBroker) -> None:
    outcomes: list[module.DeliveryError | None] = []
    async with writing(cluster.bootstrap_servers) as writer:
        for number in range(50):
            writer.producer.send("t", b"k", b"%d" % number, (), 1, outcomes.append)
    assert outcomes == [None] * 50
    assert [int(record.value or b"") for record in cluster.consume("t", 50)] == list(range(50))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_batches_are_compressed(cluster: RunningBroker, codec: str) -> None:
    async with writing(cluster.bootstrap_servers, **{"compression.type": codec}) as writer:
        turn = writer.begin()
        put(writer, turn, "a/y", *[b"x" * 1000] * 200)
        await write(turn)
        assert not turn.failures
        assert len(cluster.consume("t", 200)) == 200
        size = sum(file.stat().st_size for file in cluster.data_dir.glob("t-*/*.log"))
        assert size < 60_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("linger.ms", "soon"), ("compression.type", "brotli"), ("message.max.bytes", "1 MB")],
)
async def test_properties_that_have_no_such_value(name: str, value: str) -> None:
    writer = ClusterWriter(open_peer, "localhost:1", "proxy", {name: value}, RULES, "letters")
    with pytest.raises(PluginError, match=r"^the client of the other Kafka cluster cannot be made: "):
        await writer.run()
