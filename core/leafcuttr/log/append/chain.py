"""The chain of a topic: its produce validators and record filters in order. It sees every record of a batch before the
append, whichever way the batch came.

Validators see all records first, and if they refuse one the batch as a whole is refused, each such record named. Then
each filter in its order gets what the one before has left: a record that it keeps, another in its place, or none. A
batch that nobody has touched goes on as the bytes that it came as. Otherwise those of the records that stay do; base
and last offset, producer, epoch and sequence are as before, and where records have gone there are gaps, as compaction
leaves them. Of a batch without any the header stays: its offsets have been given out.

Validators and filters are plain callables here, whatever plugin they come from. One chain serves all partitions of a
topic; `lock` keeps two threads from calling them at once. Duplicates and batches that are refused for other reasons do
not come here (`leafcuttr.log.append.stage`).

A little longer than other modules because the bytes of a batch and what filters said of its records stay in step here.
"""

import logging
import operator
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, Final, NamedTuple, NoReturn

import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import ChainError, InvalidRecord, MessageTooLarge, RecordError
from leafcuttr.log.append.check import unreadable
from leafcuttr.log.append.conversion import (
    MOST_RECORD_ERRORS,
    decompressed,
    level_of,
    rejection,
    target_codec,
)
from leafcuttr.log.append.dead_letters import Letter, Letters
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.wire.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MIN_RECORD,
    NO_TIMESTAMP,
    BatchHeader,
    parse,
    sealed,
)
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.loose_records import LooseRecords, compile_early, put_together, take_apart
from leafcuttr.wire.records import DECOMPRESSED_LIMIT
from leafcuttr_sdk.filters import DROP, DeadLetter
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.types import TopicPartition

LONG_MAX: Final = 2**63 - 1
_AT_ONCE_S: Final = 0.001  # what a batch may take of the event loop's time,
_FIRST_PACE_S: Final = 10e-6  # and what a record is thought to take before one has been seen
_LONGEST_REASON: Final = 1000

logger = logging.getLogger(__name__)


class Tally:
    """What one filter or validator has done to the records of a topic since the start. `taken` are those that it
    result at in batches that came into the log; of them `changed`, `dropped` and `dead_lettered` are the ones that it
    did not keep as they were. `refused` are those that a validator named, `failures` batches refused because it
    failed."""

    __slots__ = ("changed", "dead_lettered", "dropped", "failures", "refused", "taken")

    def __init__(self) -> None:
        self.taken = self.changed = self.dropped = self.dead_lettered = self.refused = self.failures = 0


class Step(NamedTuple):
    """One validator or filter of a chain."""

    name: str
    call: Callable[[Record], Any]
    tally: Tally


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
    a topic, if so; `post` gets them.
    """

    __slots__ = (
        "_complain",
        "_dead_letter_topic",
        "_filters",
        "_pace",
        "_post",
        "_refuses_letters",
        "_validators",
        "limiter",
        "lock",
        "refusal",
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
        refusal: str | None = None,
    ) -> None:
        self.topic = topic
        self.refusal = refusal
        self.lock = Lock()
        self.limiter = trio.CapacityLimiter(
            1
        )  # of the worker thread that has the lock: others wait without a thread
        self._validators = tuple(validators)
        self._filters = tuple(filters)
        self._dead_letter_topic = dead_letter_topic
        self._refuses_letters = refuses_letters
        self._post = post
        self._complain = complain
        self._pace = _FIRST_PACE_S
        compile_early()  # so that the first batch is measured by its records alone

    def is_quick(self, count: int) -> bool:
        """Whether so many records take a moment only, as far as those before tell."""
        return count * self._pace <= _AT_ONCE_S

    def run(
        self,
        batch: memoryview | bytearray,
        config: TopicConfig,
        *,
        limit: int = DECOMPRESSED_LIMIT,
    ) -> ChainResult:
        """Let validators and filters see a whole batch, whose header and CRC have been checked. The batch stays as it
        is; what comes of it may be another. The caller holds `lock`; any thread.

        Raises InvalidRecord (with `record_errors` where a validator has refused records; or they cannot be read),
        ChainError (one has failed, or the topic takes no records), MessageTooLarge; with a lower `limit` of
        decompressed bytes DecompressionLimitError, before anybody has seen a record.
        """
        if self.refusal is not None:
            self._complain(
                f"{self.topic} takes no records", "%s takes no records: %s", self.topic, self.refusal
            )
            raise ChainError(f"Topic {self.topic} takes no records at present: {self.refusal}")
        began = perf_counter()
        header = parse(batch)
        data, loose = _taken_apart(batch, header, limit)
        try:
            self._validate(loose.records)
            result = self._filter(batch, header, config, data, loose)
        finally:
            self._learn((perf_counter() - began) / header.count)
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

    def _learn(self, pace: float) -> None:
        """A slower one counts at once, a quicker one by and by."""
        self._pace = pace if pace > self._pace else self._pace + (pace - self._pace) / 8

    def _validate(self, records: list[Record]) -> None:
        refused: dict[int, str] = {}
        for step in self._validators:
            for index, reason in enumerate(self._call(step, records, "produce validator")):
                if reason is None or index in refused:
                    continue
                if not isinstance(reason, str):
                    self._fail(step, f"its answer is {_shown(reason)}, neither a reason nor None", index)
                step.tally.refused += 1
                refused[index] = _line(reason) or f"refused by {step.name}"
        if refused:
            errors = [RecordError(index, refused[index]) for index in sorted(refused)[:MOST_RECORD_ERRORS]]
            raise InvalidRecord(rejection(errors, len(refused)), errors)

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
            verdicts = self._call(step, records, "record filter")
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
        out = _written(header, config, data, loose, kept, records)
        gone = len(kept) < header.count
        return ChainResult(self, out, header.count, list(kept) if gone else None, letters, marks)

    def _call(self, step: Step, records: list[Record], kind: str) -> list[Any]:
        """What it says to each record."""
        rest = iter(records)
        said: list[Any] = []
        try:
            said += map(step.call, rest)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Whatever code of others raises (SystemExit, what asyncio cancels with) harms no more than its batch.
            index = len(records) - operator.length_hint(rest) - 1
            logger.debug("%s %s on %s", kind, step.name, self.topic, exc_info=error)
            self._fail(step, _described(error), index, error)
        if len(said) < len(records):
            # It ends the map, and nothing more: what follows would go past unseen.
            self._fail(step, "StopIteration", len(said))
        return said

    def _judge(
        self,
        step: Step,
        kept: Sequence[int],
        records: list[Record],
        verdicts: list[Any],
        base_timestamp: int,
    ) -> tuple[list[int], list[Record], list[Letter], tuple[int, int, int]]:
        """The records that stay after one filter, those that go elsewhere, and how many were changed, dropped, sent."""
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
                fault = _fault(verdict, record, base_timestamp)
                if fault is not None:
                    self._fail(step, f"the record that it returned has {fault}", index)
                changed += 1
            elif isinstance(verdict, DeadLetter):
                letters.append(self._letter(step, index, record, verdict))
                continue
            else:
                self._fail(
                    step, f"its verdict is {_shown(verdict)}, none of Record, DROP and DeadLetter", index
                )
            stay.append(index)
            left.append(verdict)
        return stay, left, letters, (changed, dropped, len(letters))

    def _letter(self, step: Step, index: int, record: Record, verdict: DeadLetter) -> Letter:
        if not isinstance(verdict.reason, str) or not isinstance(verdict.topic, str | None):
            self._fail(step, f"its verdict is {_shown(verdict)}, whose reason or topic is no text", index)
        topic = verdict.topic or self._dead_letter_topic
        refusal = self._refuses_letters(topic)
        if refusal is not None:
            self._fail(step, f"a dead letter for {topic}: {refusal}", index)
        return Letter(index, record, topic, _line(verdict.reason), step.name)

    def _fail(self, step: Step, why: str, index: int, cause: BaseException | None = None) -> NoReturn:
        """Refuse the batch: what a filter cannot judge must neither be lost nor stored."""
        step.tally.failures += 1
        kind = "produce validator" if step in self._validators else "record filter"
        self._complain(
            f"{kind} {step.name} of {self.topic}",
            "%s %s of topic %s failed at record %d of a batch, which is refused: %s",
            *(kind, step.name, self.topic, index, why),
        )
        raise ChainError(f"The {kind} {step.name} of topic {self.topic} failed") from cause


def _taken_apart(
    batch: memoryview | bytearray, header: BatchHeader, limit: int
) -> tuple[bytes, LooseRecords]:
    try:
        codec = Codec(header.codec)
    except ValueError:
        raise InvalidRecord(f"Unknown compression type id: {header.codec}") from None
    payload = decompressed(codec, memoryview(batch)[HEADER_SIZE:], limit)
    if header.count * MIN_RECORD > len(payload):
        raise InvalidRecord(f"A batch of {len(payload)} bytes of records cannot hold {header.count} of them")
    data = payload.tobytes()
    try:
        return data, take_apart(data, header.count, header.base_timestamp)
    except WireError as error:
        raise unreadable(error, compressed=header.codec != Codec.NONE) from error


def _written(
    header: BatchHeader,
    config: TopicConfig,
    data: bytes,
    loose: LooseRecords,
    kept: Sequence[int],
    records: list[Record],
) -> bytearray:
    """The batch of the records that stay, compressed as the topic wants it."""
    if not records:
        return _emptied(header, config)
    payload: bytes | bytearray = put_together(data, loose, kept, records, header.base_timestamp)
    if len(payload) > DECOMPRESSED_LIMIT:
        raise MessageTooLarge(f"The records of the batch are {len(payload)} bytes once filtered")
    codec = target_codec(config, Codec(header.codec))
    body = payload if codec is Codec.NONE else compress(codec, payload, level_of(codec, config))
    latest = min(max(record.timestamp or 0 for record in records), LONG_MAX)
    attributes = header.attributes & ~CODEC_MASK | codec
    return sealed(
        header._replace(attributes=attributes, max_timestamp=max(latest, NO_TIMESTAMP), count=len(records)),
        body,
    )


def _emptied(header: BatchHeader, config: TopicConfig) -> bytearray:
    """As the cleaner leaves it, without a time: none of its records has one that anybody could look for."""
    attributes = header.attributes & ~(CODEC_MASK | LOG_APPEND_TIME)
    if config.log_append_time:
        attributes |= LOG_APPEND_TIME
    empty = header._replace(
        attributes=attributes, base_timestamp=NO_TIMESTAMP, max_timestamp=NO_TIMESTAMP, count=0
    )
    return sealed(empty, b"")


def _fault(record: Record, before: Record, base_timestamp: int) -> str | None:
    """What of it cannot be stored."""
    fields: tuple[Any, ...] = record  # whatever its author has put there
    value, key, headers, timestamp = fields
    if value is not None and not isinstance(value, bytes):
        return f"a value that is {_shown(value)}, neither bytes nor None"
    if key is not None and not isinstance(key, bytes):
        return f"a key that is {_shown(key)}, neither bytes nor None"
    if type(timestamp) is not int or (
        timestamp != before.timestamp and not 0 <= timestamp <= min(LONG_MAX, base_timestamp + LONG_MAX)
    ):
        return f"a timestamp that is {_shown(timestamp)}, not milliseconds since 1970"
    if headers is before.headers:
        return None
    if not isinstance(headers, tuple):
        return f"headers that are {_shown(headers)}, not a tuple of pairs"
    for header in headers:
        if not (isinstance(header, tuple) and len(header) == 2):
            return f"a header that is {_shown(header)}, not a pair of name and value"
        name, content = header
        if not isinstance(name, str) or not (content is None or isinstance(content, bytes)):
            return f"a header that is {_shown(header)}, not a text and bytes or None"
        try:
            name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return f"a header name that is no Unicode: {name!a}"
    return None


def _shown(value: object) -> str:
    """What it is, without what it holds: records are nobody's business in a log."""
    return f"of type {type(value).__name__}" if value is not None else "None"


def _line(text: str) -> str:
    line = text.strip().partition("\n")[0].rstrip()
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {_line(str(error))}".removesuffix(": ") + where
