"""The worker processes of a broker, and the calls that wait for them, in the order in which they came.

A process is started when a call finds none that is idle and there are fewer than `most`. It ends when it has been idle
for `IDLE_S`, and at the latest with the broker. One that a call has failed in, in a way after which nothing is known of
it, is ended before the caller gets the error; the next call finds another one.
"""

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.plugins.worker_processes.functions import place_of
from leafcuttr.plugins.worker_processes.pickling import pickled
from leafcuttr.plugins.worker_processes.process import WorkerProcess
from leafcuttr_sdk.trouble import exhausted
from leafcuttr_sdk.workers import WorkerDiedError, WorkerMemoryError, WorkerTransferError

if TYPE_CHECKING:
    from leafcuttr.state.broker import Broker

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
_LINES_S: Final = 0.2


def most_processes() -> int:
    """As many as there are processors, two at least, so that a long call does not hold up all others; and not more than
    four."""
    return min(max(len(os.sched_getaffinity(0)), 2), 4)


async def run_in_worker(
    core: "Broker",
    plugin: str,
    function: Callable[..., Any],
    arguments: tuple[object, ...],
    *,
    deadline_s: float,
    memory_bytes: int,
) -> Any:
    """See `leafcuttr_sdk.Broker.run_in_worker`."""
    plugged = core.plugged
    if plugged.workers is None:
        if plugged.background is None:
            raise RuntimeError("worker processes are there while the broker runs")
        plugged.workers = WorkerPool(plugged.background)
    return await plugged.workers.run(
        plugin, function, arguments, deadline_s=deadline_s, memory_bytes=memory_bytes
    )


class WorkerPool:
    """`nursery` is open for as long as there may be processes; cancelled, it ends them."""

    def __init__(self, nursery: trio.Nursery, most: int | None = None) -> None:
        self._nursery = nursery
        self._turns: Final = trio.Semaphore(most or most_processes())
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()

    @property
    def pids(self) -> list[int]:
        """Of the processes that there are."""
        return sorted(worker.pid for worker in self._all)

    async def run(
        self,
        plugin: str,
        function: Callable[..., Any],
        arguments: tuple[object, ...],
        *,
        deadline_s: float,
        memory_bytes: int,
    ) -> Any:
        """See `leafcuttr_sdk.Broker.run_in_worker`."""
        if not deadline_s > 0:
            raise ValueError(f"deadline_s={deadline_s}: it has to be a number of seconds above 0")
        if memory_bytes < 1:
            raise ValueError(f"memory_bytes={memory_bytes}: it has to be a number of bytes above 0")
        place = place_of(function)
        try:
            sent = await pickled(arguments, memory_bytes)
        except Exception as error:
            raise WorkerTransferError(f"{place}: an argument cannot be pickled: {error}") from error
        if sent is None:
            raise WorkerMemoryError(f"the arguments of {place} are larger than {memory_bytes} bytes")
        try:
            self._turns.acquire_nowait()
        except trio.WouldBlock:
            await self._turns.acquire()
        try:
            worker = await self._take()
            try:
                return await worker.call(plugin, place, sent, deadline_s, memory_bytes)
            finally:
                if worker.takes_more:
                    worker.idle_since = trio.current_time()
                    self._idle.append(worker)
                else:
                    await worker.end()
        finally:
            self._turns.release()

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.running:
                return worker
        try:
            started: WorkerProcess = await self._nursery.start(self._keep)
        except OSError as error:
            raise WorkerDiedError(f"a worker process cannot be started: {error.strerror}") from None
        except (
            RuntimeError
        ) as error:  # no thread; or the nursery is closed, or was cancelled while it started
            why = exhausted(error) or "the broker has stopped"
            raise WorkerDiedError(f"a worker process cannot be started: {why}") from None
        return started

    async def _keep(self, *, task_status: trio.TaskStatus[WorkerProcess]) -> None:
        """The life of a process."""
        worker = await WorkerProcess.start()
        self._all.add(worker)
        try:
            async with trio.open_nursery() as nursery:
                all_read = trio.Event()

                async def read() -> None:
                    await worker.log_lines()
                    all_read.set()

                nursery.start_soon(read)
                task_status.started(worker)
                await self._ended_or_idle(worker)
                # What it has started may have its output open for longer.
                with trio.move_on_after(_LINES_S):
                    await all_read.wait()
                nursery.cancel_scope.cancel()
        except Exception:
            logger.exception("watching over the worker process %d failed", worker.pid)
        finally:
            self._all.discard(worker)
            if worker in self._idle:
                self._idle.remove(worker)
            await worker.close()

    async def _ended_or_idle(self, worker: WorkerProcess) -> None:
        while worker.running:
            with trio.move_on_after(IDLE_S):
                await worker.ended()
            if worker in self._idle and trio.current_time() - worker.idle_since >= IDLE_S:
                self._idle.remove(worker)
                worker.kill()
                await worker.ended()
