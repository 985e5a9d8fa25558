"""Appends from within this process: the batches that several tasks append in one turn of the loop are written together.

The first task that appends in a turn leads it: when every other task has had its turn, it stages the batches of all
calls that have come meanwhile, writes with one call for each log, and hands out the results. So a lone caller costs one
step of the loop, and many share their writes as connections do in the rounds of the server's reactor. Between staging
and writing no task runs; nothing is staged for a call that has been cancelled by then. A call whose batches are written
by a worker thread returns when that is done.

A caller that has gathered the records of its turn itself does not wait for the end of it once more: `begin` writes here
and now what needs no worker thread, and `complete` waits for the rest.

Topics, rights and the making of batches belong to the callers.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.preparation import LongWork, Prepared, Work
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged, WriteError
from leafcuttr.log.log import Log
from leafcuttr.runtime.unexpected import as_refusal
from leafcuttr_sdk import Clock
from leafcuttr_sdk.principals import act_for, current_principal

logger = logging.getLogger(__name__)


class AppendRequest(NamedTuple):
    """One batch (magic 2, base offset 0), the log that it is for, and its origin."""

    log: Log
    batch: bytes | bytearray | memoryview
    origin: Origin


AppendResult = Staged | BrokerError
"""A Staged is in the log; an error says why the batch is not."""

_AT_ONCE: Final = 100
"""Batches staged in one turn of the loop: some milliseconds."""


class AppendCall:
    """The requests of one caller. `at` is the first one that has not been staged."""

    __slots__ = (
        "_parked",
        "_queue",
        "_shielded",
        "at",
        "leads",
        "pending",
        "prepared",
        "principal",
        "requests",
        "results",
        "work",
    )

    def __init__(
        self, requests: Sequence[AppendRequest], queue: "deque[AppendCall]", *, shielded: bool
    ) -> None:
        self.requests = requests
        self.principal = current_principal()
        self._queue = queue
        self.at = 0
        self.results: list[AppendResult] = []
        self.prepared: Prepared | BrokerError | None = None
        self.work: Work | None = None
        self.pending = 0  # writes that are not done
        self.leads = False
        self._parked: trio.lowlevel.Task | None = None
        self._shielded = shielded

    @property
    def done(self) -> bool:
        """Whether all of its requests have their results."""
        return self.at == len(self.requests) and not self.pending

    def stage(self, now_ms: int, at_most: int, places: "dict[Log, list[tuple[AppendCall, int]]]") -> int:
        """Stage from `at` on, up to the end or to a batch that a worker has to prepare first; returns how many were
        tried. Filters and validators see the principal of the caller, whichever task leads."""
        leads_for = current_principal()
        if leads_for is self.principal:
            return self._stage(now_ms, at_most, places)
        act_for(self.principal)
        try:
            return self._stage(now_ms, at_most, places)
        finally:
            act_for(leads_for)

    def _stage(self, now_ms: int, at_most: int, places: "dict[Log, list[tuple[AppendCall, int]]]") -> int:
        requests, results, before = self.requests, self.results, self.at
        while self.at < len(requests) and self.at - before < at_most:
            log, batch, origin = requests[self.at]
            prepared, self.prepared = self.prepared, None
            result: AppendResult
            try:
                if isinstance(prepared, BrokerError):
                    raise prepared
                result = log.stage(memoryview(batch), origin, now_ms=now_ms, prepared=prepared)
            except LongWork as long:
                self.work = long.work
                break
            except BrokerError as error:
                result = error.with_traceback(None)
            except Exception as error:
                # An unexpected error is that of its batch; the others are written.
                result = as_refusal(log.resources.complaints, error, f"appending to {log.topic_partition}")
            else:
                places.setdefault(log, []).append((self, self.at))
            results.append(result)
            self.at += 1
        return max(self.at - before, 1)

    def failed(self, number: int, error: WriteError) -> None:
        """A write has failed; what was published of it before the failure stays."""
        staged = self.results[number]
        if isinstance(staged, Staged) and staged.base_offset >= error.written_to:
            self.results[number] = error.again()

    async def wait(self) -> None:
        """Sleep until `wake`. Cancelled only while no one else uses the caller's bytes."""
        self._parked = trio.lowlevel.current_task()
        try:
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        finally:
            self._parked = None

    def wake(self) -> None:
        task, self._parked = self._parked, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        if self.pending and self._shielded:
            return trio.lowlevel.Abort.FAILED
        self._parked = None
        if self in self._queue:  # at once, so that it is not chosen to lead
            self._queue.remove(self)
        return trio.lowlevel.Abort.SUCCEEDED


class Appender:
    """The appends of one broker's own tasks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: deque[AppendCall] = deque()
        self._led = False

    async def append(self, requests: Sequence[AppendRequest], *, lent: bool = False) -> list[AppendResult]:
        """Append the batches, in their order within each log; a result for each.

        The bytes may be changed meanwhile. Those that are `lent` are the caller's again when this returns or raises:
        cancellation then waits for a worker that uses them. Those that are not must be left alone for good.
        Cancelled: of the batches that were staged every one is written, of the others none.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        call = AppendCall(requests, self._queue, shielded=lent)
        while call.at < len(requests):
            await self._turn(call)
            if call.work is not None:
                await self._prepare(call, call.work, abandon_on_cancel=not lent)
        return call.results

    def begin(self, requests: Sequence[AppendRequest]) -> AppendCall:
        """Append the batches without waiting; the bytes must be left alone for good. The call is `done` unless a worker
        thread is needed: then `complete` it."""
        call = AppendCall(requests, self._queue, shielded=False)
        self._write_calls(deque((call,)), len(requests))
        return call

    async def complete(self, call: AppendCall) -> list[AppendResult]:
        """The results of a call that was begun, as `append` returns them. Cancelled: as there."""
        if call.pending:
            await call.wait()
        while call.at < len(call.requests):
            if call.work is not None:
                await self._prepare(call, call.work, abandon_on_cancel=True)
            await self._turn(call)
        return call.results

    async def _prepare(self, call: AppendCall, work: Work, *, abandon_on_cancel: bool) -> None:
        """Have a worker do what the next batch needs."""
        call.work = None
        try:
            call.prepared = await work.done(abandon_on_cancel=abandon_on_cancel)
        except BrokerError as error:
            call.prepared = error
        except Exception as error:
            log = call.requests[call.at].log
            call.prepared = as_refusal(
                log.resources.complaints, error, f"preparing a batch for {log.topic_partition}"
            )

    async def _turn(self, call: AppendCall) -> None:
        """Have as many of its batches staged as possible, and wait until these are written."""
        self._queue.append(call)
        if self._led:
            await call.wait()
            if not call.leads:
                return
        self._led = True
        call.leads = False
        # The requests of other calls must not be lost with this caller.
        await trio.lowlevel.cancel_shielded_checkpoint()
        self._write()
        self._hand_over()
        if call.pending:
            await call.wait()

    def _hand_over(self) -> None:
        """The first call that was not staged in this turn leads the next one."""
        self._led = bool(self._queue)
        if self._queue:
            first = self._queue[0]
            first.leads = True
            first.wake()

    def _write(self) -> None:
        self._write_calls(self._queue, _AT_ONCE)

    @trio.lowlevel.enable_ki_protection
    def _write_calls(self, queue: "deque[AppendCall]", at_most: int) -> None:
        places: dict[Log, list[tuple[AppendCall, int]]] = {}
        staged: list[AppendCall] = []
        now_ms, left = self._clock.now_ms(), at_most
        while queue and left > 0:
            call = queue.popleft()
            left -= call.stage(now_ms, left, places)
            staged.append(call)
        for log, these in places.items():
            pending = log.write()
            if not pending.done:
                _await(pending, these)
            elif pending.failure is not None:
                for call, number in these:
                    call.failed(number, pending.failure)
        for call in staged:
            if not call.pending:
                call.wake()


def _await(pending: PendingWrite, places: list[tuple[AppendCall, int]]) -> None:
    calls = {id(call): call for call, _ in places}
    for call in calls.values():
        call.pending += 1

    def done() -> None:
        if pending.failure is not None:
            for call, number in places:
                call.failed(number, pending.failure)
        for call in calls.values():
            call.pending -= 1
            if not call.pending:
                call.wake()

    pending.when_done(done)
