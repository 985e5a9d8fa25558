"""The chain of a topic: its produce validators and record filters in order. It sees every record of a batch before the
append, whichever way the batch came.

Validators see all records first, and if they refuse one the batch as a whole is refused, each such record named. Then
each filter in its order gets what the one before has left: a record that it keeps, another in its place, or none. A
batch that no filter has changed is stored as the bytes that it came as. Otherwise those of the records that stay do;
base and last offset, producer, epoch and sequence are as before, and where records have gone there are gaps, as
compaction leaves them. Of a batch without any the header stays: its offsets have been given out.

Validators and filters are plain callables here, whatever plugin they come from. One chain serves all partitions of a
topic; `lock` keeps two threads from calling them at once. Duplicates and batches that are refused for other reasons do
not reach the chain (`leafcuttr.log.append.stage`).

One that has to wait for some records raises NeedsThread when it meets the first: from then on the chain runs in worker
threads, where such a part gets all records of a batch at once.

How a batch is taken apart and made anew is `filtered_batch`; what a filter may return, `verdicts`; what validators get
that do not need records, `peeking`; those that are not ready to judge, `readiness`. Of a chain that has only validators
that do not need records no batch is taken apart.

Longer than other modules because a batch goes through it in one pass, and what has been counted, set aside or changed
by then has to be taken back where a later step refuses it.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from threading import Lock
from time import perf_counter, thread_time
from typing import Any, Final, NamedTuple, NoReturn

import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import ChainError, InvalidRecord, RecordError
from leafcuttr.log.append.chain.dead_letters import Letter, Letters
from leafcuttr.log.append.chain.filtered_batch import decompressed_records, filtered_batch, take_records_apart
from leafcuttr.log.append.chain.peeking import SLOWEST_PEEK_S, Peeks, refusals_of
from leafcuttr.log.append.chain.readiness import Readiness, fault_of_not_ready
from leafcuttr.log.append.chain.verdicts import carried, fault_of, letter_fault
from leafcuttr.log.append.conversion import MOST_RECORD_ERRORS, rejection
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.described import first_line
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr.wire.batch import BatchHeader, parse
from leafcuttr.wire.compression import Codec, DecompressionLimitError
from leafcuttr.wire.loose_records import LooseRecords, compile_early
from leafcuttr.wire.record_peek import TooManyHeaders
from leafcuttr.wire.records import DECOMPRESSED_LIMIT
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import DROP, DeadLetter, NeedsThread, NotReady, Routed
from leafcuttr_sdk.peek import Peek, PeekedBatch
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.types import TopicPartition

_AT_ONCE_S: Final = 0.001  # what a batch may take of the event loop's time
_FAILS: Final = 3  # batches in a row: a single one may be of a producer that sends what no filter expects


class Tally:
    """What one filter or validator has done to the records of a topic since the start. `taken` are those that it
    saw in batches that came into the log; of them `changed`, `dropped` and `dead_lettered` are the ones that it
    did not keep as they were. `refused` are those that a validator named, `failures` batches refused because it
    failed, `not_ready` those that it could not judge yet."""

    __slots__ = ("changed", "dead_lettered", "dropped", "failures", "not_ready", "refused", "taken")

    def __init__(self) -> None:
        self.taken = self.changed = self.dropped = self.dead_lettered = 0
        self.refused = self.failures = self.not_ready = 0


class Step(NamedTuple):
    """One validator or filter of a chain. A validator with a `peek` is called once a batch, with what it asks for.
    `forget` is that of a filter which remembers records, `in_thread` what one that may have to wait is called by in a
    worker thread, with all records."""

    name: str
    call: Callable[[Any], Any]
    tally: Tally
    part: Part
    peek: Peek | None = None
    forget: Callable[[], None] | None = None
    in_thread: Callable[[Sequence[Record]], Any] | None = None


class ChainResult(NamedTuple):
    """What a chain has made of a batch. `kept` are the indexes of the records that stay, None if all do; `marks` says
    for each filter how many it took, changed, dropped and sent elsewhere."""

    chain: "Chain"
    batch: memoryview | bytearray
    records: int
    kept: list[int] | None
    letters: Sequence[Letter]
    marks: Sequence[tuple[int, int, int, int]]

    def staged(self, partition: TopicPartition, base_offset: int) -> Letters | None:
        """The batch has its offsets: count what has been done to it; its dead letters, if it has any."""
        return self.chain.count(self, partition, base_offset)


class Chain:
    """The validators and filters of one topic; or, with a `refusal`, why it takes no records at all.

    `dead_letter_topic` is where dead letters go whose filter does not say. `refuses_letters` says why they cannot go to
    a topic, if so; `post` gets them. `failures` are those of validators and filters, for the log.
    """

    __slots__ = (
        "_by_clock",
        "_complain",
        "_dead_letter_topic",
        "_failed",
        "_failures",
        "_filters",
        "_forgets",
        "_has_to_forget",
        "_may_wait",
        "_pace",
        "_peeks",
        "_post",
        "_refuses_letters",
        "_untried",
        "_validators",
        "limiter",
        "lock",
        "needs_thread",
        "readiness",
        "refusal",
        "takes_apart",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        *,
        validators: Sequence[Step] = (),
        filters: Sequence[Step] = (),
        dead_letter_topic: str = "",
        refuses_letters: Callable[[str], str | None] = lambda _: None,
        post: Callable[[Letters], None],
        complain: Complaints,
        failures: Failures,
        refusal: str | None = None,
    ) -> None:
        self.topic = topic
        self.refusal = refusal
        self.lock = Lock()
        # Of the worker thread that has the lock: others wait without a thread.
        self.limiter = trio.CapacityLimiter(1)
        self.readiness = Readiness(complain)
        self.needs_thread = False
        """Whether a validator or filter has met a record for which it has to wait."""
        self._may_wait = False  # during a run
        self._validators = tuple(validators)
        self._filters = tuple(filters)
        self._dead_letter_topic = dead_letter_topic
        self._refuses_letters = refuses_letters
        self._post = post
        self._complain = complain
        self._failures = failures
        self._failed = 0
        self._pace = 0.0
        self._by_clock = inf  # of the last batch
        self._forgets = tuple((step.part, step.forget) for step in filters if step.forget is not None)
        self._has_to_forget = False
        self._untried = [] if refusal is not None else [*validators, *filters]
        self._peeks = Peeks(step.peek for step in self._validators if step.peek is not None)
        self.takes_apart: Final = bool(filters) or any(step.peek is None for step in validators)
        """Whether something in it needs the records themselves."""
        if self.takes_apart:
            compile_early()  # so that the first batch is measured by its records alone

    @property
    def has_filters(self) -> bool:
        return bool(self._filters)

    @property
    def fails(self) -> bool:
        """Whether a validator or filter has failed on each of the last batches."""
        return self._failed >= _FAILS

    def forget(self) -> None:
        """A batch was refused that filters may have seen: its records may come again. Any thread: those filters that
        remember records forget them before they see the next ones."""
        self._has_to_forget = bool(self._forgets)

    def is_quick(self, count: int) -> bool:
        """Whether so many records take a moment only, by the time that earlier ones took. Never before each validator
        and filter has seen some: how long it takes is not known."""
        pace = self._pace if self.takes_apart else max(self._pace, SLOWEST_PEEK_S)
        return not self._untried and not self.needs_thread and count * pace <= _AT_ONCE_S

    def run_within(
        self, batch: memoryview | bytearray, config: TopicConfig, limit: int | None, most_headers: int
    ) -> ChainResult | None:
        """As `run`; None where the batch has more decompressed bytes than `limit`, or more headers: then no validator
        or filter has seen a record. None too where one needs a thread: those that remember records forget them."""
        try:
            return self.run(
                batch, config, limit=DECOMPRESSED_LIMIT if limit is None else limit, most_headers=most_headers
            )
        except (DecompressionLimitError, TooManyHeaders, NeedsThread):
            return None

    def run(
        self,
        batch: memoryview | bytearray,
        config: TopicConfig,
        *,
        limit: int = DECOMPRESSED_LIMIT,
        most_headers: float = inf,
        may_wait: bool = False,
    ) -> ChainResult:
        """Let validators and filters see a whole batch, whose header and CRC have been checked. The batch stays as it
        is; what comes of it may be another. The caller holds `lock`; any thread. `may_wait` is whether it is one that
        `trio.to_thread.run_sync` runs; elsewhere NeedsThread is raised where one has to wait.

        Raises InvalidRecord (with `record_errors` where a validator has refused records; or they cannot be read),
        ChainError (one has failed, or the topic takes no records), NotReadyError, MessageTooLarge; with a lower `limit`
        of decompressed bytes DecompressionLimitError, and with `most_headers` TooManyHeaders, before a validator or
        filter has seen a record.
        """
        if self.refusal is not None:
            self._complain(
                f"{self.topic} takes no records", "%s takes no records: %s", self.topic, self.refusal
            )
            raise ChainError(f"Topic {self.topic} takes no records at present: {self.refusal}")
        self._may_wait = may_wait
        began, worked = perf_counter(), thread_time()
        if self._has_to_forget:
            self._has_to_forget = False
            for part, function in self._forgets:
                try:
                    call(part, function)
                except PartError as failed:
                    self._failures(failed)
        header = parse(batch)
        payload = decompressed_records(batch, header, limit)
        peeked = self._peeks.of(payload, header, most_headers)
        data = loose = None
        if self.takes_apart:
            data, loose = take_records_apart(payload, header)
        try:
            self._validate(loose.records if loose is not None else [], peeked)
            if data is None or loose is None or not self._filters:
                result = ChainResult(self, batch, header.count, None, (), ())
            else:
                result = self._filter(batch, header, config, data, loose)
            self._failed = 0
            self.readiness.judged()
        except BaseException:
            self.forget()
            raise
        finally:
            count = header.count
            self._learn((perf_counter() - began) / count, (thread_time() - worked) / count)
        return result

    def count(self, result: ChainResult, partition: TopicPartition, base_offset: int) -> Letters | None:
        """See `ChainResult.staged`. On the event loop."""
        for step in self._validators:
            step.tally.taken += result.records
        for step, (taken, changed, dropped, dead) in zip(self._filters, result.marks, strict=True):
            tally = step.tally
            tally.taken += taken
            tally.changed += changed
            tally.dropped += dropped
            tally.dead_lettered += dead
        if not result.letters:
            return None
        codec = Codec(parse(result.batch).codec)
        return Letters(partition, base_offset, result.letters, codec, self._post)

    def _learn(self, by_clock: float, by_processor: float) -> None:
        """Take up a slower pace at once, a quicker one gradually. What the batch took by the clock alone counts if the
        one before did too: another thread or process may have had the processor. A validator that waits, which it
        should not, waits each time."""
        pace = max(by_processor, min(by_clock, self._by_clock))
        self._by_clock = by_clock
        self._pace = pace if pace > self._pace else self._pace + (pace - self._pace) / 4

    def _validate(self, records: list[Record], peeked: Mapping[Peek, PeekedBatch]) -> None:
        refused: dict[int, str] = {}
        not_ready: tuple[Step, NotReady, int] | None = None
        for step in self._validators:
            answers = (
                enumerate(self._call(step, records))
                if step.peek is None
                else self._look(step, peeked[step.peek])
            )
            for index, reason in answers:
                if reason is None or index in refused:
                    continue
                if isinstance(reason, NotReady):
                    not_ready = not_ready or (step, reason, index)
                    continue
                if not isinstance(reason, str):
                    self._fail(step, f"its answer is {kind_of(reason)}, neither a reason nor None", index)
                step.tally.refused += 1
                refused[index] = first_line(reason) or f"refused by {step.name}"
        if refused:
            errors = [RecordError(index, refused[index]) for index in sorted(refused)[:MOST_RECORD_ERRORS]]
            raise InvalidRecord(rejection(errors, len(refused)), errors)  # for good, so it is said at once
        if not_ready is not None:
            self._not_ready(*not_ready)

    def _filter(
        self,
        batch: memoryview | bytearray,
        header: BatchHeader,
        config: TopicConfig,
        data: bytes,
        loose: LooseRecords,
    ) -> ChainResult:
        kept: Sequence[int] = range(header.count)
        records = loose.records
        letters: list[Letter] = []
        marks: list[tuple[int, int, int, int]] = []
        for step in self._filters:
            verdicts = self._call(step, records)
            if all(map(operator.is_, verdicts, records)):
                marks.append((len(records), 0, 0, 0))
                continue
            before = len(records)
            kept, records, dead, mark = self._judge(step, kept, records, verdicts, header.base_timestamp)
            letters += dead
            marks.append((before, *mark))
            if not records:
                marks += [(0, 0, 0, 0)] * (len(self._filters) - len(marks))
                break
        if records is loose.records:
            return ChainResult(self, batch, header.count, None, (), marks)
        out = filtered_batch(header, config, data, loose, kept, records)
        gone = len(kept) < header.count
        return ChainResult(self, out, header.count, list(kept) if gone else None, letters, marks)

    def _call(self, step: Step, records: list[Record]) -> list[Any]:
        """What a validator or filter returns for each record."""
        if self._untried:
            self._untried = [each for each in self._untried if each is not step]
        if step.in_thread is not None and self._may_wait:
            return self._call_in_thread(step, step.in_thread, records)
        rest = iter(records)
        returned: list[Any] = []
        try:
            call(step.part, returned.extend, map(step.call, rest))
        except PartError as failed:
            if step.in_thread is not None and isinstance(failed.cause, NeedsThread):
                self.needs_thread = True
                raise failed.cause from None
            self._fail(step, failed.why, len(records) - operator.length_hint(rest) - 1, failed.cause)
        if len(returned) < len(records):
            # It ends the map without an error: the records that follow would be stored unseen.
            self._fail(step, "StopIteration", len(returned))
        return returned

    def _call_in_thread(
        self, step: Step, function: Callable[[Sequence[Record]], Any], records: list[Record]
    ) -> list[Any]:
        try:
            returned = call(step.part, _listed, function, records)
        except PartError as failed:
            self._fail(step, failed.why, None, failed.cause)
        if len(returned) != len(records):
            self._fail(step, f"it returned {len(returned)} answers for {len(records)} records", None)
        return returned

    def _look(self, step: Step, batch: PeekedBatch) -> Iterable[tuple[int, Any]]:
        """What a validator with a `peek` says of which records."""
        if self._untried:
            self._untried = [each for each in self._untried if each is not step]
        try:
            answer = call(step.part, step.call, batch)
            refusals = call(step.part, refusals_of, answer, batch.record_count)
        except PartError as failed:
            self._fail(step, failed.why, None, failed.cause)
        if isinstance(refusals, str):
            self._fail(step, refusals, None)
        return refusals

    def _judge(
        self,
        step: Step,
        kept: Sequence[int],
        records: list[Record],
        verdicts: list[Any],
        base_timestamp: int,
    ) -> tuple[list[int], list[Record], list[Letter], tuple[int, int, int]]:
        """The records that stay after one filter, those that become dead letters, and how many were changed, dropped,
        sent."""
        stay: list[int] = []
        left: list[Record] = []
        letters: list[Letter] = []
        changed = dropped = 0
        for index, record, verdict in zip(kept, records, verdicts, strict=True):
            if verdict is record:
                pass
            elif verdict is DROP:
                dropped += 1
                continue
            elif isinstance(verdict, Record):
                if verdict.timestamp is None:
                    verdict = verdict._replace(timestamp=record.timestamp)
                fault = fault_of(verdict, record, base_timestamp)
                if fault is not None:
                    self._fail(step, f"the record that it returned has {fault}", index)
                changed += 1
            elif isinstance(verdict, DeadLetter):
                letters.append(self._letter(step, index, record, verdict, base_timestamp))
                continue
            elif isinstance(verdict, NotReady):
                self._not_ready(step, verdict, index)
            else:
                self._fail(
                    step,
                    "it routes records, which only a relay can do"
                    if isinstance(verdict, Routed)
                    else f"its verdict is {kind_of(verdict)}, none of Record, DROP, DeadLetter and NotReady",
                    index,
                )
            stay.append(index)
            left.append(verdict)
        return stay, left, letters, (changed, dropped, len(letters))

    def _letter(
        self, step: Step, index: int, record: Record, verdict: DeadLetter, base_timestamp: int
    ) -> Letter:
        fault = letter_fault(verdict, record, base_timestamp)
        if fault is not None:
            self._fail(step, fault, index)
        topic = verdict.topic or self._dead_letter_topic
        refusal = self._refuses_letters(topic)
        if refusal is not None:
            self._fail(step, f"a dead letter for {topic}: {refusal}", index)
        return Letter(index, carried(verdict, record), topic, first_line(verdict.reason), step.name)

    def _not_ready(self, step: Step, verdict: NotReady, index: int) -> NoReturn:
        fault = fault_of_not_ready(verdict)
        if fault is not None:
            self._fail(step, fault, index)
        step.tally.not_ready += 1
        self.readiness.refuse(step.part, verdict)

    def _fail(self, step: Step, why: str, index: int | None, cause: BaseException | None = None) -> NoReturn:
        """Refuse the batch: what a filter cannot judge must neither be lost nor stored."""
        step.tally.failures += 1
        self._failed += 1
        at = "a batch, which is refused" if index is None else f"record {index} of a batch, which is refused"
        self._failures(PartError(step.part, why, cause, at=at))
        raise ChainError(f"The {step.part.name} failed") from cause


def _listed(function: Callable[[Sequence[Record]], Any], records: list[Record]) -> list[Any]:
    return list(function(tuple(records)))
