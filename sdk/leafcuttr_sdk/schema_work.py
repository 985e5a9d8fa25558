"""Data of a schema that needs a worker (`ParsedSchema.needs_worker`): decoded and encoded in a process of the broker's,
with a deadline, for code in a thread that `trio.to_thread` runs.

A regular expression may keep a thread busy for years: no thread of the broker's own process may meet one.
"""

from collections.abc import Sequence
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from leafcuttr_sdk.processor_limit import ProcessorLimitError, processor_limit
from leafcuttr_sdk.schemas import DataError, JsonValue, ParsedSchema
from leafcuttr_sdk.workers import WorkerDeadlineError, WorkerError, WorkerMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_sdk.broker import Broker

G = TypeVar("G")
T = TypeVar("T")

EACH_S: Final = 0.5
"""What one value may take of the processor: a machine with other work refuses nothing more."""
TOGETHER_S: Final = 1.5
"""What all values may take of it that one `WorkTime` is for."""
DEADLINE_S: Final = 5.0
"""Of one value, by the clock: for what the limit does not end."""
MEMORY_BYTES: Final = 512 * 1024 * 1024


class WorkTime:
    """What is left of the time for the values of one request."""

    def __init__(self, seconds: float = TOGETHER_S) -> None:
        self.left_s = seconds


class WorkerCodec:
    """A `SchemaCodec`. It waits for the event loop, so it is used in a thread that `trio.to_thread.run_sync` runs."""

    def __init__(
        self, broker: "Broker", schema: ParsedSchema, message: Sequence[int], time: WorkTime
    ) -> None:
        self._broker = broker
        self._schema = schema
        self._message = tuple(message)
        self._time = time

    def decode(self, data: bytes) -> JsonValue:
        """Raises DataError, also for data that take too long."""
        return self._run(_decode, data)

    def encode(self, value: JsonValue) -> bytes:
        """Raises DataError, also for a value that takes too long."""
        return self._run(_encode, value)

    def check(self, data: bytes) -> None:
        """Raises DataError, also for data that take too long."""
        self._run(_check, data)

    def _run(self, function: "Callable[[ParsedSchema, tuple[int, ...], G], T]", given: G) -> T:
        import trio

        most_s = min(EACH_S, self._time.left_s)
        if most_s <= 0:
            raise DataError("the values before it have used up the time that checks by this schema may take")

        async def run() -> "_Outcome[T]":
            return await self._broker.run_in_worker(
                _within,
                most_s,
                function,
                self._schema,
                self._message,
                given,
                deadline_s=DEADLINE_S,
                memory_bytes=MEMORY_BYTES,
            )

        began = perf_counter()
        try:
            outcome = trio.from_thread.run(run)
        except WorkerError as error:
            self._time.left_s -= perf_counter() - began
            raise DataError(_said(error, most_s)) from None
        self._time.left_s -= outcome.used_s
        if outcome.error is not None:
            raise outcome.error
        return outcome.values[0]


class _Outcome(NamedTuple, Generic[T]):
    """What one value has come to: itself, or why there is none; and what that took of the processor."""

    values: tuple[T, ...]
    error: DataError | None
    used_s: float


def _within(
    most_s: float,
    function: "Callable[[ParsedSchema, tuple[int, ...], G], T]",
    schema: ParsedSchema,
    message: tuple[int, ...],
    given: G,
) -> _Outcome[T]:
    """In the worker."""
    began = process_time()
    try:
        with processor_limit(most_s):
            value = function(schema, message, given)
    except DataError as error:
        return _Outcome((), error, process_time() - began)
    except ProcessorLimitError:
        return _Outcome((), DataError(_too_long(most_s)), process_time() - began)
    return _Outcome((value,), None, process_time() - began)


def _too_long(most_s: float) -> str:
    return f"a check by its schema takes longer than {most_s:.1f} s"


def _said(error: WorkerError, most_s: float) -> str:
    if isinstance(error, WorkerDeadlineError):
        return _too_long(most_s)
    if isinstance(error, WorkerMemoryError):
        return "a check by its schema needs more memory than it may have"
    return f"it cannot be checked by its schema: {error}"


def _decode(schema: ParsedSchema, message: tuple[int, ...], data: bytes) -> JsonValue:
    return schema.codec(message).decode(data)


def _encode(schema: ParsedSchema, message: tuple[int, ...], value: JsonValue) -> bytes:
    return schema.codec(message).encode(value)


def _check(schema: ParsedSchema, message: tuple[int, ...], data: bytes) -> None:
    schema.codec(message).check(data)
