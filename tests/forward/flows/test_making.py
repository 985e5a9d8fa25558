"""What comes out of the raw path and of the record path is what went in, whatever the batches were like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.flows import making
from leafcuttr_forward.flows.errors import FlowStopped, NotReadyYet, PoisonRecord
from leafcuttr_forward.flows.making import Maker, Portion
from leafcuttr_forward.flows.routes import Route
from leafcuttr_sdk.batches import BatchHeader, batches_in, partition_of
from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.compression import Codec
from leafcuttr_sdk.batches.header import ATTRIBUTES_AT, CONTROL, HEADER, seal
from leafcuttr_sdk.errors import CorruptMessage, InvalidTopic, PluginError
from leafcuttr_sdk.filters import DROP, DeadLetter, FilterFailure, NotReady, Routed
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.records import AbortedRange, Record
from leafcuttr_sdk.types import TopicPartition
from support.forwarded_batches import PARTITION, Judging, Seen, Stored, read_of, seen_in, stored

COPY = TopicPartition("copy", 0)


class OneRoute:
    """Of every topic to this one."""

    def __init__(self, route: Route | None = None) -> None:
        self.fixed = route or Route("copy", 1)

    def route(self, topic: str) -> Route:
        return self.fixed

    async def route_to(self, topic: str, like: str) -> Route:
        if " " in topic:
            raise InvalidTopic("no such name")
        return Route(topic, 4, 4000)


def made(
    read: PeerRead, position: int = 0, until: int | None = None, maker: Maker | None = None, **options: Any
) -> Portion:
    """Made in a loop of trio, as it gives way to others."""
    return trio.run((maker or Maker(OneRoute(), **options)).make, read, position, until)


def seen(portion: Portion) -> list[Seen]:
    return [one for piece in portion.pieces for one in seen_in(piece.batch)]


def headers_of(portion: Portion) -> list[BatchHeader]:
    return [BatchHeader._make(HEADER.unpack_from(piece.batch)) for piece in portion.pieces]


def some(count: int, size: int = 10, first: int = 0) -> list[tuple[int, Seen]]:
    return [(at, Seen(1000 + at, b"k%d" % (first + at), bytes(size))) for at in range(count)]


TIMES = st.integers(0, 1 << 42)
RECORDS = st.builds(
    Seen,
    TIMES,
    st.none() | st.binary(max_size=12),
    st.none() | st.binary(max_size=40) | st.just(b"long " * 300),
    st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2).map(tuple),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Stored]:
    """Batches one behind the other, as a log has them: compacted, compressed, with the broker's times."""
    found: list[Stored] = []
    base = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 8))):
        deltas = sorted(draw(st.sets(st.integers(0, 14), min_size=1, max_size=12)))
        records = [(delta, draw(RECORDS)) for delta in deltas]
        # A delete horizon is the base of the times; aiokafka writes the first record's there, as good as any.
        one = stored(
            records,
            base=base,
            codec=draw(st.sampled_from([0, 0, 1, 2, 3, 4])),
            last_delta=deltas[-1] + draw(st.sampled_from([0, 0, 2])),
            append_time=draw(st.none() | st.none() | TIMES),
            producer=draw(st.sampled_from([-1, 9])),
            transactional=False,
            horizon=draw(st.booleans()),
        )
        found.append(one)
        base = one.next_offset + draw(st.sampled_from([0, 0, 3]))
    return found


@pytest.mark.long
@given(logs(), st.integers(0, 100), st.integers(0, 60), st.sampled_from([400, 2000, 1 << 20]))
def test_what_comes_out_is_what_went_in(log: list[Stored], start: int, length: int, limit: int) -> None:
    read = read_of(log)
    until = None if length == 60 else start + length
    portion = made(read, start, until, maker=Maker(OneRoute(Route("copy", 1, limit))))
    wanted = [
        record
        for one in log
        for offset, record in one.records.items()
        if start <= offset and (until is None or offset < until)
    ]
    assert seen(portion) == wanted
    assert portion.read_records == len(wanted) == sum(piece.records for piece in portion.pieces)
    assert portion.next == max(read.next_offset if until is None else min(until, read.next_offset), start)
    as_they_are = [one.data for one in log]
    for header, piece in zip(headers_of(portion), portion.pieces, strict=True):
        if bytes(piece.batch) not in as_they_are:
            assert (header.base_offset, header.leader_epoch, header.producer_id) == (0, -1, -1)
            assert (header.producer_epoch, header.base_sequence) == (-1, -1)
        assert header.attributes & ~7 == 0
        assert header.count == header.last_offset_delta + 1
        assert len(piece.batch) <= limit or header.count == 1


@given(logs(), st.integers(1, 5))
def test_records_by_key_keep_their_order_and_go_where_java_sends_them(
    log: list[Stored], partitions: int
) -> None:
    maker = Maker(OneRoute(Route("copy", partitions, by_key=True)))
    portion = made(read_of(log), maker=maker)
    wanted: dict[int, list[Seen]] = {}
    for one in log:
        for record in one.records.values():
            number = 0 if record.key is None else partition_of(record.key, partitions)
            wanted.setdefault(number, []).append(record)
    found: dict[int, list[Seen]] = {}
    for piece in portion.pieces:
        found.setdefault(piece.target.partition, []).extend(seen_in(piece.batch))
    assert found == wanted


def test_a_whole_batch_passes_as_it_is() -> None:
    one = stored(some(20), codec=3, producer=9, base=7)
    (piece,) = made(read_of([one]), 7).pieces
    assert piece.target == COPY
    assert bytes(piece.batch[61:]) == one.data[61:]


def test_one_with_the_time_of_its_append_keeps_its_compression() -> None:
    """Its records get that time, and it is compressed as it was."""
    batch = stored(some(40), codec=Codec.GZIP, append_time=5_000_000)
    portion = made(read_of([batch]))
    (piece,) = portion.pieces
    (copy,) = batches_in(piece.batch)
    assert (copy.header.codec, copy.header.is_log_append_time) == (Codec.GZIP, False)
    assert {one.timestamp for one in seen(portion)} == {5_000_000}


def test_times_stay_those_of_the_records_where_a_delete_horizon_was() -> None:
    """The bit is taken away, and the field that had the horizon is the base of the times as before (KIP-534)."""
    one = stored(some(20), horizon=True)
    assert [record.timestamp for record in seen(made(read_of([one])))] == [1000 + at for at in range(20)]


def test_runs_of_small_batches_become_one() -> None:
    log = [stored(some(1, first=at), base=at, codec=4) for at in range(50)]
    portion = made(read_of(log))
    (piece,) = portion.pieces
    assert piece.records == 50
    assert seen(portion) == [record for one in log for record in one.records.values()]
    assert headers_of(portion)[0].codec == 4


def test_one_small_batch_passes_as_it_is() -> None:
    log = [stored(some(20)), stored(some(1), base=20, codec=1), stored(some(20), base=21)]
    assert [bytes(piece.batch[61:]) for piece in made(read_of(log)).pieces] == [one.data[61:] for one in log]


def test_small_batches_keep_their_place_among_large_ones() -> None:
    log = [stored(some(1), base=at) for at in range(3)]
    log += [stored(some(20), base=3)]
    log += [stored(some(2), base=base) for base in (23, 25)]
    portion = made(read_of(log))
    assert [piece.records for piece in portion.pieces] == [3, 20, 4]


def test_small_batches_of_another_codec_are_not_joined() -> None:
    log = [stored(some(2, size=400), base=2 * at, codec=codec) for at, codec in enumerate([0, 0, 3, 3])]
    portion = made(read_of(log))
    assert [header.codec for header in headers_of(portion)] == [0, 3]


def test_large_records_are_not_joined() -> None:
    log = [stored(some(1, size=20_000), base=at) for at in range(3)]
    assert [piece.records for piece in made(read_of(log)).pieces] == [1, 1, 1]


def test_one_that_is_larger_than_the_target_takes_is_split() -> None:
    portion = made(read_of([stored(some(20, size=100))]), maker=Maker(OneRoute(Route("copy", 1, 1000))))
    assert len(portion.pieces) > 2
    assert all(len(piece.batch) <= 1000 for piece in portion.pieces)
    assert len(seen(portion)) == 20


def test_a_batch_exactly_at_the_limit_passes() -> None:
    one = stored(some(20, size=100))
    at, below = (
        made(read_of([one]), maker=Maker(OneRoute(Route("copy", 1, limit))))
        for limit in (len(one.data), len(one.data) - 1)
    )
    assert (len(at.pieces), len(below.pieces)) == (1, 2)


def test_another_compression_makes_batches_anew() -> None:
    (header,) = headers_of(made(read_of([stored(some(50, size=100), codec=1)]), compression="zstd"))
    assert header.codec == Codec.ZSTD
    one = stored(some(50, size=100), codec=4)
    (piece,) = made(read_of([one]), compression="zstd").pieces
    assert bytes(piece.batch[61:]) == one.data[61:]


def test_what_does_not_become_smaller_is_not_compressed() -> None:
    import os

    records = [(0, Seen(0, None, os.urandom(300)))]
    (header,) = headers_of(made(read_of([stored(records)]), compression="lz4"))
    assert header.codec == 0


def test_aborted_transactions_and_markers_are_left_out() -> None:
    marker = bytearray(stored([(0, Seen(0, b"\0\0\0\1", b"\0\0\0\0\0\0"))], base=30, producer=5).data)
    header = BatchHeader._make(HEADER.unpack_from(marker))
    seal(marker, header._replace(attributes=header.attributes | CONTROL))
    log = [
        stored(some(10), base=0, producer=5, transactional=True),
        stored(some(10), base=10, producer=6, transactional=True),
        stored(some(10), base=20, producer=5, transactional=True),
        Stored(bytes(marker), {}, 31),
    ]
    portion = made(read_of(log, [AbortedRange(6, 10, 40)]))
    assert [piece.records for piece in portion.pieces] == [10, 10]
    assert (portion.next, portion.last, portion.epoch) == (31, 29, 3)


def test_the_portion_says_what_it_has() -> None:
    portion = made(read_of([stored(some(20), base=5), stored(some(30), base=25, epoch=4)]), 7)
    assert (portion.first, portion.next, portion.end) == (7, 55, 55)
    assert (portion.read_records, portion.last, portion.epoch, portion.timestamp) == (48, 54, 4, 1029)
    assert portion.size == sum(len(piece.batch) for piece in portion.pieces)


def test_the_last_record_is_remembered_by_key_and_value() -> None:
    def digest(records: list[tuple[int, Seen]], **options: Any) -> Portion:
        return made(read_of([stored(records)]), maker=Maker(OneRoute(), with_digest=True), **options)

    plain = digest(some(20))
    assert plain.last == 19
    assert digest(some(20, size=11)).digest != plain.digest
    assert digest([(19, some(20)[19][1])]).digest == plain.digest
    assert digest(some(25), until=20).digest == plain.digest
    assert made(read_of([stored(some(20))])).digest == ""


# What is broken


async def keeping(names: Sequence[str], topic: str) -> Any:
    return Judging(list)


def broken(one: Stored) -> Stored:
    data = bytearray(one.data)
    data[-1] ^= 1
    return one._replace(data=bytes(data))


def test_a_wrong_crc_is_a_poison_of_the_whole_batch() -> None:
    log = [stored(some(20)), broken(stored(some(20), base=20))]
    with pytest.raises(PoisonRecord) as raised:
        made(read_of(log), until=40)
    poison = raised.value
    assert (poison.offset, poison.next_offset, poison.broken) == (20, 40, True)
    assert len(seen(made(read_of(log), 0, until=20))) == 20


def test_the_crc_of_what_passes_whole_is_left_to_who_stamps_it() -> None:
    one = broken(stored(some(20)))
    (piece,) = made(read_of([one])).pieces
    assert bytes(piece.batch) == one.data


@pytest.mark.parametrize(
    ("one", "position", "options"),
    [
        (stored(some(3)), 0, {}),  # joined with others
        (stored(some(20)), 5, {}),  # begins before the position
        (stored(some(20)), 0, {"compression": "gzip"}),
        (stored(some(20)), 0, {"with_digest": True}),
        (stored(some(20)), 0, {"filters": ["f"], "make_chain": keeping}),
    ],
)
def test_the_crc_of_what_is_taken_apart_is_checked(one: Stored, position: int, options: Any) -> None:
    with pytest.raises(PoisonRecord) as raised:
        made(read_of([broken(one)]), position, **options)
    assert (raised.value.offset, raised.value.broken) == (position, True)


@pytest.mark.parametrize(
    ("records", "position", "until", "options"),
    [
        (3, 0, None, {}),
        (20, 5, None, {}),
        (20, 0, 40, {}),
        (20, 0, 30, {}),
        (20, 0, None, {"compression": "gzip"}),
        (20, 0, None, {"filters": ["f"], "make_chain": keeping}),
    ],
)
def test_no_crc_is_checked_twice(
    records: int, position: int, until: int | None, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    monkeypatch.setattr(making, "crc32c", lambda data: checked.append(len(data)) or crc32c(data))
    read = read_of([stored(some(records)), stored(some(records + 1), base=records)])
    made(read, position, until, with_digest=True, **options)
    lengths = [len(batch.data) - ATTRIBUTES_AT for batch in batches_in(read.data)]
    assert checked == lengths


def test_where_only_the_last_record_is_needed_only_its_batch_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[int] = []
    monkeypatch.setattr(making, "crc32c", lambda data: checked.append(len(data)) or crc32c(data))
    read = read_of([stored(some(20)), stored(some(21), base=20)])
    made(read)
    assert checked == []
    made(read, with_digest=True)
    *_, last = batches_in(read.data)
    assert checked == [len(last.data) - ATTRIBUTES_AT]


def test_records_that_cannot_be_taken_apart_are_a_poison() -> None:
    data = bytearray(stored(some(3)).data)
    data[61] = 0x7F
    header = BatchHeader._make(HEADER.unpack_from(data))
    seal(data, header._replace(last_offset_delta=5))
    with pytest.raises(PoisonRecord, match="claims"):
        made(read_of([Stored(bytes(data), {}, 6)]))


def test_bytes_that_are_no_batches() -> None:
    with pytest.raises(CorruptMessage, match="orders-0"):
        made(PeerRead(PARTITION, b"x" * 100, 5, 5, 0))


async def test_a_record_that_is_set_aside_becomes_a_dead_letter() -> None:
    read = read_of([stored(some(20), base=100)])
    maker = Maker(OneRoute(), dead_letter_topic="dead", with_digest=True)
    portion = await maker.letter(read, PoisonRecord(PARTITION, 105, "too late"))
    assert (portion.first, portion.next, portion.alone, portion.is_letter) == (105, 106, True, True)
    (piece,) = portion.pieces
    assert piece.target == TopicPartition("dead", 0)
    (letter,) = seen_in(piece.batch)
    assert (letter.key, letter.value, letter.timestamp) == (b"k5", bytes(10), 1005)
    assert dict(letter.headers) == {
        "lc.dead.letter.reason": b"too late",
        "lc.dead.letter.topic": b"orders",
        "lc.dead.letter.partition": b"0",
        "lc.dead.letter.offset": b"105",
        "lc.dead.letter.timestamp": b"1005",
    }
    assert portion.digest == (await maker.make(read, 100, 106)).digest


async def test_a_dead_letter_that_is_too_large_has_no_value() -> None:
    read = read_of([stored(some(1, size=5000))])
    portion = await Maker(OneRoute(), dead_letter_topic="dead").letter(
        read, PoisonRecord(PARTITION, 0, "large")
    )
    (letter,) = seen_in(portion.pieces[0].batch)
    assert letter.value is None
    assert dict(letter.headers)["lc.dead.letter.value.bytes"] == b"5000"


async def test_of_a_broken_batch_the_dead_letter_has_the_bytes() -> None:
    one = broken(stored(some(20), base=20))
    poison = PoisonRecord(PARTITION, 20, "a wrong CRC", next_offset=40, broken=True)
    portion = await Maker(OneRoute(), dead_letter_topic="dead").letter(read_of([one]), poison)
    (letter,) = seen_in(portion.pieces[0].batch)
    assert letter.value == one.data
    assert portion.next == 40


async def test_without_a_dead_letter_topic_the_flow_stops() -> None:
    with pytest.raises(FlowStopped, match="orders-0, offset 5: too late"):
        await Maker(OneRoute()).letter(read_of([stored(some(20))]), PoisonRecord(PARTITION, 5, "too late"))


# Verdicts


def with_filters(judge: Callable[[Sequence[Record]], list[Any]], **options: Any) -> Maker:
    async def make(names: Sequence[str], topic: str) -> Judging:
        assert (names, topic) == (["f"], "orders")
        return Judging(judge)

    route = options.pop("route", None)
    return Maker(OneRoute(route), filters=["f"], make_chain=make, **options)


def judged(*verdicts: Callable[[Record], Any], **options: Any) -> Portion:
    def judge(records: Sequence[Record]) -> list[Any]:
        return [verdict(record) for verdict, record in zip(verdicts, records, strict=False)]

    return made(read_of([stored(some(4))]), maker=with_filters(judge, **options))


def kept(record: Record) -> Record:
    return record


@pytest.mark.long
@given(logs())
def test_filters_that_keep_everything_change_nothing(log: list[Stored]) -> None:
    portion = made(read_of(log), maker=with_filters(list))
    assert seen(portion) == [record for one in log for record in one.records.values()]


def test_verdicts() -> None:
    portion = judged(
        lambda record: DROP,
        lambda record: record._replace(value=b"new", headers=(("h", b"x"),)),
        lambda record: Routed(record, "other"),
        lambda record: DeadLetter("bad", "own"),
    )
    found = {piece.target.topic: seen_in(piece.batch) for piece in portion.pieces}
    assert found["copy"] == [Seen(1001, b"k1", b"new", (("h", b"x"),))]
    assert found["other"] == [Seen(1002, b"k2", bytes(10))]
    (letter,) = found["own"]
    assert (letter.key, dict(letter.headers)["lc.dead.letter.reason"]) == (b"k3", b"bad")
    assert (portion.dropped, portion.dead_letters, portion.read_records) == (1, 1, 4)
    assert (portion.next, portion.last) == (4, 3)


def test_a_record_that_gets_another_time_has_it() -> None:
    portion = judged(kept, kept, kept, lambda record: record._replace(timestamp=5))
    assert [one.timestamp for one in seen(portion)] == [1000, 1001, 1002, 5]


def test_a_key_that_a_filter_changes_decides_where_keys_do() -> None:
    changed = [lambda record: record._replace(key=b"same")] * 4
    portion = judged(*changed, route=Route("copy", 7, by_key=True))
    assert {piece.target.partition for piece in portion.pieces} == {partition_of(b"same", 7)}


def test_a_dead_letter_without_a_topic_goes_to_that_of_the_flow_or_is_a_poison() -> None:
    verdicts = (kept, lambda record: DeadLetter("bad"), kept, kept)
    portion = judged(*verdicts, dead_letter_topic="dead")
    assert {piece.target.topic for piece in portion.pieces} == {"copy", "dead"}
    with pytest.raises(PoisonRecord, match="bad") as raised:
        judged(*verdicts)
    assert raised.value.offset == 1


@pytest.mark.parametrize(
    "verdict", [lambda record: Routed(record, "a b"), lambda record: DeadLetter("bad", "a b")]
)
def test_a_topic_that_there_cannot_be_makes_a_poison_of_the_record(verdict: Any) -> None:
    with pytest.raises(PoisonRecord, match="the target cannot have the topic a b: no such name") as raised:
        judged(kept, kept, verdict, kept)
    assert (raised.value.offset, raised.value.broken) == (2, False)


async def test_where_there_cannot_be_dead_letters_the_flow_stops() -> None:
    maker = Maker(OneRoute(), dead_letter_topic="a b")
    poison = PoisonRecord(PARTITION, 2, "bad")
    with pytest.raises(FlowStopped, match="orders-0, offset 2: bad; the target cannot have the topic a b"):
        await maker.letter(read_of([stored(some(4))]), poison)


def test_a_filter_that_fails_makes_a_poison_of_the_record() -> None:
    with pytest.raises(PoisonRecord, match="the filter f failed: no such field") as raised:
        judged(kept, kept, lambda record: FilterFailure("f", "no such field"), kept)
    assert (raised.value.offset, raised.value.broken) == (2, False)


def test_a_filter_that_cannot_judge_yet() -> None:
    with pytest.raises(NotReadyYet, match="the schemas"):
        judged(kept, lambda record: NotReady("the schemas"))


def test_filters_that_cannot_be_made_stop_the_flow() -> None:
    async def make(names: Sequence[str], topic: str) -> Judging:
        raise PluginError("there is no filter f")

    with pytest.raises(FlowStopped, match="there is no filter f"):
        made(read_of([stored(some(4))]), maker=Maker(OneRoute(), filters=["f"], make_chain=make))


async def test_filters_forget_and_are_closed() -> None:
    chains: list[Judging] = []

    async def make(names: Sequence[str], topic: str) -> Judging:
        chains.append(Judging(list))
        return chains[-1]

    maker = Maker(OneRoute(), filters=["f"], make_chain=make)
    maker.forget("orders")
    for _ in range(2):
        await maker.make(read_of([stored(some(4))]), 0)
    maker.forget("orders")
    maker.close()
    (chain,) = chains
    assert (chain.forgotten, chain.closed) == (1, True)
