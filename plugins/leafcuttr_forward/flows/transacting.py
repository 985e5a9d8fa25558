"""Exactly once: records and their position in one transaction of the target.

A transaction goes on while much waits to be written, for a tenth of a second; it ends at once where little does, so
that a slow flow is quick and a fast one has few commits.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.errors import REFUSALS
from leafcuttr_forward.flows.making import Portion, RecordsRefused
from leafcuttr_forward.flows.positions import POSITIONS, batch_of
from leafcuttr_forward.flows.progress import AppendedPortion, Progress
from leafcuttr_sdk.records import NewBatch

if TYPE_CHECKING:
    from leafcuttr_forward.flows.intake import Intake
    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_forward.flows.spec import FlowSpec
    from leafcuttr_sdk.transactions import OpenTransaction, TransactionalProducer
    from leafcuttr_sdk.types import Clock


MARKERS_S: Final = 0.005
"""Between two transactions: the target is writing the markers of the first. Kafka's broker lets a batch that comes
before it has done so wait for 20 ms."""

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
        taken = list(portions)
        written: list[AppendedPortion] = []
        size = 0
        ends_at = self._clock.monotonic() + self._spec.transaction_ms / 1000
        try:
            async with self._one_at_a_time, self._producer.begin() as transaction:
                points.reach("transaction-begun")
                while True:
                    size += sum(portion.size for portion in portions)
                    written += await self._append(transaction, portions)
                    points.reach("transaction-appended")
                    if portions[0].alone or self._intake.next_is_alone or self._clock.monotonic() >= ends_at:
                        break
                    portions = await self._more(size)
                    if not portions:
                        break
                    taken += portions
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

    async def _more(self, written: int) -> list[Portion]:
        """What is written in the same transaction, which has so many bytes; none if it is to end."""
        import trio

        most = self._spec.request_bytes
        if self._intake.is_behind():
            return self._intake.take_now(most)
        if written < _FAST_BYTES:
            return []
        with trio.move_on_after(_FAST_S):
            return await self._intake.take(most, alone=False)
        return []

    async def _append(
        self, transaction: "OpenTransaction", portions: Sequence[Portion]
    ) -> list[AppendedPortion]:
        batches = [NewBatch(piece.target, piece.batch) for portion in portions for piece in portion.pieces]
        appended = iter(await transaction.append(batches) if batches else ())
        self._intake.written(portions)
        return [AppendedPortion(portion, [next(appended) for _ in portion.pieces]) for portion in portions]
