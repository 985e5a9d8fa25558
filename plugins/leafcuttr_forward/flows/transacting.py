"""Exactly once: records and their position in one transaction of the target.

A transaction goes on while much waits to be written, for a tenth of a second; it ends at once where little does, so
that a slow flow is quick and a fast one has few commits. What waits is written by calls which do not wait for each
other; a transaction ends once all are acknowledged.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.errors import REFUSALS
from leafcuttr_forward.flows.making import Portion, RecordsRefused
from leafcuttr_forward.flows.positions import POSITIONS, batch_of
from leafcuttr_forward.flows.progress import AppendedPortion, Progress
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.records import NewBatch

if TYPE_CHECKING:
    import trio

    from leafcuttr_forward.flows.intake import Intake
    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_forward.flows.spec import FlowSpec
    from leafcuttr_sdk.transactions import OpenTransaction, TransactionalProducer
    from leafcuttr_sdk.types import Clock


MARKERS_S: Final = 0.005
"""Between two transactions: the target is writing the markers of the first. Kafka's broker lets a batch that comes
before it has done so wait for 20 ms."""

UNDER_WAY: Final = 5
"""Calls at a time: as many requests as Kafka keeps the order of for an idempotent producer."""

_FAST_BYTES: Final = 1 << 20
_FAST_S: Final = 0.01
"""A transaction of so many bytes waits so long for more: they come from a source that has much."""


class TransactionalWriter:
    """Writes what the intake has, until that is closed."""

    def __init__(
        self,
        spec: "FlowSpec",
        producer: "TransactionalProducer",
        intake: "Intake",
        progress: Progress,
        report: "FlowReport",
        clock: "Clock",
    ) -> None:
        import trio

        self._spec = spec
        self._producer = producer
        self._intake = intake
        self._progress = progress
        self._report = report
        self._clock = clock
        self._one_at_a_time = trio.Lock()

    async def run(self) -> None:
        """Raises RecordsRefused, with nothing of the transaction written, and BrokerError: whether the transaction was
        committed is then to be read from the topic of positions, once the producer was opened anew."""
        import trio

        while portions := await self._intake.take(self._spec.request_bytes):
            await self._write(portions)
            await trio.sleep(MARKERS_S)

    async def store(self, records: dict[bytes, bytes | None]) -> None:
        """Positions without records. Raises BrokerError."""
        async with self._one_at_a_time, self._producer.begin() as transaction:
            await transaction.append([NewBatch(POSITIONS, batch_of(records, self._clock.now_ms()))])

    async def _write(self, portions: list[Portion]) -> None:
        import trio

        taken, calls = list(portions), list[_Call]()
        ends_at = self._clock.monotonic() + self._spec.transaction_ms / 1000
        try:
            async with self._one_at_a_time, self._producer.begin() as transaction:
                points.reach("transaction-begun")
                while portions:
                    slots = trio.Semaphore(UNDER_WAY)
                    async with trio.open_nursery() as under_way:
                        while portions:
                            await (
                                slots.acquire()
                            )  # a checkpoint: the last call has its place in the transaction
                            calls.append(call := _Call(portions))
                            under_way.start_soon(self._append, transaction, call, slots)
                            portions = self._more_now() if self._goes_on(calls, ends_at) else []
                            taken += portions
                    points.reach("transaction-appended")
                    if error := _error_of(calls):
                        raise error
                    portions = await self._more(calls, ends_at)
                    taken += portions
                written = [one for call in calls for one in call.written]
                positions = self._progress.after(written)
                batch = batch_of(self._progress.records({**positions}), self._clock.now_ms())
                await transaction.append([NewBatch(POSITIONS, batch)])
                points.reach("transaction-positioned")
            points.reach("transaction-committed")
            self._progress.settle(written)
            self._report.transactions += 1
        except REFUSALS as error:
            raise RecordsRefused(taken, error) from error
        finally:
            self._intake.release(taken)

    def _goes_on(self, calls: Sequence["_Call"], ends_at: float) -> bool:
        """Whether the transaction may have more than these."""
        return not (
            calls[-1].portions[0].alone
            or self._intake.next_is_alone
            or self._clock.monotonic() >= ends_at
            or _error_of(calls)
        )

    def _more_now(self) -> list[Portion]:
        return self._intake.take_now(self._spec.request_bytes) if self._intake.is_behind() else []

    async def _more(self, calls: Sequence["_Call"], ends_at: float) -> list[Portion]:
        """What is written in the same transaction; none if it is to end."""
        import trio

        if not self._goes_on(calls, ends_at):
            return []
        if portions := self._more_now():
            return portions
        if sum(call.size for call in calls) < _FAST_BYTES:
            return []
        with trio.move_on_after(_FAST_S):
            return await self._intake.take(self._spec.request_bytes, alone=False)
        return []

    async def _append(self, transaction: "OpenTransaction", call: "_Call", slots: "trio.Semaphore") -> None:
        batches = [
            NewBatch(piece.target, piece.batch) for portion in call.portions for piece in portion.pieces
        ]
        try:
            appended = iter(await transaction.append(batches) if batches else ())
        except BrokerError as error:
            call.error = error
        else:
            self._intake.written(call.portions)
            call.written = [
                AppendedPortion(portion, [next(appended) for _ in portion.pieces])
                for portion in call.portions
            ]
        finally:
            slots.release()


class _Call:
    """One call of the transaction's `append`."""

    def __init__(self, portions: Sequence[Portion]) -> None:
        self.portions = portions
        self.size = sum(portion.size for portion in portions)
        self.written: Sequence[AppendedPortion] = ()
        self.error: BrokerError | None = None


def _error_of(calls: Sequence[_Call]) -> BrokerError | None:
    """What went wrong first; what was refused for itself says more than what was refused because of it."""
    errors = [call.error for call in calls if call.error is not None]
    return next((error for error in errors if isinstance(error, REFUSALS)), errors[0] if errors else None)
