"""What plugins produce: where it goes, what is refused, and how."""

import random

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.plugins.facade.producing import Producing
from leafcuttr.state.broker import Broker as Core
from leafcuttr.wire.batch import ATTRIBUTES_AT, TRANSACTIONAL
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import (
    Appended,
    Broker,
    BrokerError,
    ErrorCode,
    NewBatch,
    Plugin,
    Produced,
    Record,
    StoredRecord,
    TopicPartition,
)
from leafcuttr_sdk.errors import (
    InvalidRecord,
    InvalidTimestamp,
    InvalidTopic,
    MessageTooLarge,
    StorageError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from plugins.facade.conftest import PLUGIN, Open
from support.logs import HandClock


async def everything(view: Broker, topic: str) -> list[StoredRecord]:
    positions = {TopicPartition(topic, number): 0 for number in range(view.topics.partition_count(topic))}
    found: list[StoredRecord] = []
    while True:
        fetched = await view.fetch(positions)
        if not fetched.records and fetched.positions == positions:
            return found
        found += fetched.records
        positions = fetched.positions


async def test_a_record_comes_back_as_it_was_given(view: Broker, clock: HandClock) -> None:
    headers = (("a", b"1"), ("a", None), ("\u00e9", b""))
    first = await view.produce("t", b"value", b"key", headers=headers, timestamp=123, partition=0)
    second = await view.produce("t", None, b"key")
    assert first == Produced("t", 0, 0, 123)
    assert second == Produced("t", 0, 1, clock.now_ms())
    assert await everything(view, "t") == [
        StoredRecord("t", 0, 0, 123, b"key", b"value", headers),
        StoredRecord("t", 0, 1, clock.now_ms(), b"key", None, ()),
    ]


async def test_many_records_in_order(view: Broker) -> None:
    await view.topics.create("t", partitions=3)
    records = [Record(b"%d" % n, b"k%d" % (n % 50)) for n in range(3000)]
    answers = await view.produce_batch("t", records)
    assert all(isinstance(answer, Produced) for answer in answers)
    stored = {(each.partition, each.offset): each for each in await everything(view, "t")}
    assert len(stored) == 3000
    for record, answer in zip(records, answers, strict=True):
        assert isinstance(answer, Produced)
        found = stored[answer.partition, answer.offset]
        assert (found.value, found.key, found.timestamp) == (record.value, record.key, answer.timestamp)
    for key in {record.key for record in records}:
        values = [int(each.value or b"") for _, each in sorted(stored.items()) if each.key == key]
        assert values == sorted(values)  # in one partition, in the order given


async def test_records_without_a_key_share_batches_and_reach_every_partition(view: Broker) -> None:
    await view.topics.create("t", partitions=4)
    few = [await view.produce("t", b"x" * 100) for _ in range(20)]
    assert len({each.partition for each in few}) == 1
    many = await view.produce_batch("t", [Record(b"x" * 1000)] * 1000)
    assert {each.partition for each in many if isinstance(each, Produced)} == {0, 1, 2, 3}


async def test_a_record_that_is_refused_and_has_no_other_beside_it(view: Broker) -> None:
    await view.topics.create("t", configs={"max.message.bytes": "1000"})
    with pytest.raises(MessageTooLarge):
        await view.produce("t", bytes(2000))
    with pytest.raises(InvalidRecord):
        await view.produce("t", b"", headers=(("\ud800", b""),))
    assert await everything(view, "t") == []


async def test_records_without_a_key_leave_a_partition_that_is_offline(core: Core, view: Broker) -> None:
    await view.topics.create("t", partitions=3)
    first = (await view.produce("t", b"x")).partition
    core.topics.by_name["t"].partitions[first].log.take_offline("a test")
    second = (await view.produce("t", b"x")).partition
    assert second != first
    many = await view.produce_batch("t", [Record(b"x" * 1000)] * 300)
    assert {each.partition for each in many if isinstance(each, Produced)} == {0, 1, 2} - {first}


async def test_nothing_is_kept_of_a_topic_that_is_gone(core: Core) -> None:
    producing = Producing(core)
    await producing.produce("t", b"v")
    assert len(producing._sticky) == 1
    await core.topics.delete("t")
    assert not producing._sticky


async def test_log_append_time(view: Broker, clock: HandClock) -> None:
    await view.topics.create("t", configs={"message.timestamp.type": "LogAppendTime"})
    assert (await view.produce("t", b"v", timestamp=5)).timestamp == clock.now_ms()
    assert [each.timestamp for each in await everything(view, "t")] == [clock.now_ms()]


async def test_a_topic_is_created_as_for_clients(open_core: Open) -> None:
    view = make_broker_view(open_core(num_partitions="4"), PLUGIN)
    await view.produce("new", b"v", partition=3)
    assert view.topics.partition_count("new") == 4
    with pytest.raises(InvalidTopic, match="contains one or more"):
        await view.produce("not a topic", b"v")
    closed = make_broker_view(open_core(auto_create_topics_enable="false"), PLUGIN)
    with pytest.raises(UnknownTopicOrPartition, match="no topic 'other'"):
        await closed.produce("other", b"v")
    assert closed.topics.get("other") is None


async def test_what_can_never_be_stored_is_refused_alone(view: Broker) -> None:
    await view.topics.create("t", partitions=2, configs={"max.message.bytes": "1000"})
    answers = await view.produce_batch(
        "t",
        [
            Record(b"fine", b"k"),
            Record(b"x" * 1000, b"k"),
            Record(b"v", b"k", (("\ud83d", b""),)),
            Record(b"v", b"k", (), -5),
            Record(b"v"),
            Record(b"fine too", b"k"),
        ],
        partitions=[None, None, None, None, 2, None],
    )
    kinds = [type(each) for each in answers]
    assert kinds == [
        Produced,
        MessageTooLarge,
        InvalidRecord,
        InvalidTimestamp,
        UnknownTopicOrPartition,
        Produced,
    ]
    assert [each.value for each in await everything(view, "t")] == [b"fine", b"fine too"]
    assert "1000" in str(answers[1]) and "2 partition(s)" in str(answers[4])


async def test_records_that_are_all_refused(view: Broker) -> None:
    await view.topics.create("t", configs={"max.message.bytes": "1000"})
    with pytest.raises(MessageTooLarge, match="1000 bytes"):
        await view.produce("t", b"x" * 2000)
    answers = await view.produce_batch("t", [Record(b"x" * 2000)] * 3)
    assert {type(each) for each in answers} == {MessageTooLarge} and len(answers) == 3
    assert (await view.produce("t", b"fine")).offset == 0


async def test_more_than_one_batch_can_hold_becomes_several(core: Core, view: Broker) -> None:
    await view.topics.create("t", configs={"max.message.bytes": "10000"})
    records = [Record(b"x" * 990, b"%d" % n) for n in range(500)]
    answers = await view.produce_batch("t", records)
    assert [each.offset for each in answers if isinstance(each, Produced)] == list(range(500))
    assert [each.key for each in await everything(view, "t")] == [record.key for record in records]


async def test_a_record_without_a_key_is_refused_alone_where_the_topic_is_compacted(view: Broker) -> None:
    await view.topics.create("t", configs={"cleanup.policy": "compact"})
    answers = await view.produce_batch(
        "t", [Record(b"1", b"k"), Record(b"2"), Record(b"3", b"k")], partitions=[0, 0, 0]
    )
    assert [type(each) for each in answers] == [Produced, InvalidRecord, Produced]
    assert "'t' is compacted: a record without a key" in str(answers[1])
    assert [each.value for each in await everything(view, "t")] == [b"1", b"3"]
    with pytest.raises(InvalidRecord, match="without a key"):
        await view.produce("t", b"v")


async def test_a_time_that_the_topic_does_not_allow_is_refused_alone(view: Broker, clock: HandClock) -> None:
    limits = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "500"}
    await view.topics.create("t", configs=limits)
    now = clock.now_ms()
    times = [now - 1001, now - 1000, now, None, now + 500, now + 501, -1, 2**63]
    answers = await view.produce_batch("t", [Record(b"v", None, (), at) for at in times])
    allowed = [False, True, True, True, True, False, False, False]
    assert [type(each) for each in answers] == [Produced if each else InvalidTimestamp for each in allowed]
    assert f"[{now - 1000}, {now + 500}]" in str(answers[0])
    assert [each.timestamp for each in await everything(view, "t")] == [now - 1000, now, now, now + 500]
    # With LogAppendTime what the producer says is not stored, so it need only be a time.
    await view.topics.create("u", configs={**limits, "message.timestamp.type": "LogAppendTime"})
    answers = await view.produce_batch("u", [Record(b"v", None, (), at) for at in times])
    assert [type(each) for each in answers] == [Produced] * 6 + [InvalidTimestamp] * 2


async def test_large_batches_and_conversions_go_through_workers(view: Broker) -> None:
    await view.topics.create(
        "t",
        configs={"compression.type": "zstd", "max.message.bytes": "20000000", "cleanup.policy": "compact"},
    )
    records = [Record(b"%d" % n * 100, b"%d" % n) for n in range(5000)]
    await view.produce_batch("t", records)
    big = await view.produce("t", random.randbytes(9_000_000), b"big")
    assert big.offset == 5000
    stored = await everything(view, "t")
    assert [each.value for each in stored[:5000]] == [record.value for record in records]
    assert len(stored[5000].value or b"") == 9_000_000


async def test_internal_topics(view: Broker, core: Core, open_core: Open) -> None:
    for name in ("__consumer_offsets", "__transaction_state"):
        with pytest.raises(InvalidTopic):
            await view.produce(name, b"v")
        (refused,) = await view.append([NewBatch(TopicPartition(name, 0), encode_batch([record()]))])
        assert isinstance(refused, InvalidTopic)
    info = await view.topics.create("state", internal=True)
    assert info.internal and view.topics.names() == [] and view.topics.names(internal=True) == ["state"]
    assert (await view.produce("state", b"v")).offset == 0
    again = open_core()
    assert again.topics.by_name["state"].internal
    assert (await make_broker_view(again, PLUGIN).produce("state", b"v")).offset == 1


async def test_a_topic_of_its_own(view: Broker, core: Core, open_core: Open) -> None:
    info = await view.topics.create("mine", internal=True, owned=True)
    assert (info.internal, info.owner) == (True, PLUGIN.name)
    at, batch = TopicPartition("mine", 0), bytes(encode_batch([record()]))

    async def only_mine(core: Core, offset: int) -> None:
        mine, other = make_broker_view(core, PLUGIN), make_broker_view(core, Plugin("other", 1, "another"))
        for call in (
            lambda: other.produce("mine", b"v"),
            lambda: other.produce_batch("mine", [Record(b"v")] * 2),
            lambda: other.topics.delete_records("mine", 0, -1),
        ):
            with pytest.raises(TopicAuthorizationFailed, match="'mine' belongs to the plugin sample: nobody"):
                await call()
        answers = await other.append([NewBatch(at, batch), NewBatch(TopicPartition("t", 0), batch)])
        assert isinstance(answers[0], TopicAuthorizationFailed) and isinstance(answers[1], Appended)
        assert answers[0].code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert len((await other.fetch({at: offset})).records) == 0
        assert (await mine.produce("mine", b"v")).offset == offset
        (appended,) = await mine.append([NewBatch(at, batch)])
        assert isinstance(appended, Appended) and appended.base_offset == offset + 1
        assert len((await other.fetch({at: offset})).records) == 2

    await view.topics.create("t")
    await only_mine(core, 0)
    again = open_core()
    await only_mine(again, 2)
    assert await make_broker_view(again, PLUGIN).topics.delete_records("mine", 0, -1) == 4


async def test_only_internal_topics_have_owners(view: Broker) -> None:
    with pytest.raises(ValueError, match="only an internal topic has an owner"):
        await view.topics.create("mine", owned=True)
    with pytest.raises(InvalidTopic, match="the broker's own"):
        await view.topics.create("__consumer_offsets", internal=True, owned=True)
    assert view.topics.names(internal=True) == []
    shared = await view.topics.create("shared", internal=True)
    assert shared.owner is None and view.topics.get("shared") == shared


def record(value: bytes = b"v", timestamp: int = 1) -> WireRecord:
    return WireRecord(0, timestamp, None, value)


async def test_prebuilt_batches(view: Broker) -> None:
    await view.topics.create("t", partitions=2)
    two = encode_batch([record(), WireRecord(1, 1, b"k", b"w")], codec=Codec.GZIP)
    transactional = bytearray(encode_batch([record()], producer_id=1, producer_epoch=0, base_sequence=0))
    transactional[ATTRIBUTES_AT + 1] |= TRANSACTIONAL
    spoilt = bytearray(encode_batch([record()]))
    spoilt[-1] ^= 1
    at = TopicPartition("t", 1)
    answers = await view.append(
        [
            NewBatch(at, two),
            NewBatch(TopicPartition("t", 2), bytes(two)),
            NewBatch(TopicPartition("u", 0), bytes(two)),
            NewBatch(at, transactional),
            NewBatch(at, spoilt),
            NewBatch(at, b"short"),
            NewBatch(at, b""),
            NewBatch(at, bytes(encode_batch([record(b"last")]))),
        ]
    )
    codes = [each.code if isinstance(each, BrokerError) else each for each in answers]
    assert codes == [
        Appended(0, 1),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        Appended(2, 2),
    ]
    assert [each.value for each in await everything(view, "t")] == [b"v", b"w", b"last"]
    assert await view.append([]) == []


async def test_a_repeated_batch_of_an_idempotent_producer_is_stored_once(view: Broker) -> None:
    await view.topics.create("t")
    batch = bytes(encode_batch([record()], producer_id=7, producer_epoch=0, base_sequence=0))
    answers = [*await view.append([NewBatch(TopicPartition("t", 0), batch)] * 2)]
    answers += await view.append([NewBatch(TopicPartition("t", 0), batch)])
    assert [(each.base_offset, each.duplicate) for each in answers if isinstance(each, Appended)] == [
        (0, False),
        (0, True),
        (0, True),
    ]


async def test_an_offline_log_and_a_full_disk(view: Broker, core: Core) -> None:
    await view.topics.create("t", partitions=3)
    core.topics.by_name["t"].partitions[1].log.take_offline("a test says so")
    with pytest.raises(StorageError, match="a test says so"):
        await view.produce("t", b"v", partition=1)
    assert (await view.produce("t", b"v", partition=0)).offset == 0
    spread = await view.produce_batch("t", [Record(b"x" * 1000)] * 200)
    assert {each.partition for each in spread if isinstance(each, Produced)} == {0, 2}
    core.logs.directories[0]._resources.refusal = "the disk is full"
    with pytest.raises(StorageError, match="the disk is full"):
        await view.produce("t", b"v", partition=0)
    core.logs.directories[0]._resources.refusal = None
    await view.produce("t", b"v", partition=0)


async def test_a_wrong_number_of_partitions_is_the_callers_mistake(view: Broker) -> None:
    with pytest.raises(ValueError, match="1 partitions for 2 records"):
        await view.produce_batch("t", [Record(b"v")] * 2, partitions=[0])
    assert await view.produce_batch("t", []) == []
