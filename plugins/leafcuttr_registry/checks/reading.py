"""A text becomes canonical, or is refused, within two seconds and bounded memory. What was read last is remembered:
clients register the same schema at each of their starts."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

import trio

from leafcuttr_registry.checks import work
from leafcuttr_registry.checks.known import KnownCompatible
from leafcuttr_registry.checks.turns import (
    PATIENCE,
    SHORT_PATIENCE,
    SOON_S,
    Limit,
    Turns,
    of_request,
)
from leafcuttr_registry.checks.values import ValueChecks
from leafcuttr_registry.checks.work import Done, Reading, Source
from leafcuttr_registry.counts import COMPATIBLE, INCOMPATIBLE, INVALID, TOO_COMPLEX, VALID, CheckCounts
from leafcuttr_registry.inline_tags import TaggedPlace, Tags
from leafcuttr_registry.places import place_not_said
from leafcuttr_registry.subjects.refusals import Refusal, busy, invalid_schema, store_failed
from leafcuttr_sdk.schemas import Difference, ResolvedReference, SchemaError, SchemaFormat
from leafcuttr_sdk.workers import (
    WorkerDeadlineError,
    WorkerDiedError,
    WorkerError,
    WorkerMemoryError,
    WorkerTransferError,
)

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MEMORY_BYTES: Final = 1024 * 1024 * 1024
_MOST_TEXT: Final = 16 * 1024 * 1024
"""Characters of the texts that are remembered."""


class Checks:
    """What a registry asks its formats."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.compatible: Final = KnownCompatible()
        self._known: OrderedDict[tuple[str, str], Reading] = OrderedDict()
        self._size = 0
        self._counts = CheckCounts(broker)
        self._turns: Final = Turns()
        self.values: Final = ValueChecks(broker, self._turns)

    @property
    def types(self) -> list[str]:
        """The names of all formats: our own first, then those of other plugins."""
        return list(self._broker.schema_formats)

    async def read(self, type: str, text: str, references: Mapping[str, ResolvedReference]) -> Reading:
        """Raises Refusal 42201."""
        key = type, text
        if not references:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        format = self.format(type)
        reading = await self._run(work.read, format, Source(text, references))
        self._counts.judged(type, VALID)
        if not references:
            self._remember(key, reading)
        return reading

    async def render(self, type: str, source: Source, how: str) -> str:
        """A schema in another form. Raises Refusal 42201."""
        return await self._run(work.render, self.format(type), source, how)

    async def tags(self, type: str, source: Source) -> dict[TaggedPlace, list[str]]:
        """See `work.tags`. Raises Refusal 42201."""
        return await self._run(work.tags, self.format(type), source)

    async def with_tags(self, type: str, source: Source, added: Tags, removed: Tags, propagated: Tags) -> str:
        """See `work.with_tags`. Raises Refusal 42201."""
        return await self._run(work.with_tags, self.format(type), source, added, removed, propagated)

    async def fields(self, type: str, source: Source) -> frozenset[str]:
        """See `work.fields`. Raises Refusal 42201."""
        return await self._run(work.fields, self.format(type), source)

    async def differences(
        self,
        type: str,
        new: Source,
        others: Sequence[tuple[Source, bool, bool]],
        *,
        lenient: bool = False,
        budget_s: float = inf,
        limit: Limit | None = None,
    ) -> list[list[Difference]]:
        """See `work.compare`. Raises Refusal 42201."""
        found = await self._run(work.compare, self.format(type), new, others, lenient, budget_s, limit=limit)
        self._counts.judged(type, INCOMPATIBLE if any(found) else COMPATIBLE)
        return found

    def format(self, type: str) -> SchemaFormat:
        """Raises Refusal 42201."""
        format = self._broker.schema_formats.get(type)
        if format is None:
            raise invalid_schema(f"Invalid schema type {type}")
        return format

    def forget(self) -> None:
        """What was remembered."""
        self.compatible.clear()
        self._known.clear()
        self._size = 0

    def _remember(self, key: tuple[str, str], reading: Reading) -> None:
        if key not in self._known:
            self._known[key] = reading
            self._size += len(key[1]) * 3
        while self._size > _MOST_TEXT:
            (_, text), _ = self._known.popitem(last=False)
            self._size -= len(text) * 3

    async def _run(
        self,
        function: Callable[[SchemaFormat, Source, *Ts], T],
        format: SchemaFormat,
        source: Source,
        *more: *Ts,
        limit: Limit | None = None,
    ) -> T:
        type, began = format.name, perf_counter()
        limit = limit or of_request()
        try:
            return await self._in_turn(limit, function, format, source, *more)
        except SchemaError as error:
            self._counts.judged(type, INVALID)
            raise _refusal(type, error) from None
        except WorkerDeadlineError:
            if limit.was_others:
                raise busy() from None
            self._counts.judged(type, TOO_COMPLEX)
            raise invalid_schema(
                f"{_of(type)}too complex: it took longer than {limit.seconds:.1f} s"
            ) from None
        except WorkerMemoryError:
            self._turns.was_slow(type, source.text)
            self._counts.judged(type, TOO_COMPLEX)
            raise invalid_schema(f"{_of(type)}too complex: it needs more memory than it may have") from None
        except WorkerDiedError as error:
            raise store_failed(f"The schema cannot be checked: {error}") from None
        except WorkerError as error:
            self._counts.judged(type, INVALID)
            raise invalid_schema(f"{_of(type)}{error}") from None
        finally:
            self._counts.took(type, perf_counter() - began)

    async def _in_turn(
        self,
        limit: Limit,
        function: Callable[[SchemaFormat, Source, *Ts], T],
        format: SchemaFormat,
        source: Source,
        *more: *Ts,
    ) -> T:
        """Raises SchemaError, WorkerError, Refusal 503."""
        while True:
            short = not self._turns.is_slow(format.name, source.text)
            async with self._turns.take(limit, short=short) as long:
                left_s = limit.left_s
                this_s = left_s if long else min(left_s, SOON_S)
                if this_s <= 0:
                    raise WorkerDeadlineError("no time is left")
                try:
                    done = await self._judge(
                        function, format, source, *more,
                        limit_s=this_s, clock_s=this_s * (PATIENCE if long else SHORT_PATIENCE),
                    )  # fmt: skip
                    limit.worked_s += done.used_s
                    return done.value
                except WorkerDeadlineError:
                    limit.worked_s += this_s
                    if this_s >= SOON_S:
                        self._turns.was_slow(format.name, source.text)
                    if this_s == left_s:
                        raise

    async def _judge(
        self,
        function: Callable[[SchemaFormat, *Ts], T],
        format: SchemaFormat,
        *more: *Ts,
        limit_s: float,
        clock_s: float,
    ) -> Done[T]:
        """`limit_s` is of the processor's time."""
        try:
            return await self._broker.run_in_worker(
                work.within,
                limit_s,
                function,
                format,
                more,
                deadline_s=clock_s,
                memory_bytes=MEMORY_BYTES,
            )
        except WorkerTransferError:
            # A format of a plugin that is one file, which no other process can import.
            return Done(await trio.to_thread.run_sync(_call, function, (format, *more)), 0.0)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def _of(type: str) -> str:
    return f"Invalid schema of type {type}, details: "


def _refusal(type: str, error: SchemaError) -> Refusal:
    place = place_not_said(error)
    return invalid_schema(f"{_of(type)}{error}{f' ({place})' if place else ''}")
