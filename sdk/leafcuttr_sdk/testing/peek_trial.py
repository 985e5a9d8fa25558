"""One run of the checks of a produce validator that needs parts of records only: each of the samples in a batch of
its own, and all of them in one."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import NotReady, TopicContext
from leafcuttr_sdk.peek import Peek, PeekedBatch, own_peek, words_of
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.record_trial import PROMISES, Call, Outcome, Trial, TrialKind
from leafcuttr_sdk.testing.report import literally, told
from leafcuttr_sdk.testing.samples import NOW_MS, Sample, sample_records
from leafcuttr_sdk.testing.verdicts import why_no_reason

_STARTS: Final = (
    ("a value of one byte", b"\x00"),
    ("a value of four bytes", b"\x00\x00\x00\x00"),
    ("a value of five bytes", b"\x00\x00\x00\x00\x01"),
    ("a value with a negative id of a schema", b"\x00\xff\xff\xff\xff\x02"),
    ("a value that begins with the byte 1", b"\x01\x00\x00\x00\x01\x02"),
    ("a value that begins with the byte 255", b"\xff" * 40),
)


def peeked_batch(records: Iterable[Record], peek: Peek) -> PeekedBatch:
    """What a broker shows a validator with this `peek` of a batch of these records."""
    records = list(records)

    def first(content: bytes | None, most: int) -> bytes | None:
        return None if content is None else content[:most]

    keys = [first(one.key, peek.key_bytes) for one in records] if peek.key_bytes is not None else []
    values = [first(one.value, peek.value_bytes) for one in records] if peek.value_bytes is not None else []
    headers = {
        wanted: [tuple(value for name, value in one.headers if name == wanted) for one in records]
        for wanted in peek.headers
    }
    return PeekedBatch(len(records), keys, values, headers)


def why_no_refusals(answer: object, count: int = 1) -> str | None:
    """What is wrong with what `validate_batch` returned of a batch of so many records; None if nothing is."""
    if inspect.isawaitable(answer):
        return "returned something to await: a validator is called as a plain function"
    if not _is_mapping(answer):
        return (
            f"returned {kind_of(answer)}: return a mapping of indexes to reasons, empty to accept all records"
        )
    for index, reason in answer.items():
        if type(index) is not int or not 0 <= index < count:
            return f"returned a mapping with {index!r}, which is no index in a batch of {count}"
        wrong = "returned None as a reason" if reason is None else why_no_reason(reason)
        if wrong is not None:
            return wrong
    return None


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


class PeekTrial(Trial):
    """As of a validator that gets records; its method gets batches."""

    def __init__(
        self,
        kind: TrialKind,
        name: str,
        make: Callable[[TopicContext], object],
        context: TopicContext,
        peek: Peek,
    ) -> None:
        promises = {
            **PROMISES,
            "called": f"its method is a plain one that takes a batch, and needs {words_of(peek)}",
            "batches": "it refuses of a batch the records that it refuses alone",
        }
        super().__init__(kind, name, make, context, promises)
        self._peek = peek

    def _samples(self) -> list[Sample]:
        """Those of all, and what it may meet where it looks."""
        text = b"21.5 degrees"
        more = [Sample(what, Record(start, b"sensor-1")) for what, start in _STARTS]
        more += [Sample(what.replace("value", "key"), Record(text, start)) for what, start in _STARTS]
        for name in self._peek.headers:
            more += [
                Sample(f"{what} {name!r}", Record(text, b"sensor-1", headers))
                for what, headers in (
                    ("no value in the header", ((name, None),)),
                    ("an empty header", ((name, b""),)),
                    ("one byte in the header", ((name, b"\x00"),)),
                    ("bytes that are no UTF-8 in the header", ((name, b"\xff" * 17),)),
                    ("a schema's id in the header", ((name, b"\x01" + bytes(16)),)),
                    ("twice the header", ((name, b"\x00\x00\x00\x00\x01"), ("other", b""), (name, None))),
                )
            ]
        timed = [Sample(what, record._replace(timestamp=NOW_MS)) for what, record in more]
        return [*sample_records(), *timed]

    def _call_of(self, method: Callable[..., object]) -> Call:
        peek = own_peek(getattr(method, "__self__", None), self._peek)
        return lambda record: method(peeked_batch([record], peek))

    def _compare_otherwise(
        self, instance: object, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> None:
        """All of those that it has an answer to, in one batch."""
        alone = [
            (sample, cast("Mapping[int, str | NotReady]", outcome.verdict).get(0))
            for sample, outcome in zip(samples, outcomes, strict=True)
            if outcome.error is None and why_no_refusals(outcome.verdict) is None
        ]
        batch = peeked_batch([sample.record for sample, _ in alone], own_peek(instance, self._peek))
        method = getattr(instance, self._kind.method)
        made = watch.watched(lambda: method(batch))
        if made.error is not None:
            problem = f"{self._kind.method} raised {literally(told(made.error))} for all of them in one batch"
            self._notes.add("batches", problem)
            return
        wrong = why_no_refusals(made.result, batch.record_count)
        if wrong is not None:
            self._notes.add("batches", f"{literally(wrong)}, for all of them in one batch")
            return
        refused = cast("Mapping[int, str | NotReady]", made.result)
        for index, (sample, reason) in enumerate(alone):
            if isinstance(reason, NotReady) or isinstance(refused.get(index), NotReady):
                continue  # what it lacks may have come meanwhile
            if (refused.get(index) is None) != (reason is None):
                does = "accepts" if refused.get(index) is None else "refuses"
                self._notes.add(
                    "batches",
                    f"it {does} {{}} in a batch with others, and not alone: each sequence of the batch has one item a "
                    "record, and the answer the index of each that is refused (repeatable=False if it decides by "
                    "chance)",
                    sample.what,
                )
