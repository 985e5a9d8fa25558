"""At least once: records go to the target five calls at a time; their position is stored once they are acknowledged.

Calls end in their order as far as positions go: that of a partition moves up to the first portion which is not
acknowledged. After an error no further call begins; those under way are waited for.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.errors import REFUSALS
from leafcuttr_forward.flows.making import Portion, RecordsRefused
from leafcuttr_forward.flows.positions import POSITIONS, Position, batch_of
from leafcuttr_forward.flows.progress import AppendedPortion, Progress
from leafcuttr_sdk.errors import BrokerError, OutOfOrderSequence
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import trio

    from leafcuttr_forward.flows.intake import Intake
    from leafcuttr_forward.flows.spec import FlowSpec
    from leafcuttr_sdk.peers import PeerAppender
    from leafcuttr_sdk.types import Clock

UNDER_WAY: Final = 5
"""Calls at a time: as many as Kafka keeps the order of for an idempotent producer."""
STORE_S: Final = 1.0
"""How often the position is stored while it moves."""


class _Call:
    """One call of the appender."""

    def __init__(self, portions: Sequence[Portion]) -> None:
        import trio

        self.portions = portions
        self.results: Sequence[Appended | BrokerError] = ()
        self.done = trio.Event()


class AcknowledgedWriter:
    """Writes what the intake has, until that is closed."""

    def __init__(
        self,
        spec: "FlowSpec",
        appender: "PeerAppender",
        intake: "Intake",
        progress: Progress,
        clock: "Clock",
    ) -> None:
        import trio

        self._spec = spec
        self._appender = appender
        self._intake = intake
        self._progress = progress
        self._clock = clock
        self._calls: deque[_Call] = deque()
        self._begun = trio.Event()
        self._unstored: dict[TopicPartition, Position] = {}
        self._moved = trio.Event()
        self._ended = False

    async def run(self) -> None:
        """Raises RecordsRefused and BrokerError; positions are stored then, as far as was acknowledged."""
        import trio

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._store_often)
                await self._write()
                nursery.cancel_scope.cancel()
        except* (RecordsRefused, BrokerError) as group:
            raise _first(group) from None
        finally:
            with trio.move_on_after(2, shield=True), suppress(BrokerError):
                await self._store_moved()

    async def store(self, records: dict[bytes, bytes | None]) -> None:
        """Positions without records. Raises BrokerError."""
        (done,) = await self._appender.append([NewBatch(POSITIONS, batch_of(records, self._clock.now_ms()))])
        if isinstance(done, BrokerError):
            raise done

    async def _write(self) -> None:
        import trio

        slots = trio.Semaphore(UNDER_WAY)
        self._ended = False
        self._intake.start_taking()
        async with trio.open_nursery() as calls:
            failed = trio.Event()
            calls.start_soon(self._begin_calls, calls, slots, failed)
            error = await self._settle_calls(failed)
        if error is not None:
            raise error

    async def _begin_calls(
        self, calls: "trio.Nursery", slots: "trio.Semaphore", failed: "trio.Event"
    ) -> None:
        while not failed.is_set():
            await slots.acquire()
            portions = await self._intake.take(self._spec.request_bytes)
            if not portions or failed.is_set():
                self._intake.release(portions)
                break
            call = _Call(portions)
            self._calls.append(call)
            calls.start_soon(self._append, call, slots, failed)
            self._wake()
            if portions[0].alone:
                await call.done.wait()
        self._ended = True
        self._wake()

    async def _append(self, call: _Call, slots: "trio.Semaphore", failed: "trio.Event") -> None:
        """No call is made behind one that failed: the appender would take it as the first of others."""
        batches = [
            NewBatch(piece.target, piece.batch) for portion in call.portions for piece in portion.pieces
        ]
        points.reach("sent")
        try:
            if failed.is_set():
                raise OutOfOrderSequence("an earlier call failed")
            call.results = await self._appender.append(batches) if batches else ()
        except BrokerError as error:
            call.results = [error] * len(batches)
        finally:
            if any(isinstance(result, BrokerError) for result in call.results):
                self._fail(failed)
            call.done.set()
            slots.release()

    def _fail(self, failed: "trio.Event") -> None:
        failed.set()
        self._intake.stop_taking()

    async def _settle_calls(self, failed: "trio.Event") -> RecordsRefused | BrokerError | None:
        """What went wrong first."""
        behind: set[TopicPartition] = set()
        refused: list[Portion] = []
        first: BrokerError | None = None
        while call := await self._next_call():
            await call.done.wait()
            points.reach("acknowledged")
            results = iter(call.results)
            written: list[AppendedPortion] = []
            for portion in call.portions:
                ends = [next(results) for _ in portion.pieces]
                errors = [one for one in ends if isinstance(one, BrokerError)]
                if errors or portion.source in behind:
                    behind.add(portion.source)
                    refused.append(portion)
                    # What was refused for itself says more than what was refused because of it.
                    first = next((one for one in errors if isinstance(one, REFUSALS)), first)
                    first = first or (errors[0] if errors else None)
                else:
                    written.append(
                        AppendedPortion(portion, [one for one in ends if isinstance(one, Appended)])
                    )
            self._unstored.update(self._progress.after(written))
            self._progress.settle(written)
            self._intake.release(call.portions)
            self._moved.set()
        if isinstance(first, REFUSALS):
            return RecordsRefused(refused, first)
        return first

    async def _next_call(self) -> _Call | None:
        while not self._calls:
            if self._ended:
                return None
            await self._begun.wait()
        return self._calls.popleft()

    async def _store_often(self) -> None:
        import trio

        while True:
            await self._moved.wait()
            await self._store_moved()
            await trio.sleep(STORE_S)

    async def _store_moved(self) -> None:
        import trio

        if self._moved.is_set():
            self._moved = trio.Event()
        positions, self._unstored = self._unstored, {}
        if positions:
            try:
                await self.store(self._progress.records({**positions}))
            except BaseException:
                self._unstored = {**positions, **self._unstored}
                raise
            points.reach("position-stored")

    def _wake(self) -> None:
        import trio

        event, self._begun = self._begun, trio.Event()
        event.set()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
