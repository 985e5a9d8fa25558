"""`Broker.producer`: what is sent without waiting is written together, in its order, and each receipt says its own."""

import gc
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

import leafcuttr.log.append.commit as commit_module
from leafcuttr.plugins.facade.producer import producer as producer_module
from leafcuttr.plugins.facade.producing import RecordBatches
from leafcuttr.runtime import pacing
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk import (
    Broker,
    BrokerError,
    Principal,
    Produced,
    ProducerFullError,
    Receipt,
    Record,
    StoredRecord,
    TopicPartition,
    act_for,
    current_principal,
)
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.errors import (
    InvalidRecord,
    InvalidTimestamp,
    InvalidTopic,
    MessageTooLarge,
    RequestTimedOut,
    StorageError,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.producer import RECORD_BYTES
from plugins.facade.conftest import PLUGIN, Open
from support.waiting import eventually

SYNC = {"lc.log.sync.always": "true"}
LOGGER = f"leafcuttr.plugin.{PLUGIN.name}"


async def stored(view: Broker, topic: str) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    positions = {TopicPartition(topic, number): 0 for number in range(view.topics.partition_count(topic))}
    while (fetched := await view.fetch(positions)).records:
        found += fetched.records
        positions = fetched.positions
    return found


async def values(view: Broker, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in await stored(view, topic)]


async def batch_sizes(view: Broker, topic: str = "t", partition: int = 0) -> list[int]:
    read = await view.read_batches(TopicPartition(topic, partition), 0)
    return [batch.header.count for batch in batches_in(read.data)]


def error_of(receipt: Receipt) -> BrokerError:
    with pytest.raises(BrokerError) as raised:
        receipt.result()
    return raised.value


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many buffers each write of a log had."""
    made: list[int] = []
    real = commit_module.write_all

    def write(fd: int, views: list[Any], position: int, size: int) -> None:
        made.append(len(views))
        real(fd, views, position, size)

    monkeypatch.setattr(commit_module, "write_all", write)
    return made


class Gate:
    """Holds an async method of the broker until it is opened; `reached` once somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, target: object, name: str) -> None:
        self.reached = trio.Event()
        self._opened = trio.Event()
        real = getattr(target, name)

        async def held(*args: Any, **kwargs: Any) -> Any:
            self.reached.set()
            await self._opened.wait()
            return await real(*args, **kwargs)

        monkeypatch.setattr(target, name, held)

    def open(self) -> None:
        self._opened.set()


# --- sending and reading ------------------------------------------------------------------------------------


async def test_a_receipt_says_where_its_record_went(view: Broker, clock: Any) -> None:
    await view.topics.create("t", partitions=3)
    async with view.producer() as producer:
        receipt = producer.send("t", Record(b"v", b"k", (("h", None), ("i", b"1")), 77), partition=1)
        assert not receipt.done
        with pytest.raises(trio.WouldBlock):
            receipt.result()
        assert await receipt == Produced("t", 1, 0, 77)
        assert receipt.done and receipt.result() == await receipt == Produced("t", 1, 0, 77)
        now = await producer.send("t", Record(None, b"k"))
        assert (
            now.timestamp == clock.now_ms()
            and now.partition == (await view.produce("t", b"", b"k")).partition
        )
    first = (await stored(view, "t"))[0]
    assert {first.value, first.key} <= {b"v", b"k", None, b""}
    assert StoredRecord("t", 1, 0, 77, b"k", b"v", (("h", None), ("i", b"1"))) in await stored(view, "t")


async def test_what_comes_in_a_turn_is_one_batch_and_one_write(view: Broker, writes: list[int]) -> None:
    await view.topics.create("t")
    seen: list[Produced] = []

    async def send(number: int) -> None:
        seen.append(await producer.send("t", Record(b"%d" % number)))

    async with view.producer() as producer:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(send, number)
    assert writes == [1, 1] and await batch_sizes(view) == [50, 50]
    assert sorted(each.offset for each in seen) == list(range(100))


async def test_many_topics_share_the_write_of_a_turn(view: Broker, writes: list[int]) -> None:
    for name in ("a", "b", "c"):
        await view.topics.create(name)
    async with view.producer() as producer:
        receipts = [producer.send(name, Record(b"%d" % n)) for n in range(4) for name in ("a", "b", "c")]
        await trio.testing.wait_all_tasks_blocked()
        assert all(receipt.done for receipt in receipts)
    assert writes == [1, 1, 1]
    for name in ("a", "b", "c"):
        assert await values(view, name) == [b"0", b"1", b"2", b"3"]
        assert await batch_sizes(view, name) == [4]


@pytest.mark.parametrize("count", [1, 3])
async def test_dropped_receipts_change_nothing(view: Broker, count: int) -> None:
    await view.topics.create("t")
    async with view.producer() as producer:
        for number in range(count):
            producer.send("t", Record(b"%d" % number))
        await trio.testing.wait_all_tasks_blocked()
        assert await values(view) == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("configs", [{}, SYNC], ids=["buffered", "synced"])
@pytest.mark.parametrize("count", [1, 7, 1200])
async def test_flush_waits_for_everything_before_it(
    view: Broker, configs: dict[str, str], count: int
) -> None:
    await view.topics.create("t", configs=configs)
    async with view.producer() as producer:
        for turn in range(3):
            receipts = [producer.send("t", Record(b"%d" % n)) for n in range(count)]
            await producer.flush()
            assert [receipt.result().offset for receipt in receipts] == [
                turn * count + n for n in range(count)
            ]
        assert producer.held_bytes == 0
        await producer.flush()


async def test_several_tasks_may_await_one_receipt(view: Broker) -> None:
    await view.topics.create("t", configs=SYNC)
    seen: list[Produced] = []

    async def wait(receipt: Receipt) -> None:
        seen.append(await receipt)

    async with view.producer() as producer, trio.open_nursery() as nursery:
        receipt = producer.send("t", Record(b"v"))
        for _ in range(3):
            nursery.start_soon(wait, receipt)
        with trio.CancelScope() as scope:
            nursery.start_soon(wait, receipt)
            scope.cancel()
            await receipt
        assert scope.cancelled_caught
    assert seen == [Produced("t", 0, 0, seen[0].timestamp)] * 4


@pytest.mark.parametrize("configs", [{}, SYNC], ids=["buffered", "synced"])
async def test_a_cancelled_wait_leaves_the_record(view: Broker, configs: dict[str, str]) -> None:
    """Also where that task would have led the write."""
    await view.topics.create("t", configs=configs)
    async with view.producer() as producer:
        first, second = producer.send("t", Record(b"1")), producer.send("t", Record(b"2"))
        for receipt in (first, second):
            with trio.CancelScope() as scope:
                scope.cancel()
                await receipt
            assert scope.cancelled_caught
        assert ((await first).offset, (await second).offset) == (0, 1)
    assert await values(view) == [b"1", b"2"]


async def test_awaiting_is_a_checkpoint(view: Broker) -> None:
    await view.topics.create("t")
    async with view.producer() as producer:
        receipt = producer.send("t", Record(b"v"))
        for _ in range(2):
            with trio.testing.assert_checkpoints():
                await receipt
        for wait in (producer.flush, producer.room):
            with trio.testing.assert_checkpoints():
                await wait()
        with trio.testing.assert_no_checkpoints():
            producer.send("t", Record(b"v"))


# --- order --------------------------------------------------------------------------------------------------


async def test_the_order_of_a_partition_is_that_of_the_sends(view: Broker) -> None:
    """However the writes fall."""
    await view.topics.create("t", partitions=2, configs=SYNC)
    await view.topics.create("u", partitions=2)
    sent: dict[tuple[str, int], list[bytes]] = {(topic, n): [] for topic in "tu" for n in range(2)}
    chooser = random.Random(7)
    async with view.producer() as producer:
        for number in range(3000):
            topic, partition = chooser.choice("tuv"), chooser.randrange(2)
            if topic == "v":  # created on the way, with one partition
                partition = 0
            producer.send(topic, Record(b"%d" % number), partition=partition)
            sent.setdefault((topic, partition), []).append(b"%d" % number)
            match chooser.randrange(200):
                case 0:
                    await producer.flush()
                case 1:
                    await producer.send(topic, Record(b"mark"), partition=partition)
                    sent[topic, partition].append(b"mark")
                case 2 | 3:
                    await trio.lowlevel.checkpoint()
    found: dict[tuple[str, int], list[bytes]] = {}
    for topic in "tuv":
        for record in await stored(view, topic):
            found.setdefault((topic, record.partition), []).append(record.value or b"")
    assert found == sent and len(found) == 5


async def test_a_topic_that_is_created_keeps_its_order_and_holds_up_no_other(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await view.topics.create("there")
    gate = Gate(monkeypatch, core.topics, "ensure")
    async with view.producer() as producer, trio.open_nursery() as nursery:
        new = [producer.send("new", Record(b"%d" % n)) for n in range(3)]
        await gate.reached.wait()
        other = producer.send("there", Record(b"v"))
        new += [producer.send("new", Record(b"%d" % n)) for n in range(3, 6)]
        assert (await other).offset == 0
        flushed = trio.Event()

        async def flush() -> None:
            await producer.flush()
            flushed.set()

        nursery.start_soon(flush)
        await trio.testing.wait_all_tasks_blocked()
        assert not any(receipt.done for receipt in new) and not flushed.is_set()
        gate.open()
        await flushed.wait()
        assert [receipt.result().offset for receipt in new] == list(range(6))
        assert (await producer.send("new", Record(b"6"))).offset == 6
    assert await values(view, "new") == [b"%d" % n for n in range(7)]


@pytest.mark.timeout(60)  # nothing else would end a flush that waits for what is lost
async def test_what_is_sent_while_the_writer_has_records_of_a_new_topic_keeps_the_order(view: Broker) -> None:
    """Many records are left to the writer. What is sent before it has its turn comes to the same topic that does not
    exist. trio runs the tasks of a turn in either order: with ten topics both come about."""
    async with view.producer() as producer:
        for topic in (f"new-{number}" for number in range(10)):
            sent: list[Receipt] = []

            async def later(topic: str = topic, sent: list[Receipt] = sent) -> None:
                for _ in range(3):
                    sent.append(producer.send(topic, Record(b"%d" % len(sent))))
                    await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                sent.append(producer.send(topic, Record(b"0")))  # wakes the writer
                nursery.start_soon(later)
                sent += [producer.send(topic, Record(b"%d" % n)) for n in range(1, 501)]
                await sent[0]
            await producer.flush()
            assert [receipt.result().offset for receipt in sent] == list(range(504))
            assert await values(view, topic) == [b"%d" % n for n in range(504)]


async def test_a_topic_that_cannot_be_created_is_the_error_of_its_records(open_core: Open) -> None:
    from leafcuttr.plugins.facade.opening import make_broker_view

    view = make_broker_view(open_core(auto_create_topics_enable="false"), PLUGIN)
    await view.topics.create("there")
    async with view.producer() as producer:
        missing = [producer.send("missing", Record(b"v")) for _ in range(3)]
        there = producer.send("there", Record(b"v"))
        own = producer.send("__consumer_offsets", Record(b"v"))
        await producer.flush()
        assert there.result().offset == 0
        assert {type(error_of(each)) for each in missing} == {UnknownTopicOrPartition}
        assert isinstance(error_of(own), InvalidTopic)
        with pytest.raises(UnknownTopicOrPartition):
            await producer.send("missing", Record(b"v"))
        await view.topics.create("missing")
        assert (await producer.send("missing", Record(b"v"))).offset == 0
    assert producer.held_bytes == 0


async def test_a_name_that_no_topic_may_have(view: Broker) -> None:
    async with view.producer() as producer:
        with pytest.raises(InvalidTopic):
            await producer.send("no/name", Record(b"v"))
        with pytest.raises(InvalidTopic):
            await producer.send("__transaction_state", Record(b"v"))


# --- errors -------------------------------------------------------------------------------------------------

BAD: list[tuple[Record, int | None, type[BrokerError]]] = [
    (Record(b"x" * 2000, b"k"), None, MessageTooLarge),
    (Record(b"v", b"k", (("\ud83d", b""),)), None, InvalidRecord),
    (Record(b"v", b"k", (), -5), None, InvalidTimestamp),
    (Record(b"v"), None, InvalidRecord),
    (Record(b"v", b"k"), 2, UnknownTopicOrPartition),
]


@pytest.mark.parametrize("number", range(len(BAD)))
@pytest.mark.parametrize("among", [0, 5])
async def test_a_record_is_refused_alone(view: Broker, number: int, among: int) -> None:
    configs = {"max.message.bytes": "1000", "cleanup.policy": "compact"}
    await view.topics.create("t", partitions=2, configs=configs)
    record, partition, kind = BAD[number]
    async with view.producer() as producer:
        before = [producer.send("t", Record(b"b%d" % n, b"k")) for n in range(among)]
        bad = producer.send("t", record, partition=partition)
        after = [producer.send("t", Record(b"a%d" % n, b"k")) for n in range(among)]
        with pytest.raises(kind) as raised:
            await bad
        (told,) = await view.produce_batch("t", [record], partitions=[partition])
        assert str(raised.value) == str(told) and type(told) is type(raised.value)
        await producer.flush()
    assert [each.result().offset for each in (*before, *after)] == list(range(2 * among))
    assert len(await values(view)) == 2 * among


async def test_a_full_disk_is_everybodys_error_for_as_long_as_it_is_full(view: Broker, core: Core) -> None:
    await view.topics.create("t")
    resources = core.logs.directories[0]._resources
    async with view.producer() as producer:
        for count in (1, 4):
            resources.refusal = "the disk is full"
            receipts = [producer.send("t", Record(b"v")) for _ in range(count)]
            await producer.flush()
            assert {str(error_of(each)) for each in receipts} == {"the disk is full"}
            resources.refusal = None
            assert (await producer.send("t", Record(b"v"))).topic == "t"


async def test_one_error_of_many_records_may_be_raised_by_all(view: Broker, core: Core) -> None:
    await view.topics.create("t", configs=SYNC)
    core.logs.directories[0]._resources.refusal = "the disk is full"
    async with view.producer() as producer, trio.open_nursery() as nursery:

        async def expect(receipt: Receipt) -> None:
            with pytest.raises(StorageError, match="the disk is full"):
                await receipt

        for _ in range(20):
            nursery.start_soon(expect, producer.send("t", Record(b"v")))


@pytest.mark.parametrize("count", [1, 3, 700])
async def test_an_unexpected_error_is_that_of_its_records(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    await view.topics.create("t")

    def broken(*_: object, **__: object) -> None:
        raise LookupError("a bug")

    async with view.producer() as producer:
        with monkeypatch.context() as patched:
            patched.setattr(core.appender, "begin", broken)
            patched.setattr(core.appender, "_turn", broken)
            receipts = [producer.send("t", Record(b"v")) for _ in range(count)]
            await producer.flush()
        assert {type(error_of(each)) for each in receipts} == {UnknownServerError}
        assert (await producer.send("t", Record(b"fine"))).offset == 0
    assert "writing the records of a producer failed" in caplog.text


async def test_a_topic_that_is_deleted_and_one_that_is_offline(view: Broker, core: Core) -> None:
    await view.topics.create("t", partitions=2)
    async with view.producer() as producer:
        core.topics.by_name["t"].partitions[1].log.take_offline("a test says so")
        spread = [producer.send("t", Record(b"x" * 1000)) for _ in range(100)]
        with pytest.raises(StorageError, match="a test says so"):
            await producer.send("t", Record(b"v"), partition=1)
        assert {each.result().partition for each in spread} == {0}
        for _ in range(40):  # one at a time, also where the sticky partition has been used up
            assert (await producer.send("t", Record(b"x" * 1000))).partition == 0
        await view.topics.delete("t")
        assert (await producer.send("t", Record(b"v"))).offset == 0  # created again


async def test_a_lone_record_leaves_a_partition_that_goes_offline(view: Broker, core: Core) -> None:
    await view.topics.create("t", partitions=2)
    async with view.producer() as producer:
        first = await producer.send("t", Record(b"v"))
        core.topics.by_name["t"].partitions[first.partition].log.take_offline("a test says so")
        assert (await producer.send("t", Record(b"v"))).partition == 1 - first.partition


@pytest.mark.parametrize(
    ("topic", "record"),
    [
        ("t", Record("text")),  # type: ignore[arg-type]
        ("t", Record(bytearray(b"may change"))),  # type: ignore[arg-type]
        ("t", Record(b"v", "key")),  # type: ignore[arg-type]
        ("t", Record(b"v", None, ((b"name", b""),))),  # type: ignore[arg-type]
        ("t", Record(b"v", None, (("name", "text"),))),  # type: ignore[arg-type]
        ("t", Record(b"v", None, (), 1.5)),  # type: ignore[arg-type]
        (b"t", Record(b"v")),
        (None, Record(b"v")),
    ],
)
async def test_what_is_no_record_is_the_senders_mistake(view: Broker, topic: Any, record: Record) -> None:
    await view.topics.create("t")
    async with view.producer() as producer:
        kept = producer.send("t", Record(b"fine"))
        with pytest.raises(TypeError, match="cannot be of type"):
            producer.send(topic, record)
        assert (await kept).offset == 0 and producer.held_bytes == 0
    assert await values(view) == [b"fine"]


@pytest.mark.parametrize("partition", ["0", 0.0])
async def test_what_is_no_partition_is_the_senders_mistake_alone(view: Broker, partition: Any) -> None:
    await view.topics.create("t")
    async with view.producer() as producer:
        kept = producer.send("t", Record(b"fine"))
        with pytest.raises(TypeError, match="partition of a record cannot be of type"):
            producer.send("t", Record(b"v"), partition=partition)
        assert (await kept).offset == 0 and producer.held_bytes == 0


@pytest.mark.parametrize("options", [{"max_bytes": 0}, {"linger_s": -1}, {"linger_s": float("inf")}])
async def test_options_that_cannot_be(view: Broker, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least"):
        async with view.producer(**options):
            pass


# --- many ---------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_many_records_topics_and_partitions(view: Broker, writes: list[int]) -> None:
    await view.topics.create("wide", partitions=200)
    await view.topics.create("long")
    async with view.producer() as producer:
        wide = [producer.send("wide", Record(b"v"), partition=n) for n in range(200)]
        await producer.flush()
        assert [each.result().partition for each in wide] == list(range(200)) and len(writes) == 200
        long = [producer.send("long", Record(b"%d" % n)) for n in range(10_000)]
        assert (await long[5000]).offset == 5000
        await producer.flush()
        assert [each.result().offset for each in long] == list(range(10_000))
        topics = [f"t{n}" for n in range(60)]
        many = [producer.send(topic, Record(b"%d" % n)) for n in range(3) for topic in topics]
        await producer.flush()
        assert [each.result().offset for each in many] == [n for n in range(3) for _ in topics]
    assert len(await values(view, "long")) == 10_000


async def test_the_answers_of_many_topics_are_given_in_turns(
    view: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [f"t{number}" for number in range(60)]
    for topic in topics:
        await view.topics.create(topic)
    monkeypatch.setattr(pacing, "TURN_S", 0.0)
    answered = [0]  # in each step of a task
    real = RecordBatches.answer

    def answer(*arguments: Any) -> None:
        answered[-1] += 1
        real(*arguments)

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            answered.append(0)

    monkeypatch.setattr(RecordBatches, "answer", answer)
    async with view.producer() as producer:
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        sent = [producer.send(topic, Record(b"v")) for topic in topics]
        await producer.flush()
        trio.lowlevel.remove_instrument(steps)
        assert {receipt.result().offset for receipt in sent} == {0}
    assert sum(answered) == 60 and max(answered) == 1


async def test_a_large_record_goes_through_a_worker(view: Broker) -> None:
    await view.topics.create("t", configs={"max.message.bytes": "20000000", "compression.type": "zstd"})
    large = random.Random(1).randbytes(9_000_000)
    async with view.producer() as producer:
        assert (await producer.send("t", Record(large, b"k"))).offset == 0
        # Compressed anew, which takes more than a moment.
        assert (await producer.send("t", Record(b"x" * 100_000))).offset == 1
    assert await values(view) == [large, b"x" * 100_000]


@pytest.mark.parametrize("synced_first", [True, False])
async def test_what_is_sent_during_a_write_makes_the_next_one(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, synced_first: bool
) -> None:
    await view.topics.create("t", configs=SYNC)
    await view.topics.create("u")
    gate = Gate(monkeypatch, core.appender, "complete")
    async with view.producer() as producer:
        first = producer.send("t", Record(b"first"))
        await gate.reached.wait()
        second = []
        for topic in ("t", "u") if synced_first else ("u", "t"):
            second += [producer.send(topic, Record(b"%d" % n)) for n in range(3)]
            await trio.lowlevel.checkpoint()
        assert not first.done and not any(each.done for each in second)
        gate.open()
        await producer.flush()
    assert await batch_sizes(view, "t") == [1, 3] and await batch_sizes(view, "u") == [3]


async def test_a_synced_record_is_on_the_disk_before_its_receipt_is_done(view: Broker, core: Core) -> None:
    await view.topics.create("t", configs=SYNC)
    async with view.producer() as producer:
        for count in (1, 5):
            for receipt in [producer.send("t", Record(b"v")) for _ in range(count)]:
                offset = (await receipt).offset
                log = core.logs.logs[TopicPartition("t", 0)]
                assert log.high_watermark > offset and log.unflushed == 0


# --- bounds and lingers -------------------------------------------------------------------------------------


async def test_a_full_producer_says_so_and_room_waits(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await view.topics.create("t", configs=SYNC)
    gate = Gate(monkeypatch, core.appender, "complete")
    one = RECORD_BYTES + 100
    async with view.producer(max_bytes=2 * one) as producer:
        await producer.room()
        assert producer.held_bytes == 0
        producer.send("t", Record(b"x" * 50, b"k" * 20, (("name", b"x" * 26),)))
        assert producer.held_bytes == one
        await gate.reached.wait()
        producer.send("t", Record(b"x" * 99))
        producer.send("t", Record(b"x" * 100_000))  # one more, whatever its size
        with pytest.raises(ProducerFullError, match=f"its max_bytes are {2 * one}"):
            producer.send("t", Record(b"v"))
        entered: list[int] = []

        async def enter(number: int) -> None:
            await producer.room()
            entered.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(enter, number)
            with trio.move_on_after(0) as scope:
                await producer.room()
            assert scope.cancelled_caught
            await trio.testing.wait_all_tasks_blocked()
            assert entered == []
            gate.open()
        assert sorted(entered) == [0, 1, 2]
        assert (await producer.send("t", Record(b"last"))).offset == 3
    assert len(await values(view)) == 4


async def test_tasks_that_send_more_than_there_is_room_for(view: Broker) -> None:
    await view.topics.create("t")
    held: list[int] = []

    async def send(producer: Any, name: int) -> None:
        for number in range(100):
            while True:
                try:
                    producer.send("t", Record(b"%d %d" % (name, number)))
                except ProducerFullError:
                    await producer.room()
                else:
                    break
            held.append(producer.held_bytes)

    async with view.producer(max_bytes=5000, linger_s=100) as producer, trio.open_nursery() as nursery:
        for name in range(10):
            nursery.start_soon(send, producer, name)
    found = await values(view)
    for name in range(10):
        own = [each for each in found if each and each.startswith(b"%d " % name)]
        assert own == [b"%d %d" % (name, number) for number in range(100)]
    assert max(held) < 5000 + RECORD_BYTES + 10


async def test_a_linger_gathers_what_comes_in_its_time(
    view: Broker, mock_clock: trio.testing.MockClock
) -> None:
    await view.topics.create("t")
    async with view.producer(linger_s=5) as producer:
        receipts: list[Receipt] = []
        for _ in range(2):  # it begins with the first record
            mock_clock.jump(60)
            for _ in range(4):
                receipts.append(producer.send("t", Record(b"v")))
                await trio.testing.wait_all_tasks_blocked()
                mock_clock.jump(1.2)
                await trio.testing.wait_all_tasks_blocked()
            assert not receipts[-1].done
            mock_clock.jump(0.3)
            await trio.testing.wait_all_tasks_blocked()
            assert all(receipt.done for receipt in receipts)
    assert await batch_sizes(view) == [4, 4]


@pytest.mark.parametrize("how", ["flush", "half full", "full", "room", "closed"])
async def test_a_linger_is_cut_short(
    view: Broker, mock_clock: trio.testing.MockClock, how: str, writes: list[int]
) -> None:
    await view.topics.create("t")
    async with view.producer(linger_s=1000, max_bytes=4 * RECORD_BYTES) as producer:
        receipt = producer.send("t", Record(b""))
        await trio.testing.wait_all_tasks_blocked()
        assert not writes
        match how:
            case "flush":
                await producer.flush()
            case "half full":
                producer.send("t", Record(b""))
                await trio.testing.wait_all_tasks_blocked()
            case "full":
                producer.send("t", Record(b"x" * 4 * RECORD_BYTES))
                with pytest.raises(ProducerFullError):
                    producer.send("t", Record(b""))
                await receipt
            case "room":
                producer.send("t", Record(b"x" * 4 * RECORD_BYTES))
                await producer.room()
            case _:
                pass
        assert receipt.done == (how != "closed")
    assert receipt.done and writes == [1]
    assert mock_clock.current_time() < 1


async def test_after_a_flush_the_next_records_linger_again(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    await view.topics.create("t")
    async with view.producer(linger_s=5) as producer:
        for _ in range(2):
            producer.send("t", Record(b"v"))
            await producer.flush()
            mock_clock.jump(4)
            late = producer.send("t", Record(b"v"))
            mock_clock.jump(4)
            await trio.testing.wait_all_tasks_blocked()
            assert not late.done
            mock_clock.jump(2)
            await trio.testing.wait_all_tasks_blocked()
            assert late.done


async def test_a_flush_during_a_write_cuts_the_next_linger_short(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    await view.topics.create("t", configs=SYNC)
    gate = Gate(monkeypatch, core.appender, "complete")
    async with view.producer(linger_s=1000) as producer, trio.open_nursery() as nursery:
        producer.send("t", Record(b"1"))
        nursery.start_soon(producer.flush)
        await gate.reached.wait()
        late = producer.send("t", Record(b"2"))
        nursery.start_soon(producer.flush)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
        assert (await late).offset == 1
    assert mock_clock.current_time() < 1


async def test_a_full_producer_does_not_linger(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    """Also where most of what it holds waits for a topic."""
    await view.topics.create("t")
    gate = Gate(monkeypatch, core.topics, "ensure")
    async with view.producer(linger_s=1000, max_bytes=10_000) as producer:
        producer.send("new", Record(b"x" * 9_000))
        await gate.reached.wait()
        receipt = producer.send("t", Record(b"x" * 600))
        with pytest.raises(ProducerFullError):
            while True:
                producer.send("new", Record(b"v"))
        assert (await receipt).offset == 0
        gate.open()
    assert mock_clock.current_time() < 1


# --- its end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linger_s", [0.0, 1000.0])
async def test_at_its_end_everything_is_stored(view: Broker, linger_s: float) -> None:
    await view.topics.create("t")
    async with view.producer(linger_s=linger_s) as producer:
        receipts = [producer.send(topic, Record(b"v")) for topic in ("t", "new", "t")]
    assert [each.result().offset for each in receipts] == [0, 0, 1]
    for call in (partial(producer.send, "t", Record(b"v")), producer.room):
        with pytest.raises(trio.ClosedResourceError):
            await call()  # type: ignore[misc]
    await producer.flush()
    assert (await receipts[2]).offset == 1


async def test_who_waits_for_room_hears_of_the_end(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await view.topics.create("t", configs=SYNC)
    gate = Gate(monkeypatch, core.appender, "complete")
    ended: list[bool] = []

    async def wait(producer: Any) -> None:
        with pytest.raises(trio.ClosedResourceError):
            await producer.room()
        ended.append(receipt.done)

    async with trio.open_nursery() as nursery, view.producer(max_bytes=1) as producer:
        receipt = producer.send("t", Record(b"v"))
        nursery.start_soon(wait, producer)
        await gate.reached.wait()
        nursery.start_soon(_call_soon, gate.open)
    assert ended and receipt.done


async def _call_soon(call: Callable[[], object]) -> None:
    await trio.testing.wait_all_tasks_blocked()
    call()


async def test_an_error_of_the_body_is_raised_as_it_is(view: Broker) -> None:
    await view.topics.create("t")
    with pytest.raises(LookupError, match="mine"):
        async with view.producer(linger_s=1000) as producer:
            receipt = producer.send("t", Record(b"v"))
            raise LookupError("mine")
    assert receipt.result().offset == 0


@pytest.mark.parametrize("configs", [{}, SYNC], ids=["buffered", "synced"])
@pytest.mark.parametrize("count", [1, 600])
async def test_cancelled_it_still_writes_what_was_sent(
    view: Broker, configs: dict[str, str], count: int
) -> None:
    await view.topics.create("t", configs=configs)
    with trio.CancelScope() as scope:
        async with view.producer(linger_s=1000) as producer:
            receipts = [producer.send("t", Record(b"v")) for _ in range(count)]
            scope.cancel()
            await trio.sleep_forever()
    assert [each.result().offset for each in receipts] == list(range(count))


async def test_cancelled_it_does_not_wait_for_long(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    await view.topics.create("t", configs=SYNC)
    began = trio.current_time()
    gate = Gate(monkeypatch, core.appender, "complete")
    with trio.CancelScope() as scope:
        async with view.producer() as producer:
            receipts = [producer.send("t", Record(b"v"))]
            await gate.reached.wait()
            receipts.append(producer.send("t", Record(b"v")))
            receipts.append(producer.send("u", Record(b"v")))
            scope.cancel()
            await trio.sleep_forever()
    assert trio.current_time() - began == producer_module.END_S
    assert {type(error_of(each)) for each in receipts} == {RequestTimedOut}
    assert producer.held_bytes == 0


# --- filters, validators, principals ------------------------------------------------------------------------


def stamp(record: Record) -> Record:
    return record._replace(headers=(("by", str(current_principal()).encode()),))


def short(record: Record) -> str | None:
    return None if len(record.value or b"") < 10 else "too long"


async def make_topics(view: Broker, core: Core) -> None:
    """Topics t and u, whose filter notes the principal, and one without filters."""
    core.chains.equip(
        Tables({"stamp": lambda *_: Instance("tests", stamp)}, {"short": lambda *_: Instance("tests", short)})
    )
    await view.topics.create("t", configs={"lc.filters": "stamp", "lc.validators": "short"})
    await view.topics.create("u", configs={"lc.filters": "stamp"})
    await view.topics.create("plain")


async def test_filters_see_the_principal_of_each_sender(view: Broker, core: Core) -> None:
    await make_topics(view, core)
    people = [Principal("User", "a"), Principal("User", "b"), None]

    async def send(number: int) -> None:
        act_for(people[number % 3])
        for topic in ("t", "plain", "u"):
            receipts.append(producer.send(topic, Record(b"%d" % number)))
        if number == 5:
            await producer.flush()
            assert all(each.done for each in receipts)
        assert current_principal() is people[number % 3]

    for count in (1, 9, 600):
        receipts: list[Receipt] = []
        async with view.producer() as producer, trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(send, number)
        assert all(each.result() for each in receipts) and len(receipts) == 3 * count
        for topic in ("t", "u"):
            found = (await stored(view, topic))[-count:]
            assert sorted(int(each.value or b"") for each in found) == list(range(count))
            for each in found:
                assert each.headers == (("by", str(people[int(each.value or b"") % 3]).encode()),)
    assert len(await values(view, "plain")) == 610
    assert await batch_sizes(view, "plain") == [1, 9, 600]  # where nobody sees them they are not told apart


async def test_who_writes_for_others_stays_who_it_is(view: Broker, core: Core) -> None:
    await make_topics(view, core)

    async def send() -> None:
        act_for(Principal("User", "sender"))
        for _ in range(2):
            producer.send("t", Record(b"v"))

    async with view.producer() as producer:
        for _ in range(20):  # the writer may be faster
            act_for(Principal("User", "flushes"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                await trio.lowlevel.checkpoint()
                await producer.flush()
            assert current_principal() == Principal("User", "flushes")
    assert {each.headers[0][1] for each in await stored(view, "t")} == {b"User:sender"}


async def test_filters_see_the_principal_of_a_task_that_is_alone(view: Broker, core: Core) -> None:
    await make_topics(view, core)
    async with view.producer() as producer:
        act_for(Principal("User", "alone"))
        producer.send("t", Record(b"v"))
        await trio.testing.wait_all_tasks_blocked()  # the writer writes it
        for _ in range(40):  # some are written by the task, some by the writer
            await producer.send("t", Record(b"v"))
    assert {each.headers[0][1] for each in await stored(view, "t")} == {b"User:alone"}


@pytest.mark.parametrize("count", [3, 600])
async def test_flush_waits_for_what_every_principal_has_sent(view: Broker, core: Core, count: int) -> None:
    await make_topics(view, core)
    receipts: list[Receipt] = []
    async with view.producer() as producer:
        for number in range(count):
            act_for(Principal("User", f"{number % 3}"))
            receipts.append(producer.send("t", Record(b"%d" % number), partition=0))
        await producer.flush()
        assert [each.result().offset for each in receipts] == list(range(count))
        assert producer.held_bytes == 0
    assert [each.headers[0][1] for each in await stored(view, "t")] == [
        b"User:%d" % (number % 3) for number in range(count)
    ]


async def test_what_a_validator_refuses(view: Broker, core: Core) -> None:
    await make_topics(view, core)
    async with view.producer() as producer:
        with pytest.raises(InvalidRecord, match="too long"):
            await producer.send("t", Record(b"x" * 10))
        receipts = [producer.send("t", Record(b"x" * size)) for size in (1, 10, 2)]
        await producer.flush()
        told = [str(error_of(each)) for each in receipts]
        assert "too long" in told[1] and told[0] == told[2] != told[1]
        assert (await producer.send("t", Record(b"v"))).offset == 0


# --- failures that nobody has read --------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def test_a_failure_that_nobody_has_read_is_one_counted_line(
    view: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await view.topics.create("t", configs={"max.message.bytes": "1000", "cleanup.policy": "compact"})
    async with view.producer() as producer:
        for _ in range(20):
            producer.send("t", Record(b"x" * 2000, b"k"))
            producer.send("t", Record(b"v"))
            producer.send("t", Record(b"v", b"k"))
        await producer.flush()
        await trio.testing.wait_all_tasks_blocked()
        large, keyless = sorted(lines(caplog), key=lambda line: "InvalidRecord" in line)
        assert large.startswith(
            "20 records for topic 't' were not stored, and nobody has read why: MessageTooLarge: "
        )
        assert keyless.startswith("20 records for topic 't' were not stored") and "without a key" in keyless
        for _ in range(5):  # within a minute: counted only
            producer.send("t", Record(b"v"))
            await producer.flush()
        assert len(lines(caplog)) == 2
    assert len(lines(caplog)) == 3 and lines(caplog)[2].startswith("5 records for topic 't' were not stored")
    assert len(await values(view)) == 20


async def test_it_is_said_again_after_a_minute(
    view: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leafcuttr.plugins.facade.producer.unread._QUIET_S", 0.0)
    async with view.producer() as producer:
        for _ in range(3):
            producer.send("__consumer_offsets", Record(b"v"))
            await producer.flush()
            await trio.testing.wait_all_tasks_blocked()
    assert len(lines(caplog)) == 3
    assert lines(caplog)[0].startswith("1 record for topic '__consumer_offsets' was not stored")


async def test_a_failure_that_was_read_is_not_counted(view: Broker, caplog: pytest.LogCaptureFixture) -> None:
    await view.topics.create("t", configs={"cleanup.policy": "compact"})
    async with view.producer() as producer:
        with pytest.raises(InvalidRecord):
            await producer.send("t", Record(b"v"))
        receipt = producer.send("t", Record(b"v"))
        await producer.flush()
        error_of(receipt)
        late = producer.send("t", Record(b"v"))
        await producer.flush()
        del receipt
        gc.collect()
        await trio.testing.wait_all_tasks_blocked()
        assert lines(caplog) == []
    assert lines(caplog) == []
    error_of(late)


async def test_a_receipt_that_is_dropped_later_counts_too(
    view: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await view.topics.create("t", configs={"cleanup.policy": "compact"})
    async with view.producer() as producer:
        receipts = [producer.send("t", Record(b"v")) for _ in range(3)]
        await producer.flush()
        await trio.testing.wait_all_tasks_blocked()
        assert lines(caplog) == []
        receipts.clear()
        await trio.testing.wait_all_tasks_blocked()
        assert len(lines(caplog)) == 1 and lines(caplog)[0].startswith("3 records")
        kept = producer.send("t", Record(b"v"))
    del kept
    await trio.testing.wait_all_tasks_blocked()
    # There may be no other line to count it in.
    assert len(lines(caplog)) == 2 and lines(caplog)[1].startswith("1 record ")


async def test_receipts_may_be_dropped_in_any_thread(view: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """As garbage collections take place in any."""
    await view.topics.create("t", configs={"cleanup.policy": "compact"})
    async with view.producer() as producer, trio.open_nursery() as nursery:
        receipts = [[producer.send("t", Record(b"v")) for _ in range(500)] for _ in range(4)]
        await producer.flush()
        for these in receipts:
            nursery.start_soon(trio.to_thread.run_sync, these.clear)
    assert sum(int(line.split()[0]) for line in lines(caplog)) == 2000 and len(lines(caplog)) <= 2


async def test_very_many_topics_are_not_told_apart(view: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        async with view.producer() as producer:
            for number in range(250):
                producer.send(f"no/{number}", Record(b"v"))
            await producer.flush()
    told = lines(caplog)
    assert len(told) <= 102 and any("for other topics were not stored" in line for line in told)
    assert sum(int(line.split()[0]) for line in told) == 250


async def test_two_producers_of_a_plugin_count_together(
    view: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        async with view.producer() as producer:
            producer.send("__consumer_offsets", Record(b"v"))
            await producer.flush()
            await trio.testing.wait_all_tasks_blocked()

    async with view.producer():
        for _ in range(5):
            await fail()
        assert len(lines(caplog)) == 1
    assert [line.split()[0] for line in lines(caplog)] == ["1", "4"]


# --- the writer beside others -------------------------------------------------------------------------------


async def test_it_shares_logs_with_other_callers(view: Broker) -> None:
    await view.topics.create("t", configs=SYNC)

    async def by(call: Callable[[int], Awaitable[object]]) -> None:
        for number in range(50):
            await call(number)

    async with view.producer() as producer, trio.open_nursery() as nursery:
        nursery.start_soon(by, lambda n: view.produce("t", b"p%d" % n))
        nursery.start_soon(by, lambda n: _sent(producer, b"s%d" % n))
        nursery.start_soon(by, lambda n: view.produce_batch("t", [Record(b"b%d" % n)] * 2))
        nursery.start_soon(by, lambda n: _sent(producer, b"r%d" % n))
    found = await values(view)
    assert len(found) == 250
    for letter in (b"p", b"s", b"r"):
        own = [each for each in found if each and each.startswith(letter)]
        assert own == [letter + b"%d" % n for n in range(50)]


async def _sent(producer: Any, value: bytes) -> Produced:
    result: Produced = await producer.send("t", Record(value))
    return result


async def test_receipts_wait_without_cost(view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write takes long nothing runs in the producer."""
    await view.topics.create("t", configs=SYNC)
    gate = Gate(monkeypatch, core.appender, "complete")
    async with view.producer() as producer, trio.open_nursery() as nursery:
        nursery.start_soon(_sent, producer, b"1")
        await gate.reached.wait()
        nursery.start_soon(_sent, producer, b"2")
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await eventually(lambda: producer.held_bytes == 0, "the write")


@pytest.mark.timeout(20)  # nothing else would end a writer that is left behind
async def test_one_that_is_opened_by_a_cancelled_task_ends(view: Broker) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with view.producer():
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
