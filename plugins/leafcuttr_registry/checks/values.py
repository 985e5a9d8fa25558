"""Records of topics by schemas that some values would keep busy without a bound: a worker process decodes them, those
of a batch together.

`check_values` is what the process does. Python's regular expressions look for signals while they work, so a value that
takes too long is found by an alarm, and the ones behind it are decoded. What no alarm ends, a deadline does. Alarms and
limits count the processor's time, so that a machine with other work refuses nothing more.
"""

from collections.abc import Sequence
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_registry.checks.turns import Limit, Turns
from leafcuttr_sdk.processor_limit import ProcessorLimitError, processor_limit
from leafcuttr_sdk.schemas import DataError, ParsedSchema
from leafcuttr_sdk.workers import (
    WorkerDeadlineError,
    WorkerError,
    WorkerMemoryError,
    WorkerTransferError,
)

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

EACH_S: Final = 0.5
"""What one value may take."""
SLICE_S: Final = 0.5
"""After how long others have their turn."""
TOGETHER_S: Final = 1.5
"""What the values of a batch may take together,"""
A_BYTE_S: Final = 20e-6
"""and for each of their bytes: ten times of what validators of JSON take for small documents."""
WAIT_S: Final = 5.0
"""How long a batch waits for the process of others."""
_DEADLINE_S: Final = 5.0
"""Of a slice, by the clock."""
_MEMORY_BYTES: Final = 512 * 1024 * 1024
_MOST_BYTES: Final = 1024 * 1024
"""Of the values that are sent at once."""


class Checked(NamedTuple):
    """Why each of the first values is not of the schema, and what that took of the processor."""

    reasons: list[str | None]
    used_s: float


def check_values(schema: ParsedSchema, values: Sequence[bytes], each_s: float, slice_s: float) -> Checked:
    """As many as the time is enough for: the first at least."""
    codec = schema.codec()
    began, until = process_time(), perf_counter() + slice_s
    found: list[str | None] = []
    for value in values:
        try:
            with processor_limit(each_s):
                codec.check(value)
        except DataError as error:
            found.append(f"is not of its schema: {error}")
        except ProcessorLimitError:
            found.append(f"takes longer than {each_s:g} s to be checked by its schema")
        else:
            found.append(None)
        if perf_counter() > until:
            break
    return Checked(found, process_time() - began)


class ValueChecks:
    """Takes turns with the checks of the registry: at most half of the processes decode records."""

    def __init__(self, broker: "Broker", turns: Turns) -> None:
        self._broker = broker
        self._turns = turns

    async def check(self, schema: ParsedSchema, values: Sequence[bytes]) -> list[str | None]:
        """Why each value is not of the schema, in words that follow \"the value\"; None for one that is. Raises
        Refusal 503 where others have the processes for long."""
        left_s = TOGETHER_S + A_BYTE_S * sum(map(len, values))
        found: list[str | None] = []
        most = len(values)
        while len(found) < len(values):
            some = _up_to(values, len(found), most)
            async with self._turns.take(Limit(WAIT_S), short=False):
                began = perf_counter()
                try:
                    checked = await self._broker.run_in_worker(
                        check_values,
                        schema,
                        some,
                        EACH_S,
                        SLICE_S,
                        deadline_s=_DEADLINE_S,
                        memory_bytes=_MEMORY_BYTES,
                    )
                    found += checked.reasons
                    left_s -= checked.used_s
                    most = len(values)
                except WorkerTransferError as error:
                    return [_said(error)] * len(values)  # the schema's fault, so it is that of all of them
                except WorkerError as error:
                    if len(some) == 1:
                        found.append(_said(error))
                    # Which of them it was is found by halves.
                    most = max(len(some) // 2, 1)
                    left_s -= perf_counter() - began
            if left_s <= 0:
                why = "comes after others that have used up the time for checks by its schema"
                found += [why] * (len(values) - len(found))
        return found


def _up_to(values: Sequence[bytes], first: int, most: int) -> Sequence[bytes]:
    size = 0
    for at in range(first, min(first + most, len(values))):
        size += len(values[at])
        if size > _MOST_BYTES and at > first:
            return values[first:at]
    return values[first : first + most]


def _said(error: WorkerError) -> str:
    match error:
        case WorkerDeadlineError():
            return "takes too long to be checked by its schema"
        case WorkerMemoryError():
            return "needs more memory than it may have to be checked by its schema"
        case _:
            return f"cannot be checked by its schema: {error}"
