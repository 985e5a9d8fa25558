"""Data of a schema that needs a worker (`ParsedSchema.needs_worker`): decoded and encoded in a process of the broker's,
with a deadline, for code in a thread that `trio.to_thread` runs.

A regular expression may keep a thread busy for years: no thread of the broker's own process may meet one.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

from leafcuttr_sdk.schemas import DataError, JsonValue, ParsedSchema
from leafcuttr_sdk.workers import WorkerDeadlineError, WorkerError, WorkerMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_sdk.broker import Broker

G = TypeVar("G")
T = TypeVar("T")

EACH_S: Final = 0.5
"""What one value may take."""
TOGETHER_S: Final = 1.5
"""What all values may take that one `WorkTime` is for."""
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

        deadline_s = min(EACH_S, self._time.left_s)
        if deadline_s <= 0:
            raise DataError("the values before it have used up the time that checks by this schema may take")

        async def run() -> T:
            return await self._broker.run_in_worker(
                function,
                self._schema,
                self._message,
                given,
                deadline_s=deadline_s,
                memory_bytes=MEMORY_BYTES,
            )

        began = perf_counter()
        try:
            return trio.from_thread.run(run)
        except WorkerDeadlineError:
            raise DataError(f"a check by its schema takes longer than {deadline_s:.1f} s") from None
        except WorkerMemoryError:
            raise DataError("a check by its schema needs more memory than it may have") from None
        except WorkerError as error:
            raise DataError(f"it cannot be checked by its schema: {error}") from None
        finally:
            self._time.left_s -= perf_counter() - began


def _decode(schema: ParsedSchema, message: tuple[int, ...], data: bytes) -> JsonValue:
    return schema.codec(message).decode(data)


def _encode(schema: ParsedSchema, message: tuple[int, ...], value: JsonValue) -> bytes:
    return schema.codec(message).encode(value)


def _check(schema: ParsedSchema, message: tuple[int, ...], data: bytes) -> None:
    schema.codec(message).check(data)
