"""What filters and validators do to a batch on its way into a log."""

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.errors import (
    BrokerError,
    ChainError,
    ErrorCode,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    OutOfOrderSequence,
)
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.log import Log
from leafcuttr.wire import loose_records
from leafcuttr.wire.batch import ATTRIBUTES_AT, NO_TIMESTAMP, BatchHeader, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import decode_records, encode_batch
from leafcuttr_sdk.filters import DROP, DeadLetter, NeedsThread, Routed
from leafcuttr_sdk.records import Record
from support.chains import TestChain, keep
from support.logs import (
    NOW,
    append,
    batch,
    begin_write,
    make_log,
    patched,
    read_all,
    stage_here,
    would_wait,
    write_now,
)
from support.waiting import eventually

HOUR = 3_600_000


def stored(log: Log) -> list[tuple[BatchHeader, list[Stored]]]:
    """Every batch of a log, its CRC checked, with its records."""
    data, at, found = read_all(log), 0, []
    while at < len(data):
        header = parse(data, at)
        whole = data[at : at + header.size]
        assert crc32c(whole[ATTRIBUTES_AT:]) == header.crc
        records = list(decode_records(whole))
        assert len(records) == header.count
        found.append((header, records))
        at += header.size
    return found


def chained(tmp_path: Path, chain: TestChain, **config: Any) -> Log:
    log = make_log(tmp_path / "t-0", **config)
    log.use_chain(chain.chain)
    return log


def numbered(count: int, *, codec: Codec = Codec.NONE, timestamp: int = NOW, **fields: Any) -> bytearray:
    records = [Stored(n, timestamp + n, b"k%d" % n, b"%d" % n, (("h", b"x"),)) for n in range(count)]
    return encode_batch(records, codec=codec, **fields)


def by_value(**verdicts: Any) -> Any:
    """A filter that has a verdict for some values: `by_value(_3=DROP)`."""

    def judge(record: Record) -> Any:
        assert record.value is not None
        verdict = verdicts.get("_" + record.value.decode(), record)
        return verdict(record) if callable(verdict) else verdict

    return judge


def test_a_topic_without_a_chain_has_no_record_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(*_: object) -> None:
        raise AssertionError("a record was decoded")

    monkeypatch.setattr(loose_records, "take_apart", decoded)
    monkeypatch.setattr("leafcuttr.log.append.chain.filtered_batch.take_apart", decoded)
    monkeypatch.setattr("leafcuttr.log.append.conversion.summarize_records", decoded)
    monkeypatch.setattr("leafcuttr.log.append.conversion.record_shapes", decoded)
    monkeypatch.setattr("leafcuttr.wire.records.decode_records", decoded)
    log = make_log(tmp_path / "t-0")
    for codec in Codec:
        append(log, numbered(10, codec=codec), NOW)
    assert log.log_end_offset == 50
    log.use_chain(TestChain(keep).chain)
    with pytest.raises(AssertionError, match="a record was decoded"):
        append(log, numbered(10), NOW)


def test_the_reader_is_compiled_before_the_first_batch_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of the first batch says how long the next may be: compiling takes as long as hundreds of records."""
    monkeypatch.setattr(loose_records, "_read", loose_records._compile)
    log = chained(tmp_path, TestChain(keep))

    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("compiled while it is measured")

    monkeypatch.setattr(loose_records, "compile_frame", compiled)
    append(log, numbered(10), NOW)
    assert log.log_end_offset == 10


def test_a_batch_that_nobody_touches_is_stored_as_it_came(tmp_path: Path) -> None:
    chain = TestChain(keep, keep, validators=(lambda _: None,))
    log = chained(tmp_path, chain)
    came = numbered(10, codec=Codec.GZIP)
    append(log, came, NOW)
    assert read_all(log)[16:] == came[16:]
    assert chain.seen == 30
    assert [step.tally.taken for step in (*chain.validators, *chain.filters)] == [10, 10, 10]


def test_a_filter_sees_what_the_producer_sent(tmp_path: Path) -> None:
    seen: list[Record] = []
    chain = TestChain(lambda record: seen.append(record) or record)
    records = [
        Stored(0, NOW, None, b"v", ()),
        Stored(1, NOW - 5, b"", None, (("a", None), ("a", b""), ("é", b"x" * 200))),
        Stored(2, -1, b"k" * 9000, b"v" * 70_000, ()),
    ]
    append(chained(tmp_path, chain), encode_batch(records), NOW)
    assert seen == [Record(r.value, r.key, r.headers, r.timestamp) for r in records]


@pytest.mark.parametrize("codec", list(Codec))
def test_gaps_are_left_as_compaction_leaves_them(tmp_path: Path, codec: Codec) -> None:
    chain = TestChain(by_value(_0=DROP, _3=DROP, _9=DROP))
    log = chained(tmp_path, chain)
    append(log, numbered(10, codec=codec, producer_id=7, producer_epoch=2, base_sequence=0), NOW)
    ((header, records),) = stored(log)
    assert [record.offset for record in records] == [1, 2, 4, 5, 6, 7, 8]
    assert [record.value for record in records] == [b"%d" % n for n in (1, 2, 4, 5, 6, 7, 8)]
    assert (header.base_offset, header.last_offset, header.count) == (0, 9, 7)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 0)
    assert (header.codec, header.max_timestamp) == (codec, NOW + 8)
    assert log.log_end_offset == 10
    append(log, numbered(1, producer_id=7, producer_epoch=2, base_sequence=10), NOW)
    assert chain.filters[0].tally.dropped == 4


def test_of_a_batch_without_records_the_header_stays(tmp_path: Path) -> None:
    chain = TestChain(lambda _: DROP)
    log = chained(tmp_path, chain)
    fields = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    append(log, numbered(3, codec=Codec.ZSTD, base_sequence=0, **fields), NOW)
    ((header, records),) = stored(log)
    assert (records, header.base_offset, header.last_offset, header.count) == ([], 0, 2, 0)
    assert (header.is_transactional, header.base_sequence, header.codec) == (True, 0, 0)
    assert log.log_end_offset == 3
    entry = log.producers.get(7)
    assert entry is not None
    assert (entry.last_sequence, entry.last_timestamp, entry.current_txn_first_offset) == (2, NOW, 0)
    append(log, numbered(2, base_sequence=3, **fields), NOW)
    assert log.log_end_offset == 5


def test_filters_run_in_their_order_and_the_next_sees_what_the_last_left(tmp_path: Path) -> None:
    def louder(record: Record) -> Record:
        return record._replace(value=(record.value or b"") + b"!")

    second: list[bytes | None] = []
    chain = TestChain(by_value(_1=DROP), louder, lambda record: second.append(record.value) or record)
    log = chained(tmp_path, chain)
    append(log, numbered(3), NOW)
    assert second == [b"0!", b"2!"]
    assert [record.value for record in stored(log)[0][1]] == [b"0!", b"2!"]
    assert [step.tally.taken for step in chain.filters] == [3, 2, 2]
    assert [step.tally.changed for step in chain.filters] == [0, 2, 0]


def test_a_changed_record_has_the_time_of_the_old_one_unless_it_says_another(tmp_path: Path) -> None:
    chain = TestChain(
        by_value(_0=lambda _: Record(b"new"), _1=lambda r: Record(b"later", timestamp=r.timestamp + 500))
    )
    log = chained(tmp_path, chain)
    append(log, numbered(3), NOW)
    ((header, records),) = stored(log)
    assert [record.timestamp for record in records] == [NOW, NOW + 501, NOW + 2]
    assert header.max_timestamp == NOW + 501
    assert records[0] == Stored(0, NOW, None, b"new", ())


def test_validators_name_every_record_at_fault(tmp_path: Path) -> None:
    filtered = TestChain(
        keep,
        validators=(
            lambda record: "odd" if int(record.value or 0) % 2 else None,
            lambda record: "too large" if int(record.value or 0) > 6 else None,
        ),
    )
    log = chained(tmp_path, filtered)
    with pytest.raises(InvalidRecord, match="due to 6 record errors in total") as caught:
        append(log, numbered(10), NOW)
    assert [tuple(error) for error in caught.value.record_errors] == [
        (1, "odd"), (3, "odd"), (5, "odd"), (7, "odd"), (8, "too large"), (9, "odd")
    ]  # fmt: skip
    assert log.log_end_offset == 0
    assert [step.tally.refused for step in filtered.validators] == [5, 1]
    assert filtered.filters[0].tally.taken == 0
    assert filtered.seen == 20  # filters see nothing of a batch that is refused


def test_a_long_list_of_faults_is_cut(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(validators=(lambda _: "no\nsecond line",)))
    with pytest.raises(InvalidRecord, match="due to 3000 record errors") as caught:
        append(log, numbered(3000), NOW)
    assert len(caught.value.record_errors) == 1000
    assert caught.value.record_errors[0] == (0, "no")


def test_dead_letters_are_posted_once_the_batch_is_stored(tmp_path: Path) -> None:
    chain = TestChain(by_value(_1=DeadLetter("bad one"), _2=DeadLetter("elsewhere", "other")))
    log = chained(tmp_path, chain)
    append(log, numbered(1), NOW)
    staged = stage_here(log, numbered(3))
    assert staged.base_offset == 1
    assert not chain.posted
    write_now(log)
    (letters,) = chain.posted
    assert (letters.partition, letters.base_offset) == (log.topic_partition, 1)
    ((whole, count),) = letters.batches("t.dlq", NOW + 7)
    (record,) = decode_records(whole)
    assert count == 1
    assert (record.key, record.value, record.timestamp) == (b"k1", b"1", NOW + 7)
    assert record.headers == (
        ("h", b"x"),
        ("lc.dead.letter.reason", b"bad one"),
        ("lc.dead.letter.filter", b"f0"),
        ("lc.dead.letter.topic", b"t"),
        ("lc.dead.letter.partition", b"0"),
        ("lc.dead.letter.offset", b"2"),
        ("lc.dead.letter.timestamp", b"%d" % (NOW + 1)),
    )
    ((whole, _),) = letters.batches("other", NOW)
    assert [record.value for record in decode_records(whole)] == [b"2"]
    assert [record.offset for record in stored(log)[1][1]] == [1]


def test_a_dead_letter_carries_what_the_filter_has_made_of_the_record(tmp_path: Path) -> None:
    masked = Record(b"***", None, (("mine", b"1"),))
    chain = TestChain(by_value(_1=lambda _: DeadLetter("a secret", record=masked)))
    log = chained(tmp_path, chain)
    append(log, numbered(3), NOW)
    (letters,) = chain.posted
    ((whole, _),) = letters.batches("t.dlq", NOW + 7)
    (letter,) = decode_records(whole)
    assert (letter.key, letter.value, letter.headers[0]) == (None, b"***", ("mine", b"1"))
    assert dict(letter.headers)["lc.dead.letter.timestamp"] == b"%d" % (NOW + 1)
    assert [record.value for record in stored(log)[0][1]] == [b"0", b"2"]
    assert chain.filters[0].tally.dead_lettered == 1


def test_dead_letters_of_a_write_that_fails_are_not_posted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = TestChain(lambda _: DeadLetter("bad"))
    log = chained(tmp_path, chain)
    stage_here(log, numbered(3))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("leafcuttr.log.append.commit.os.pwritev", full)
        with pytest.raises(BrokerError):
            write_now(log)
    assert not chain.posted
    append(log, numbered(1), NOW)
    assert [letters.base_offset for letters in chain.posted] == [0]


class OddError(BaseException):
    """As test frameworks have them, so that nobody takes them for an ordinary error."""


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError, OddError])
def test_whatever_a_filter_raises_is_its_batchs_trouble(tmp_path: Path, kind: type[BaseException]) -> None:
    def careless(_: Record) -> Any:
        raise kind

    log = chained(tmp_path, TestChain(careless))
    with pytest.raises(ChainError):
        append(log, numbered(1), NOW)
    log.use_chain(None)
    append(log, numbered(1), NOW)
    assert log.log_end_offset == 1


def test_one_batch_that_took_long_by_the_clock_alone_makes_no_filter_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process had the processor. Twice in a row it is the filter that waits; and work counts at once."""
    now, worked, waits, works = 0.0, 0.0, 0.0, 0.0

    def one(record: Record) -> Record:
        nonlocal now, worked
        now, worked = now + waits + works, worked + works
        return record

    monkeypatch.setattr("leafcuttr.log.append.chain.chain.perf_counter", lambda: now)
    monkeypatch.setattr("leafcuttr.log.append.chain.chain.thread_time", lambda: worked)
    log = chained(tmp_path, TestChain(one))
    assert log.chain is not None
    stage_here(log, memoryview(numbered(1)))
    for took, quick in ((0.02, True), (0.0, True), (0.02, True), (0.02, False)):
        waits = took
        stage_here(log, memoryview(numbered(1)))
        assert log.chain.is_quick(1) is quick
    log.chain._pace, waits, works = 0.0, 0.0, 0.02
    stage_here(log, memoryview(numbered(1)))
    assert not log.chain.is_quick(1)


@pytest.mark.parametrize("kind", ["filter", "validator"])
@pytest.mark.parametrize("at", [0, 2])
def test_stop_iteration_lets_nothing_past(tmp_path: Path, kind: str, at: int) -> None:
    """`next()` of something empty, in a filter: it ends whatever iterates over the records without an error."""

    def careless(record: Record) -> Any:
        if record.value == b"%d" % at:
            raise StopIteration
        return record if kind == "filter" else None

    chain = TestChain(careless) if kind == "filter" else TestChain(validators=(careless,))
    log = chained(tmp_path, chain)
    with pytest.raises(ChainError, match=kind):
        append(log, numbered(4), NOW)
    assert log.log_end_offset == 0
    assert (chain.filters or chain.validators)[0].tally.failures == 1


def test_a_changed_record_keeps_no_timestamp_that_is_only_equal(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(lambda record: record._replace(timestamp=float(record.timestamp or 0))))
    with pytest.raises(ChainError):
        append(log, numbered(1), NOW)


def test_a_time_beyond_what_a_header_can_say(tmp_path: Path) -> None:
    """The record's own, of base and delta, wraps as Java's longs do; a header does not go below no time at all."""
    log = chained(tmp_path, TestChain(by_value(_0=DROP)), message_timestamp_after_max_ms=2**63 - 1)
    late = encode_batch([Stored(0, 0, None, b"0"), Stored(1, 2**62, None, b"1")])
    append(log, patched(late, ">q", 27, 2**63 - 9), NOW)
    header = parse(read_all(log))
    assert (header.count, header.max_timestamp) == (1, NO_TIMESTAMP)


def test_letters_of_a_write_that_rolls_are_waited_for(tmp_path: Path) -> None:
    """Those of any group of the write, not only of its last."""
    chain = TestChain(by_value(_0=DeadLetter("bad")))
    log = chained(tmp_path, chain, segment_bytes=700)
    stage_here(log, numbered(5))
    for _ in range(5):
        stage_here(log, encode_batch([Stored(0, NOW, None, b"1" * 200)]))
    assert len(log.groups) > 1
    assert log.groups[-1].letters is None
    assert would_wait(log)


async def test_a_caller_that_waits_for_a_batch_waits_for_its_dead_letters(tmp_path: Path) -> None:
    import trio

    chain = TestChain(by_value(_0=DeadLetter("bad")))
    log = chained(tmp_path, chain)
    stage_here(log, numbered(2))
    assert would_wait(log)
    pending = begin_write(log)
    assert pending is not None
    await eventually(lambda: bool(chain.posted), "the dead letters")
    with trio.fail_after(60):
        await trio.testing.wait_all_tasks_blocked()
    assert not pending.done
    assert log.log_end_offset == 2
    chain.posted[0].finish()
    assert pending.done
    assert pending.failure is None


def test_a_duplicate_is_shown_to_nobody(tmp_path: Path) -> None:
    chain = TestChain(by_value(_0=DeadLetter("bad")), validators=(lambda _: None,))
    log = chained(tmp_path, chain)
    once = numbered(2, producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, once, NOW)
    assert (chain.seen, len(chain.posted)) == (4, 1)
    again = log.stage(memoryview(bytearray(once)), Origin.CLIENT, now_ms=NOW)
    assert again.duplicate
    assert (chain.seen, len(chain.posted)) == (4, 1)
    with pytest.raises(OutOfOrderSequence):
        append(log, numbered(2, producer_id=7, producer_epoch=0, base_sequence=9), NOW)
    assert chain.seen == 4


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (None, "its verdict is None, none of Record, DROP, DeadLetter and NotReady"),
        (True, "its verdict is a bool"),
        (b"bytes", "its verdict is a bytes"),
        ((b"v", b"k", (), NOW), "its verdict is a tuple"),
        (Record("text"), "a value that is a str, neither bytes nor None"),  # type: ignore[arg-type]
        (Record(b"v", "key"), "a key that is a str"),  # type: ignore[arg-type]
        (Record(b"v", headers=[("a", b"b")]), "headers that are a list"),  # type: ignore[arg-type]
        (Record(b"v", headers=("ab",)), "a header that is a str"),  # type: ignore[arg-type]
        (Record(b"v", headers=(("a", "b"),)), "a header that is a tuple"),  # type: ignore[arg-type]
        (Record(b"v", headers=(("\ud800", b""),)), "a header name that is no Unicode"),
        (Record(b"v", timestamp=-5), "a timestamp that is an int"),
        (Record(b"v", timestamp=2**63), "a timestamp that is an int"),
        (Record(b"v", timestamp=1.5), "a timestamp that is a float"),  # type: ignore[arg-type]
        (DeadLetter(3), "whose reason or topic is no text"),  # type: ignore[arg-type]
        (DeadLetter("x", record=b"v"), "with a record that is a bytes"),  # type: ignore[arg-type]
        (DeadLetter("x", record=Record("v")), "the record of its dead letter has a value that is a str"),  # type: ignore[arg-type]
        (
            DeadLetter("x", "__consumer_offsets"),
            "a dead letter for __consumer_offsets: it is an internal topic",
        ),
    ],
)
def test_what_is_no_verdict_is_a_failure_of_the_filter(
    tmp_path: Path, verdict: object, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    chain = TestChain(by_value(_1=lambda _: verdict))
    log = chained(tmp_path, chain)
    with pytest.raises(ChainError, match="The record filter f0 of topic t failed") as caught:
        append(log, numbered(3), NOW)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "record filter f0 of topic t failed at record 1 of a batch, which is refused" in line
    assert said in line
    assert (log.log_end_offset, chain.filters[0].tally.failures) == (0, 1)


@pytest.mark.parametrize("error", [KeyError("id"), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_one_that_raises_refuses_the_batch_and_says_so_once_a_minute(
    tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(record: Record) -> Record:
        if record.value == b"2":
            raise error
        return record

    log = chained(tmp_path, TestChain(fail))
    for _ in range(3):
        with pytest.raises(ChainError):
            append(log, numbered(5), NOW)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "failed at record 2" in line
    assert type(error).__name__ in line
    assert "chains.py, line" in line  # which calls it for this test
    validating = chained(tmp_path / "other", TestChain(validators=(fail,)))
    with pytest.raises(ChainError, match="The produce validator v0 of topic t failed"):
        append(validating, numbered(5), NOW)


def test_a_validator_that_answers_nonsense_has_failed(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(validators=(lambda _: False,)))
    with pytest.raises(ChainError):
        append(log, numbered(1), NOW)


def test_a_chain_that_cannot_be_made_refuses_everything(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(refusal="there is no record filter mask"))
    with pytest.raises(ChainError, match="takes no records at present: there is no record filter mask"):
        append(log, numbered(1), NOW)


def test_what_takes_long_is_left_to_a_worker(tmp_path: Path) -> None:
    threads: set[int] = set()

    def slow(record: Record) -> Record:
        threads.add(threading.get_ident())
        return record._replace(value=b"x")

    chain = TestChain(slow)
    log = chained(tmp_path, chain)
    big = numbered(5000)
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(big), Origin.CLIENT, now_ms=NOW)
    assert not chain.seen
    done: list[Any] = []
    worker = threading.Thread(target=lambda: done.append(work.value.work.do()))
    worker.start()
    worker.join()
    assert threads == {worker.ident}
    log.stage(memoryview(big), Origin.CLIENT, now_ms=NOW, prepared=done[0])
    write_now(log)
    assert chain.seen == 5000
    assert {record.value for record in stored(log)[0][1]} == {b"x"}


def test_a_filter_that_was_slow_is_left_to_a_worker_until_it_is_quick_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, takes = 0.0, 0.02

    def slow(record: Record) -> Record:
        nonlocal now
        now += takes
        return record

    monkeypatch.setattr("leafcuttr.log.append.chain.chain.perf_counter", lambda: now)
    log = chained(tmp_path, TestChain(slow))
    stage_here(log, memoryview(numbered(1)))
    takes = 0.0
    for _ in range(40):
        try:
            log.stage(memoryview(one := numbered(1)), Origin.CLIENT, now_ms=NOW)
        except LongWork as long:
            log.stage(memoryview(one), Origin.CLIENT, now_ms=NOW, prepared=long.work.do())
            slow = True
        else:
            slow = False
            break
    assert not slow
    assert 2 < log.next_offset < 40


@pytest.mark.parametrize("kind", ["filter", "validator"])
def test_the_first_batch_is_left_to_a_worker_and_the_next_one_is_not(tmp_path: Path, kind: str) -> None:
    chain = TestChain(keep) if kind == "filter" else TestChain(validators=(lambda _: None,))
    log = chained(tmp_path, chain)
    first = numbered(1)
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(first), Origin.CLIENT, now_ms=NOW)
    assert chain.seen == 0
    log.stage(memoryview(first), Origin.CLIENT, now_ms=NOW, prepared=work.value.work.do())
    stage_at_once(log, numbered(1))
    assert chain.seen == 2


def stage_at_once(log: Log, one: bytearray) -> None:
    """Here and not in a worker, however busy this machine was when the pace was measured."""
    assert log.chain is not None
    log.chain._pace = 0.0
    log.stage(memoryview(one), Origin.CLIENT, now_ms=NOW)


def test_a_filter_that_has_seen_no_record_yet_is_new_to_the_loop(tmp_path: Path) -> None:
    """What the first one drops the second one does not see."""
    chain = TestChain(by_value(_0=DROP), keep)
    log = chained(tmp_path, chain)
    stage_here(log, memoryview(numbered(1)))
    assert chain.seen == 1
    assert log.chain is not None
    log.chain._pace = 0.0
    with pytest.raises(LongWork):
        log.stage(memoryview(numbered(2)), Origin.CLIENT, now_ms=NOW)
    stage_here(log, memoryview(numbered(2)))
    assert chain.seen == 4
    stage_at_once(log, numbered(1))


def test_a_validator_that_fails_leaves_the_filters_new_to_the_loop(tmp_path: Path) -> None:
    def fail(record: Record) -> None:
        if record.value == b"0":
            raise ValueError

    log = chained(tmp_path, TestChain(keep, validators=(fail,)))
    with pytest.raises(ChainError):
        stage_here(log, memoryview(numbered(1)))
    assert log.chain is not None
    log.chain._pace = 0.0
    with pytest.raises(LongWork):
        log.stage(memoryview(numbered(1)), Origin.CLIENT, now_ms=NOW)


def test_a_chain_that_refuses_everything_needs_no_worker(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(keep, refusal="it is not there"))
    with pytest.raises(ChainError):
        log.stage(memoryview(numbered(1)), Origin.CLIENT, now_ms=NOW)


def waits(record: Record) -> Any:
    raise NeedsThread("it asks another process")


def waiting_chain(in_thread: Any, kind: str = "filter", *more: Any, **forget: Any) -> TestChain:
    """Of one that has to wait, after filters that do not."""
    if kind == "filter":
        return TestChain(*more, waits, in_threads={waits: in_thread}, **forget)
    return TestChain(*more, validators=(waits,), in_threads={waits: in_thread}, **forget)


@pytest.mark.parametrize("kind", ["filter", "validator"])
def test_one_that_has_to_wait_gets_whole_batches_in_a_worker(tmp_path: Path, kind: str) -> None:
    given: list[Any] = []

    def in_thread(records: Any) -> Any:
        given.append(records)
        return records if kind == "filter" else [None] * len(records)

    chain = waiting_chain(in_thread, kind)
    log = chained(tmp_path, chain)
    stage_here(log, memoryview(numbered(3)))
    assert log.chain is not None and not log.chain.needs_thread
    log.chain._pace = 0.0
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(batch := numbered(2)), Origin.CLIENT, now_ms=NOW)
    assert log.chain.needs_thread and chain.seen == 1
    log.stage(memoryview(batch), Origin.CLIENT, now_ms=NOW, prepared=work.value.work.do())
    log.chain._pace = 0.0
    with pytest.raises(LongWork):
        log.stage(memoryview(numbered(1)), Origin.CLIENT, now_ms=NOW)
    assert chain.seen == 1  # it is not tried again
    assert [[record.value for record in records] for records in given] == [[b"0", b"1", b"2"], [b"0", b"1"]]


def test_what_one_that_waits_answers_is_carried_out(tmp_path: Path) -> None:
    chain = waiting_chain(lambda records: [records[0], DROP, records[2]._replace(value=b"x")])
    log = chained(tmp_path, chain)
    append(log, numbered(3), NOW)
    assert [record.value for record in stored(log)[0][1]] == [b"0", b"x"]
    log = chained(tmp_path / "v", waiting_chain(lambda records: [None, "no", None], "validator"))
    with pytest.raises(InvalidRecord) as caught:
        append(log, numbered(3), NOW)
    assert [(one.batch_index, one.message) for one in caught.value.record_errors] == [(1, "no")]


@pytest.mark.parametrize("in_thread", [lambda records: records[1:], lambda _: 1 / 0, lambda _: None])
def test_one_that_waits_and_fails_refuses_the_batch(
    tmp_path: Path, in_thread: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log = chained(tmp_path, waiting_chain(in_thread))
    with pytest.raises(ChainError, match="The record filter f0 of topic t failed"):
        append(log, numbered(3), NOW)
    assert "failed at a batch, which is refused" in caplog.text


def test_one_that_cannot_wait_has_failed_where_it_asks_for_a_thread(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(waits))
    with pytest.raises(ChainError):
        append(log, numbered(1), NOW)
    assert log.chain is not None and not log.chain.needs_thread


def test_records_that_come_to_it_again_are_no_copies(tmp_path: Path) -> None:
    once = Once()
    log = chained(tmp_path, waiting_chain(lambda records: records, "filter", once.filter, forget=once.forget))
    append(log, numbered(1), NOW)
    assert log.chain is not None
    log.chain._pace = 0.0
    more = numbered(3)
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(more), Origin.CLIENT, now_ms=NOW)
    log.stage(memoryview(more), Origin.CLIENT, now_ms=NOW, prepared=work.value.work.do())
    write_now(log)
    assert [header.count for header, _ in stored(log)] == [1, 3]


def test_two_threads_never_call_one_filter(tmp_path: Path) -> None:
    chain = TestChain(keep)
    log = chained(tmp_path, chain)
    stage_here(log, memoryview(numbered(1)))
    with chain.chain.lock, pytest.raises(LongWork):  # a worker has it
        log.stage(memoryview(numbered(1)), Origin.CLIENT, now_ms=NOW)
    chain.chain._pace = 0.0  # however busy this machine was when it was measured
    log.stage(memoryview(numbered(1)), Origin.CLIENT, now_ms=NOW)


def test_what_another_chain_has_prepared_is_prepared_again(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(keep))
    big = numbered(5000)
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(big), Origin.CLIENT, now_ms=NOW)
    prepared = work.value.work.do()
    second = TestChain(lambda _: DROP)
    log.use_chain(second.chain)
    with pytest.raises(LongWork) as work:
        log.stage(memoryview(big), Origin.CLIENT, now_ms=NOW, prepared=prepared)
    log.stage(memoryview(big), Origin.CLIENT, now_ms=NOW, prepared=work.value.work.do())
    write_now(log)
    assert stored(log)[0][0].count == 0


def test_what_a_topic_wants_of_records_holds_for_those_that_are_stored(tmp_path: Path) -> None:
    def drop_old(record: Record) -> Any:
        return DROP if (record.timestamp or 0) < NOW - HOUR else record

    records = [
        Stored(n, NOW - (2 * HOUR if n % 2 else 0), None if n == 4 else b"k", b"%d" % n) for n in range(6)
    ]
    log = chained(tmp_path, TestChain(drop_old), message_timestamp_before_max_ms=HOUR)
    append(log, encode_batch(records), NOW)
    assert [record.offset for record in stored(log)[0][1]] == [0, 2, 4]
    late = chained(
        tmp_path / "late", TestChain(by_value(_0=DROP, _1=DROP)), message_timestamp_before_max_ms=HOUR
    )
    with pytest.raises(InvalidTimestamp) as caught:
        append(late, encode_batch(records), NOW)
    assert [error.batch_index for error in caught.value.record_errors] == [3, 5]  # the producer's numbers
    compacted = chained(tmp_path / "compacted", TestChain(by_value(_0=DROP)), cleanup_policy=("compact",))
    with pytest.raises(InvalidRecord) as refused:
        append(compacted, encode_batch(records), NOW)
    assert [error.batch_index for error in refused.value.record_errors] == [4]
    keyed = chained(
        tmp_path / "keyed",
        TestChain(lambda r: r if r.key else r._replace(key=b"made")),
        cleanup_policy=("compact",),
    )
    append(keyed, encode_batch(records), NOW)
    assert stored(keyed)[0][1][4].key == b"made"


def test_a_timestamp_that_a_filter_sets_is_checked(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(by_value(_1=lambda r: r._replace(timestamp=NOW + 100 * HOUR))))
    with pytest.raises(InvalidTimestamp) as caught:
        append(log, numbered(3), NOW)
    assert [error.batch_index for error in caught.value.record_errors] == [1]


def test_log_append_time(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(by_value(_1=DROP, _7=DROP)), message_timestamp_type="LogAppendTime")
    staged = stage_here(log, numbered(3, timestamp=NOW - HOUR))
    write_now(log)
    ((header, records),) = stored(log)
    assert (staged.log_append_time, header.is_log_append_time, header.max_timestamp) == (NOW, True, NOW)
    assert {record.timestamp for record in records} == {NOW}
    emptied = stage_here(log, encode_batch([Stored(0, NOW, None, b"7")]), NOW + 1)
    write_now(log)
    assert emptied.log_append_time == NOW + 1
    assert stored(log)[1][0].count == 0


def test_a_producer_that_sets_log_append_time_does_not_get_past_the_chain(tmp_path: Path) -> None:
    plain = make_log(tmp_path / "plain")
    append(plain, numbered(3, log_append_time=NOW), NOW)
    chain = TestChain(by_value(_1=DROP))
    log = chained(tmp_path, chain)
    append(log, numbered(3, log_append_time=NOW), NOW)
    assert chain.seen == 3
    assert [(record.offset, record.timestamp) for record in stored(log)[0][1]] == [
        (record.offset, record.timestamp) for record in stored(plain)[0][1] if record.offset != 1
    ]
    late = chained(tmp_path / "late", TestChain(keep))
    with pytest.raises(InvalidTimestamp):
        append(late, numbered(3, log_append_time=NOW + 100 * HOUR), NOW)


@pytest.mark.parametrize("target", ["gzip", "lz4", "zstd", "snappy", "uncompressed"])
def test_the_topics_own_codec_is_used(tmp_path: Path, target: str) -> None:
    log = chained(tmp_path, TestChain(by_value(_1=DROP)), compression_type=target)
    for codec in Codec:
        append(log, numbered(3, codec=codec), NOW)
    for header, records in stored(log):
        assert header.codec == (Codec.NONE if target == "uncompressed" else Codec[target.upper()])
        assert [record.value for record in records] == [b"0", b"2"]


def test_a_filter_must_not_make_a_batch_larger_than_the_topic_allows(tmp_path: Path) -> None:
    log = chained(tmp_path, TestChain(lambda r: r._replace(value=b"x" * 3000)), max_message_bytes=2000)
    with pytest.raises(MessageTooLarge):
        append(log, numbered(1), NOW)


def test_records_that_are_not_numbered_as_they_should_be_are_refused(tmp_path: Path) -> None:
    odd = encode_batch([Stored(0, NOW, None, b"a"), Stored(2, NOW, None, b"b")], last_offset_delta=1)
    log = chained(tmp_path, TestChain(keep))
    with pytest.raises(InvalidRecord, match="record 1 has the offset delta 2"):
        append(log, odd, NOW)
    with pytest.raises(InvalidRecord, match="cannot be read"):
        append(log, patched(numbered(3), ">B", 61, 0x7F), NOW)


def test_the_brokers_own_dead_letters_pass(tmp_path: Path) -> None:
    chain = TestChain(lambda _: DROP)
    log = chained(tmp_path, chain, max_message_bytes=1000)
    log.stage(batch(1, size=5000), Origin.DEAD_LETTERS, now_ms=NOW)
    write_now(log)
    assert not chain.seen
    assert stored(log)[0][0].count == 1


def test_dead_letters_of_dead_letters_say_the_last_reason_only(tmp_path: Path) -> None:
    old = (("lc.dead.letter.reason", b"old"), ("mine", b"1"))
    chain = TestChain(lambda _: DeadLetter("new"))
    append(chained(tmp_path, chain), encode_batch([Stored(0, NOW, None, b"v", old)]), NOW)
    ((whole, _),) = chain.posted[0].batches("t.dlq", NOW)
    (record,) = decode_records(whole)
    assert [value for name, value in record.headers if name == "lc.dead.letter.reason"] == [b"new"]
    assert record.headers[0] == ("mine", b"1")


def test_many_dead_letters_make_several_batches(tmp_path: Path) -> None:
    chain = TestChain(lambda _: DeadLetter("bad"))
    append(chained(tmp_path, chain), batch(8, size=100_000), NOW)
    made = list(chain.posted[0].batches("t.dlq", NOW))
    assert [count for _, count in made] == [5, 3]
    for whole, count in made:
        assert [record.offset for record in decode_records(whole)] == list(range(count))


# Random verdicts over random batches, against a model

KEEP, CHANGE, GO, DEAD = range(4)
_bytes = st.none() | st.binary(max_size=20) | st.binary(min_size=120, max_size=200)
_record = st.builds(
    Stored,
    st.just(0),
    st.integers(0, NOW),
    _bytes,
    _bytes,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(tuple),
)


@given(
    rows=st.lists(st.tuples(_record, st.integers(0, 3), st.integers(0, 3), _record), min_size=1, max_size=40),
    codec=st.sampled_from(list(Codec)),
    producer=st.booleans(),
)
def test_any_verdicts_on_any_batch(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], codec: Codec, producer: bool
) -> None:
    came = [row[0]._replace(offset=n) for n, row in enumerate(rows)]
    at = [-1, -1]

    def verdict(turn: int) -> Any:
        def judge(record: Record) -> Any:
            # Which record this is: the first filter sees all, the second those that the first has left.
            at[turn] += 1
            if turn:
                while rows[at[1]][1] in (GO, DEAD):
                    at[1] += 1
            row = rows[at[turn]]
            new = Record(row[3].value, row[3].key, row[3].headers, row[3].timestamp)
            return {KEEP: record, CHANGE: new, GO: DROP, DEAD: DeadLetter(f"{turn}")}[row[1 + turn]]

        return judge

    model: list[Stored] = []
    letters: list[tuple[int, str, bytes | None]] = []
    for n, (record, first, second, new) in enumerate(rows):
        now = record
        for turn, what in enumerate((first, second)):
            if what == DEAD:
                letters.append((n, f"{turn}", now.value))
            if what in (GO, DEAD):
                break
            now = new if what == CHANGE else now
        else:
            model.append(now._replace(offset=n + 1))

    chain = TestChain(verdict(0), verdict(1))
    log = make_log(tmp_path_factory.mktemp("log"))
    append(log, numbered(1), NOW)
    log.use_chain(chain.chain)
    fields = {"producer_id": 3, "producer_epoch": 1, "base_sequence": 5} if producer else {}
    append(log, encode_batch(came, codec=codec, **fields), NOW)  # type: ignore[arg-type]
    header, records = stored(log)[1]
    assert records == model
    assert (header.base_offset, header.last_offset, header.count) == (1, len(rows), len(model))
    assert header.max_timestamp == max((record.timestamp for record in model), default=-1)
    assert (header.producer_id, header.base_sequence) == ((3, 5) if producer else (-1, -1))
    assert log.log_end_offset == len(rows) + 1
    found = [(one.at, one.reason, one.record.value) for posted in chain.posted for one in posted.letters]
    assert sorted(found) == sorted(letters)


# Filters that remember records


class Once:
    """Drops copies of values."""

    def __init__(self) -> None:
        self.seen: set[bytes | None] = set()
        self.forgotten = 0

    def filter(self, record: Record) -> Any:
        if record.value in self.seen:
            return DROP
        self.seen.add(record.value)
        return record

    def forget(self) -> None:
        self.seen.clear()
        self.forgotten += 1


def test_copies_of_what_was_stored_are_found(tmp_path: Path) -> None:
    once = Once()
    log = chained(tmp_path, TestChain(once.filter, forget=once.forget))
    append(log, numbered(3), NOW)
    append(log, numbered(3), NOW)
    assert [header.count for header, _ in stored(log)] == [3, 0] and once.forgotten == 0


def test_a_batch_that_another_filter_has_failed_on_is_no_copy_when_it_comes_again(tmp_path: Path) -> None:
    once, fails = Once(), [True]

    def fail(record: Record) -> Any:
        if fails:
            raise LookupError
        return record

    log = chained(tmp_path, TestChain(once.filter, fail, forget=once.forget))
    with pytest.raises(ChainError):
        append(log, numbered(3), NOW)
    fails.clear()
    append(log, numbered(3), NOW)
    assert [header.count for header, _ in stored(log)] == [3]
    assert once.forgotten == 2  # of both filters


def test_a_batch_that_could_not_be_written_is_no_copy_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = Once()
    log = chained(tmp_path, TestChain(once.filter, forget=once.forget))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("leafcuttr.log.append.commit.write_all", full)
        with pytest.raises(BrokerError):
            append(log, numbered(3), NOW)
    append(log, numbered(3), NOW)
    assert [header.count for header, _ in stored(log)] == [3]


def test_a_batch_that_is_refused_after_it_was_filtered_is_no_copy_when_it_comes_again(tmp_path: Path) -> None:
    """A batch out of order that a worker has filtered."""
    once = Once()
    log = chained(tmp_path, TestChain(once.filter, forget=once.forget))
    refused = numbered(3, producer_id=7, producer_epoch=0, base_sequence=0)
    with pytest.raises(LongWork) as long:
        log.stage(bytearray(refused), Origin.CLIENT, now_ms=NOW)
    prepared = long.value.work.do()
    append(log, numbered(5, producer_id=7, producer_epoch=1, base_sequence=0), NOW)
    with pytest.raises(BrokerError):
        log.stage(bytearray(refused), Origin.CLIENT, now_ms=NOW, prepared=prepared)
    append(log, numbered(3, producer_id=7, producer_epoch=1, base_sequence=5), NOW)
    assert [header.count for header, _ in stored(log)] == [2, 3]


def test_one_that_fails_to_forget_is_logged_and_judges_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def forget() -> None:
        raise LookupError("no")

    chain = TestChain(keep, forget=forget)
    log = chained(tmp_path, chain)
    chain.chain.forget()
    append(log, numbered(3), NOW)
    assert log.log_end_offset == 3 and "LookupError: no" in caplog.text


def test_a_record_that_is_routed_refuses_the_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = chained(tmp_path, TestChain(lambda record: Routed(record, "other")))
    with pytest.raises(ChainError):
        append(log, numbered(3), NOW)
    assert "it routes records, which only a relay can do" in caplog.text and log.log_end_offset == 0
