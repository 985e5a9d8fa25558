"""What validators that look at parts of records see of a batch on its way into a log, and what they may answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import BrokerError, ChainError, InvalidRecord, NotReadyError, UnknownServerError
from leafcuttr.log.append.chain import chain as chains
from leafcuttr.log.append.chain.chain import Chain, Step, Tally
from leafcuttr.log.append.chain.peeking import SLOWEST_PEEK_S, refusals_of
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.log import Log
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import Failures, Part
from leafcuttr.wire import record_peek
from leafcuttr.wire.batch import HEADER_SIZE, parse, sealed
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk.filters import DROP, NotReady
from leafcuttr_sdk.peek import Peek, PeekedBatch
from leafcuttr_sdk.records import Record
from support.logs import NOW, append, make_log, read_all, write_now

FIVE = Peek(value_bytes=5)


class Looks:
    """A validator, which keeps what it was shown, and in which thread."""

    def __init__(self, answer: Any = None, peek: Peek = FIVE) -> None:
        self.peek = peek
        self.answer = answer if answer is not None else {}
        self.seen: list[PeekedBatch] = []
        self.threads: list[threading.Thread] = []

    def __call__(self, batch: PeekedBatch) -> Any:
        self.seen.append(batch)
        self.threads.append(threading.current_thread())
        return self.answer(batch) if callable(self.answer) else self.answer


def chained(tmp_path: Path, *validators: Any, filters: Sequence[Any] = (), **config: Any) -> Log:
    def step(kind: str, number: int, call: Any) -> Step:
        name = f"{kind[0]}{number}"
        return Step(name, call, Tally(), Part("tests", f"{kind} {name}"), getattr(call, "peek", None))

    log = make_log(tmp_path / "t-0", **config)
    chain = Chain(
        "t",
        validators=[step("validator", number, call) for number, call in enumerate(validators)],
        filters=[step("filter", number, call) for number, call in enumerate(filters)],
        post=lambda _: None,
        complain=Complaints(logging.getLogger("tests.chain")),
        failures=Failures(),
    )
    log.use_chain(chain)
    return log


def numbered(count: int, *, codec: Codec = Codec.NONE, size: int = 100, **fields: Any) -> bytearray:
    records = [Stored(n, NOW, b"k%d" % n, (b"%07d" % n).ljust(size)) for n in range(count)]
    return encode_batch(records, codec=codec, **fields)


def heads(count: int) -> list[bytes]:
    return [(b"%07d" % n)[:5] for n in range(count)]


@pytest.mark.parametrize("codec", list(Codec))
def test_it_sees_what_it_asked_for_and_the_batch_is_stored_as_it_came(tmp_path: Path, codec: Codec) -> None:
    looks = Looks()
    log = chained(tmp_path, looks)
    for count in (1, 500, 40):
        came = numbered(count, codec=codec)
        before = len(read_all(log))
        append(log, came, NOW)
        assert read_all(log)[before + 16 :] == came[16:]
    assert looks.seen == [PeekedBatch(count, [], heads(count), {}) for count in (1, 500, 40)]


def test_no_record_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object) -> None:
        raise AssertionError("a record was made")

    monkeypatch.setattr("leafcuttr.log.append.chain.filtered_batch.take_apart", made)
    monkeypatch.setattr("leafcuttr.wire.records.decode_records", made)
    log = chained(tmp_path, Looks())
    append(log, numbered(500), NOW)
    append(log, numbered(5, codec=Codec.ZSTD), NOW)
    log.use_chain(chained(tmp_path / "other", Looks(), lambda _: None).chain)
    with pytest.raises(AssertionError, match="a record was made"):
        append(log, numbered(5), NOW)


def test_those_that_it_refuses_are_named(tmp_path: Path) -> None:
    looks = Looks({7: "no\nmore", 2: "not this"})
    log = chained(tmp_path, looks)
    with pytest.raises(InvalidRecord, match="due to 2 record errors in total") as caught:
        append(log, numbered(10), NOW)
    assert [tuple(error) for error in caught.value.record_errors] == [(2, "not this"), (7, "no")]
    assert log.log_end_offset == 0
    assert log.chain is not None
    assert log.chain._validators[0].tally.refused == 2
    looks.answer = {3: ""}
    with pytest.raises(InvalidRecord) as caught:
        append(log, numbered(10), NOW)
    assert [tuple(error) for error in caught.value.record_errors] == [(3, "refused by v0")]


def test_it_stands_among_others_in_the_order_of_the_names(tmp_path: Path) -> None:
    """The reason is that of the first; each sees all records; filters see what is left to them."""
    order: list[str] = []

    def odd(record: Record) -> str | None:
        order.append("odd") if record.value and record.value.startswith(b"0000000") else None
        return "odd" if record.value and record.value[6] & 1 else None

    def first(batch: PeekedBatch) -> dict[int, str]:
        order.append("first")
        return {1: "first"}

    def last(batch: PeekedBatch) -> dict[int, str]:
        order.append("last")
        return {3: "last", 4: "last"}

    looks = Looks(first), Looks(last, Peek(key_bytes=1))
    log = chained(tmp_path, looks[0], odd, looks[1], filters=[lambda _: order.append("filter") or DROP])
    with pytest.raises(InvalidRecord) as caught:
        append(log, numbered(6), NOW)
    assert [tuple(error) for error in caught.value.record_errors] == [
        (1, "first"),
        (3, "odd"),
        (4, "last"),
        (5, "odd"),
    ]
    assert order == ["first", "odd", "last"]
    assert looks[0].seen == [PeekedBatch(6, [], heads(6), {})]
    assert looks[1].seen == [PeekedBatch(6, [b"k"] * 6, [], {})]


def test_filters_behind_it_change_the_batch(tmp_path: Path) -> None:
    def filter(record: Record) -> Any:
        return DROP if record.value and record.value.startswith(b"0000001") else record

    looks = Looks()
    log = chained(tmp_path, looks, filters=[filter])
    append(log, numbered(3), NOW)
    assert parse(read_all(log)).count == 2
    assert looks.seen[0].record_count == 3
    assert log.chain is not None
    assert log.chain.has_filters


def test_what_several_ask_for_is_taken_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Peek] = []
    original = record_peek.peek_records

    def peek_records(records: memoryview, count: int, peek: Peek, **more: Any) -> PeekedBatch:
        asked.append(peek)
        return original(records, count, peek, **more)

    monkeypatch.setattr("leafcuttr.log.append.chain.peeking.peek_records", peek_records)
    looks = Looks(), Looks(), Looks(peek=Peek(key_bytes=2))
    append(chained(tmp_path, *looks), numbered(2), NOW)
    assert sorted(asked, key=str) == [Peek(key_bytes=2), FIVE] or sorted(asked, key=str) == [FIVE, Peek(2)]
    assert looks[0].seen == looks[1].seen


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "its answer is None, not a mapping"),
        ([], "its answer is a list, not a mapping"),
        ({"0": "no"}, "its answer names a str, not the index of a record"),
        ({True: "no"}, "its answer names a bool, not the index"),
        ({-1: "no"}, "its answer names record -1 of 3"),
        ({3: "no"}, "its answer names record 3 of 3"),
        ({0: None}, "its answer for record 0 is None, not a reason"),
    ],
)
def test_what_is_no_answer_is_a_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Any, why: str
) -> None:
    log = chained(tmp_path, Looks(lambda _: answer))
    with pytest.raises(ChainError):
        append(log, numbered(3), NOW)
    assert log.log_end_offset == 0
    assert f"validator v0 failed at a batch, which is refused: {why}" in caplog.text
    assert log.chain is not None
    assert log.chain._validators[0].tally.failures == 1


class Odd(dict[int, str]):
    """An answer that fails when it is read."""

    def items(self) -> Any:
        raise OSError("no items")


@pytest.mark.parametrize("fails", [lambda _: 1 // 0, lambda _: Odd(), lambda _: next(iter(()))])
def test_one_that_raises_refuses_the_batch(tmp_path: Path, fails: Any) -> None:
    log = chained(tmp_path, Looks(fails))
    for _ in range(3):
        with pytest.raises(ChainError, match="validator v0 failed"):
            append(log, numbered(3), NOW)
    assert log.log_end_offset == 0
    assert log.chain is not None
    assert log.chain.fails


def test_answers_in_any_order_and_of_any_kind_of_mapping() -> None:
    from types import MappingProxyType

    found: Mapping[int, str] = MappingProxyType({5: "b", 1: "a"})
    assert refusals_of(found, 6) == [(1, "a"), (5, "b")]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_records_that_cannot_be_read_are_refused_as_by_one_that_gets_records(
    tmp_path: Path, codec: Codec
) -> None:
    """And it has not been called."""
    whole = bytearray(encode_batch([Stored(n, NOW, None, bytes(90)) for n in range(50)]))
    wrong_end, wrong_delta, endless = bytearray(whole), bytearray(whole), bytearray(whole)
    wrong_end[-1] = 2
    size = (len(whole) - HEADER_SIZE) // 50
    wrong_delta[HEADER_SIZE + 10 * size + 4] = 40
    endless[HEADER_SIZE : HEADER_SIZE + 6] = b"\x80" * 6
    for number, wrong in enumerate((wrong_end, wrong_delta, endless)):
        header = parse(wrong)
        body: Any = wrong[HEADER_SIZE:]
        if codec:
            from leafcuttr.wire.compression import compress

            body = compress(codec, body, None)
        batch = sealed(header._replace(attributes=header.attributes | codec), body)
        answers: list[BrokerError] = []
        looks = Looks()
        for kind, validator in (("peek", looks), ("records", lambda _: None)):
            log = chained(tmp_path / f"{number}-{kind}", validator)
            with pytest.raises((InvalidRecord, UnknownServerError)) as caught:
                append(log, bytearray(batch), NOW)
            answers.append(caught.value)
        assert [(type(one), str(one)) for one in answers] == [(type(answers[0]), str(answers[0]))] * 2
        assert not looks.seen


def at_once(log: Log, batch: bytearray) -> None:
    """Stage it here. Raises LongWork."""
    log.stage(memoryview(batch), Origin.CLIENT, now_ms=NOW)


def tried(tmp_path: Path, looks: Looks, *others: Any) -> Log:
    """A log whose chain has seen a batch."""
    log = chained(tmp_path, looks, *others)
    append(log, numbered(1), NOW)
    assert looks.threads
    return log


def test_a_large_batch_is_looked_at_at_once_and_a_compressed_one_is_not(tmp_path: Path) -> None:
    looks = Looks()
    log = tried(tmp_path, looks)
    assert log.chain is not None
    log.chain._pace = 0.0
    at_once(log, numbered(500, size=1000))
    write_now(log)
    assert looks.seen[-1].record_count == 500
    log.chain._pace = 0.0
    with pytest.raises(LongWork):
        at_once(log, numbered(500, size=1000, codec=Codec.LZ4))
    with pytest.raises(LongWork):
        at_once(tried(tmp_path / "2", Looks(), lambda _: None), numbered(500, size=1000))


def test_many_records_and_many_headers_are_left_to_a_worker(tmp_path: Path) -> None:
    """However quick it was: records of other lengths may take longer."""
    looks = Looks()
    log = tried(tmp_path, looks)
    assert log.chain is not None
    log.chain._pace = 0.0
    most = int(chains._AT_ONCE_S / SLOWEST_PEEK_S)
    assert log.chain.is_quick(most)
    assert not log.chain.is_quick(most + 1)
    before = len(looks.seen)
    headers = tuple(("a", b"") for _ in range(1500))
    batch = encode_batch([Stored(n, NOW, None, b"x" * n, headers) for n in range(2)])
    with pytest.raises(LongWork):
        at_once(log, batch)
    assert len(looks.seen) == before
    append(log, batch, NOW)
    assert len(looks.seen) == before + 1


def test_one_that_was_slow_is_left_to_a_worker(tmp_path: Path) -> None:
    log = tried(tmp_path, Looks())
    assert log.chain is not None
    log.chain._pace = chains._AT_ONCE_S
    assert not log.chain.is_quick(2)
    with pytest.raises(LongWork):
        at_once(log, numbered(2))


def test_the_first_batch_is_left_to_a_worker(tmp_path: Path) -> None:
    looks = Looks()
    log = chained(tmp_path, looks)
    with pytest.raises(LongWork):
        at_once(log, numbered(1))
    assert not looks.seen


def test_the_walk_is_compiled_before_the_first_batch_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_peek._compiled.cache_clear()
    log = chained(tmp_path, Looks())

    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("compiled while it is measured")

    monkeypatch.setattr(record_peek, "compile_frame", compiled)
    append(log, numbered(1), NOW)
    append(log, numbered(1, size=10_000), NOW)
    assert log.log_end_offset == 2


def test_one_that_is_not_ready_refuses_the_batch_for_now(tmp_path: Path) -> None:
    looks = Looks({1: NotReady("the schemas")})
    log = chained(tmp_path, looks)
    with pytest.raises(NotReadyError, match="waits for the schemas"):
        append(log, numbered(2), NOW)
    looks.answer = {1: NotReady("the schemas"), 0: "no schema"}
    with pytest.raises(InvalidRecord, match="no schema"):
        append(log, numbered(2), NOW)
    looks.answer = lambda _: {}
    append(log, numbered(2), NOW)
    assert log.log_end_offset == 2
