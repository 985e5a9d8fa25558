"""Validators and filters that are not ready: what becomes of their batches, and what is known of what they wait for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import ChainError, ErrorCode, InvalidRecord, NotReadyError
from leafcuttr.log.append.chain import readiness
from leafcuttr.log.append.chain.readiness import HOLDS_S
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk.filters import DROP, DeadLetter, NotReady
from leafcuttr_sdk.records import Record
from support.chains import TestChain, keep
from support.logs import NOW, append, make_log

SAID = "it waits for the schemas"


def batch(*values: bytes, **fields: Any) -> bytearray:
    return encode_batch([Stored(n, NOW, b"k", value) for n, value in enumerate(values)], **fields)


class Switch:
    """A part that is not ready until it is told."""

    def __init__(self, otherwise: Any) -> None:
        self.ready = False
        self.otherwise = otherwise

    def __call__(self, record: Record) -> Any:
        return self.otherwise(record) if self.ready else NotReady("the schemas")


@pytest.mark.parametrize("kind", ["record filter f0", "produce validator v0"])
def test_a_batch_is_refused_for_now_and_taken_once_the_part_is_ready(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_filter = kind.startswith("record")
    part = Switch(keep if is_filter else lambda _: None)
    chain = TestChain(part) if is_filter else TestChain(validators=(part,))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    (step,) = chain.filters or chain.validators
    assert chain.chain.readiness.waits == ""
    for _ in range(3):
        with pytest.raises(NotReadyError) as caught:
            append(log, batch(b"0", b"1", producer_id=7, producer_epoch=0, base_sequence=0), NOW)
        assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert str(caught.value) == f"The {kind} of topic t is not ready: {SAID}"
    assert chain.chain.readiness.waits == f"{kind} of topic t of plugin tests waits for the schemas"
    (line,) = [each for each in caplog.records if "not ready" in each.getMessage()]
    assert line.levelno == logging.WARNING
    assert line.getMessage() == (
        f"the {kind} of topic t of plugin tests is not ready: {SAID}; producers are told to try again"
    )
    tally = step.tally
    assert (log.log_end_offset, tally.not_ready, tally.failures, tally.taken) == (0, 3, 0, 0)
    assert not chain.chain.fails
    part.ready = True
    # The same sequence: nothing of the first ones was taken for it.
    assert append(log, batch(b"0", b"1", producer_id=7, producer_epoch=0, base_sequence=0), NOW) == 0
    assert chain.chain.readiness.waits == ""
    assert (log.log_end_offset, tally.not_ready, tally.taken) == (2, 3, 2)


def test_one_record_that_cannot_be_judged_keeps_back_its_batch(tmp_path: Path) -> None:
    """What earlier filters have made of it, and its dead letters, are as if they had not been."""
    verdicts: dict[bytes | None, Any] = {b"d": DROP, b"l": DeadLetter("x"), b"n": NotReady("the schemas")}
    chain = TestChain(keep, lambda record: verdicts.get(record.value, record))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(NotReadyError):
        append(log, batch(b"d", b"l", b"n", b"k"), NOW)
    assert log.log_end_offset == 0 and not chain.posted
    first, second = (step.tally for step in chain.filters)
    assert (first.not_ready, second.not_ready) == (0, 1)
    assert first.taken == second.taken == second.dropped == second.dead_lettered == 0


def test_what_is_refused_for_good_is_said_at_once(tmp_path: Path) -> None:
    """A client that is told to try again would do so for minutes, and be refused in the end."""
    validators = (
        lambda record: NotReady("the schemas") if record.value == b"0" else None,
        lambda record: "bad" if record.value == b"1" else None,
    )
    chain = TestChain(validators=validators)
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(InvalidRecord) as caught:
        append(log, batch(b"0", b"1", b"2"), NOW)
    assert [(each.batch_index, each.message) for each in caught.value.record_errors] == [(1, "bad")]
    assert chain.validators[0].tally.not_ready == 0
    with pytest.raises(NotReadyError):
        append(log, batch(b"0", b"2"), NOW)


def test_a_failure_is_a_failure_whether_or_not_others_are_ready(tmp_path: Path) -> None:
    def fail(_: Record) -> None:
        raise OSError

    chain = TestChain(validators=(lambda _: NotReady("the schemas"), fail))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(ChainError, match="v1 of topic t failed"):
        append(log, batch(b"0"), NOW)
    assert chain.chain.readiness.waits == ""


@pytest.mark.parametrize("is_filter", [True, False])
def test_what_it_waits_for_is_a_text(
    tmp_path: Path, is_filter: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(_: Record) -> Any:
        return NotReady(3)  # type: ignore[arg-type]

    chain = TestChain(wrong) if is_filter else TestChain(validators=(wrong,))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(ChainError):
        append(log, batch(b"0"), NOW)
    assert "its verdict is a NotReady, which waits for an int, not a text" in caplog.text
    assert (chain.filters or chain.validators)[0].tally.failures == 1


@pytest.mark.parametrize(
    ("given", "shown"), [("one\ntwo", "one"), ("", "something that it does not name"), ("x" * 9999, None)]
)
def test_it_is_one_line(tmp_path: Path, given: str, shown: str | None) -> None:
    chain = TestChain(lambda _: NotReady(given))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(NotReadyError) as caught:
        append(log, batch(b"0"), NOW)
    waits_for = str(caught.value).partition(" waits for ")[2]
    assert waits_for.endswith("x…") if shown is None else waits_for == shown
    assert chain.chain.readiness.waits.endswith(waits_for)


def test_what_was_said_long_ago_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody produces any more: whether it is ready by now is not known."""
    now = 5.0
    monkeypatch.setattr(readiness.time, "monotonic", lambda: now)
    chain = TestChain(lambda _: NotReady("the schemas"))
    log = make_log(tmp_path / "t-0")
    log.use_chain(chain.chain)
    with pytest.raises(NotReadyError):
        append(log, batch(b"0"), NOW)
    now += HOLDS_S - 1
    assert chain.chain.readiness.waits
    now += 2
    assert not chain.chain.readiness.waits
