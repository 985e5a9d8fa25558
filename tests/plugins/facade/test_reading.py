"""What plugins read, and how they wait for more."""

import os
from collections.abc import Mapping

import pytest
import trio
import trio.testing

from leafcuttr.log.files.open_file import NotCached
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker as Core
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import decode_records, encode_batch
from leafcuttr_sdk import EARLIEST, LATEST, AbortedRange, Broker, NewBatch, Record, TopicPartition
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.errors import (
    CorruptMessage,
    OffsetOutOfRange,
    StorageError,
    UnknownTopicOrPartition,
)
from support.logs import HandClock, append, stage_marker, write_now

AT = TopicPartition("t", 0)


async def fill(view: Broker, count: int, partition: int = 0, size: int = 10) -> None:
    await view.produce_batch(
        "t", [Record(b"%d" % n * size) for n in range(count)], partitions=[partition] * count
    )


async def test_raw_batches_as_they_are_stored(view: Broker) -> None:
    await view.topics.create("t")
    for value in (b"a", b"b", b"c"):
        await view.produce("t", value)
    read = await view.read_batches(AT, 1)
    assert (read.next_offset, read.high_watermark, read.log_start_offset) == (3, 3, 0)
    first = await view.read_batches(AT, 0, max_bytes=1)
    assert first.next_offset == 1
    assert [each.value for each in decode_records(first.data)] == [b"a"]
    end = await view.read_batches(AT, 3)
    assert (end.data, end.next_offset) == (b"", 3)
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            await view.read_batches(AT, offset)
    with pytest.raises(UnknownTopicOrPartition, match="1 partition"):
        await view.read_batches(TopicPartition("t", 1), 0)


async def test_a_fetch_goes_on_where_the_last_one_ended(view: Broker) -> None:
    await view.topics.create("t", partitions=3)
    for partition in range(3):
        await fill(view, 1000, partition)
    at: Mapping[TopicPartition, int] = {TopicPartition("t", number): 10 for number in range(3)}
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    while True:
        fetched = await view.fetch(at, max_records=70)
        if not fetched.records:
            break
        assert len(fetched.records) <= 70
        for each in fetched.records:
            seen[each.partition].append(each.offset)
        at = fetched.positions
    assert all(offsets == list(range(10, 1000)) for offsets in seen.values())


async def test_no_partition_starves_behind_another(view: Broker) -> None:
    await view.topics.create("t", partitions=2)
    for _ in range(10):
        await fill(view, 10, 0, size=1000)
    await fill(view, 1, 1)
    at: Mapping[TopicPartition, int] = {TopicPartition("t", 0): 0, TopicPartition("t", 1): 0}
    looks, found = 0, set[int]()
    while 1 not in found:
        fetched = await view.fetch(at, max_bytes=1)
        found |= {each.partition for each in fetched.records}
        at, looks = fetched.positions, looks + 1
    assert looks <= 2


@pytest.mark.parametrize("codec", Codec)
async def test_compressed_batches(view: Broker, codec: Codec) -> None:
    await view.topics.create("t")
    records = [WireRecord(n, n, b"%d" % n, os.urandom(100)) for n in range(1000)]
    batch = encode_batch(records, codec=codec)
    await view.append([NewBatch(AT, batch), NewBatch(AT, bytes(encode_batch(records[:1], codec=codec)))])
    fetched = await view.fetch({AT: 500})
    assert [each.value for each in fetched.records] == [each.value for each in [*records[500:], records[0]]]
    assert fetched.positions == {AT: 1001}


async def test_records_that_are_damaged_on_the_disk(view: Broker, core: Core) -> None:
    await view.topics.create("t")
    await view.produce("t", b"value")
    path = core.logs.logs[AT].directory / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptMessage, match=r"t-0.*CRC"):
        await view.fetch({AT: 0})


async def test_a_base_offset_that_is_damaged_on_the_disk(view: Broker, core: Core) -> None:
    """No CRC covers it. No record gets an offset that is none, nor does a consumer a position."""
    await view.topics.create("t")
    await view.produce("t", b"value")
    await view.produce("t", b"value")
    path = core.logs.logs[AT].directory / f"{0:020}.log"
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[:half] + (2**63 - 1).to_bytes(8, "big") + data[half + 8 :])
    with pytest.raises(CorruptMessage, match=rf"t-0: the batch at offset {2**63 - 1} claims"):
        await view.fetch({AT: 0})


async def test_what_is_not_in_the_page_cache_is_read_by_a_worker(
    view: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await view.topics.create("t")
    await fill(view, 10)
    real, cold = Log.read, []

    def read(log: Log, offset: int, max_bytes: int, **options: bool) -> object:
        if not options["may_block"] and not cold:
            assert log.segments[-1].file is not None
            cold.append(NotCached(log.segments[-1].file, 0, 10))
            raise cold[0]
        return real(log, offset, max_bytes, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Log, "read", read)
    assert len((await view.fetch({AT: 0})).records) == 10
    assert cold


async def test_a_fetch_waits_for_the_first_record(
    view: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    await view.topics.create("t")
    began = trio.current_time()
    assert not (await view.fetch({AT: 0}, wait_s=30)).records
    assert trio.current_time() - began == pytest.approx(30)

    async def later() -> None:
        await trio.sleep(5)
        await view.produce("t", b"v")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        fetched = await view.fetch({AT: 0}, wait_s=30)
    assert [each.value for each in fetched.records] == [b"v"]
    assert trio.current_time() - began == pytest.approx(35)


async def test_waiting_for_records(view: Broker, core: Core) -> None:
    await view.topics.create("t", partitions=2)
    await view.topics.create("gone")
    other, gone = TopicPartition("t", 1), TopicPartition("gone", 0)
    at = {AT: 0, other: 0, gone: 0}
    seen: list[set[TopicPartition]] = []

    async def wait(nursery: trio.Nursery, *, task_status: trio.TaskStatus[None]) -> None:
        async def run() -> None:
            seen.append(await view.wait_for_records(at))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        task_status.started()

    async with trio.open_nursery() as nursery:
        await nursery.start(wait, nursery)
        await nursery.start(wait, nursery)
        assert not seen
        await view.produce("t", b"v", partition=1)
    assert seen == [{other}, {other}]
    at = {AT: 0, other: 1, gone: 0}
    async with trio.open_nursery() as nursery:
        await nursery.start(wait, nursery)
        await view.topics.delete("gone")
    assert seen[2:] == [{gone}]
    assert await view.wait_for_records({AT: 0, other: 0}) == {other}
    assert await view.wait_for_records({AT: 5}) == {AT}  # a fetch would fail: there is no such offset
    assert await view.wait_for_records({gone: 0}) == {gone}
    with trio.move_on_after(0) as scope:
        await view.wait_for_records({AT: 0})
    assert scope.cancelled_caught
    assert not core.logs.logs[AT].waiters and not core.logs.logs[other].waiters


async def test_what_open_and_aborted_transactions_hold(view: Broker, core: Core) -> None:
    await view.topics.create("t")
    log = core.logs.logs[AT]

    def transactional(value: bytes, sequence: int) -> None:
        record = WireRecord(0, 1, None, value)
        append(
            log,
            encode_batch(
                [record], producer_id=9, producer_epoch=0, base_sequence=sequence, transactional=True
            ),
            1,
        )

    def end(*, commit: bool) -> None:
        stage_marker(log, 9, 0, commit=commit, coordinator_epoch=0, now_ms=1)
        write_now(log)

    async def values(committed: bool) -> list[bytes | None]:
        return [each.value for each in (await view.fetch({AT: 0}, committed=committed)).records]

    transactional(b"aborted", 0)
    end(commit=False)
    transactional(b"committed", 1)
    end(commit=True)
    transactional(b"open", 2)
    assert await values(False) == [b"aborted", b"committed", b"open"]
    assert await values(True) == [b"committed"]
    assert (await view.fetch({AT: 0}, committed=True)).positions == {AT: 4}
    assert (await view.read_batches(AT, 4, committed=True)).data == b""
    with trio.move_on_after(0.02) as scope:
        await view.fetch({AT: 4}, wait_s=100, committed=True)
    assert scope.cancelled_caught  # asleep, not going round and round
    # What is read as it is stored: the aborted transaction is there, and named.
    read = await view.read_batches(AT, 0, committed=True)
    assert (read.next_offset, read.aborted) == (4, (AbortedRange(9, 0, 1),))
    assert [(each.header.is_control, each.is_aborted(read.aborted)) for each in batches_in(read.data)] == [
        (False, True),
        (True, True),
        (False, False),
        (True, False),
    ]
    assert (await view.read_batches(AT, 0)).aborted == ()
    assert (await view.read_batches(AT, 2, committed=True)).aborted == ()
    # To wait is to wait for the end of the open one.
    assert await view.wait_for_records({AT: 4}) == {AT}
    seen = []
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            seen.append(await view.wait_for_records({AT: 4}, committed=True))

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        transactional(b"open", 3)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == []
        end(commit=True)
    assert seen == [{AT}]
    assert await values(True) == [b"committed", b"open", b"open"]


async def test_offsets_by_time(view: Broker, core: Core) -> None:
    await view.topics.create("t", partitions=2)
    for time in (100, 200, 300):
        await view.produce("t", b"v", timestamp=time, partition=0)
    await view.topics.delete_records("t", 0, 1)
    other = TopicPartition("t", 1)
    assert await view.offsets({AT: EARLIEST, other: EARLIEST}) == {AT: 1, other: 0}
    assert await view.offsets({AT: LATEST, other: LATEST}) == {AT: 3, other: 0}
    assert await view.offsets({AT: 201, other: 201}) == {AT: 2, other: 0}
    assert await view.offsets({AT: 301}) == {AT: 3}
    core.logs.logs[AT].take_offline("a test says so")
    for asked in (LATEST, 5):
        with pytest.raises(StorageError, match="a test says so"):
            await view.offsets({AT: asked})
    with pytest.raises(StorageError, match="a test says so"):
        await view.fetch({AT: 3})


async def test_reading_counts_as_reading(view: Broker, core: Core, clock: HandClock) -> None:
    await view.topics.create("t")
    await fill(view, 10)
    read = await view.read_batches(AT, 0)
    log = core.logs.logs[AT]
    assert (log.bytes_out, log.records_out) == (len(read.data), 10)


async def test_equal_headers_are_read_once_for_each_partition(view: Broker) -> None:
    """What is learnt of a partition's records is there in the next fetch, and is bounded."""
    await view.topics.create("t", partitions=70)
    headers = (("source", b"north"), ("trace", b"0123"))
    records = [Record(b"v", b"k", headers)] * 3
    for partition in range(70):
        await view.produce_batch("t", records, partitions=[partition] * 3)

    async def headers_of(partition: int) -> list[object]:
        fetched = await view.fetch({TopicPartition("t", partition): 0})
        assert [record.headers for record in fetched.records] == [headers] * 3
        return [record.headers for record in fetched.records]

    await headers_of(0)
    before = await headers_of(0)
    assert before[0] is before[1] is before[2]
    assert (await headers_of(0))[0] is before[0]
    for partition in range(1, 70):
        await headers_of(partition)
    assert (await headers_of(0))[0] is not before[0]
