"""A loop of trio in a thread of its own, for callers that block.

    with LoopThread() as loop:
        metadata = loop.run(cluster.metadata, ["orders"])
        with loop.entered(open_cluster(settings)) as cluster:
            ...

It is a thread of the process that has started it: a process that was forked from that has none, and is told so. The
thread does not keep a process from ending: what is open then is closed, before Python stops all threads.
"""

import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self, TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_CANCELLED_S: Final = 5.0
"""How long a call that was interrupted is waited for."""
_CLOSED: Final = "This peer is closed."


class LoopThread:
    """Any number of threads may use it. An interrupted caller (KeyboardInterrupt, a signal's handler that raises)
    cancels its call."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._scope = trio.CancelScope()
        self._begun: Future[tuple[trio.lowlevel.TrioToken, trio.Nursery]] = Future()
        self._under_way: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="leafcuttr-peer", daemon=True)
        self._thread.start()
        self._token, self._nursery = self._begun.result()
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, function: Callable[[*Arguments], Awaitable[T]], *arguments: *Arguments) -> T:
        """What the function returns or raises. RuntimeError once the loop is closed."""
        scope = trio.CancelScope()

        async def called(done: Future[T]) -> None:
            with scope:
                done.set_result(await function(*arguments))

        return self._result(called, scope)

    def call(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """What a function returns or raises that waits for nothing, in one turn of the loop."""

        async def called() -> T:
            return function(*arguments)

        return self.run(called)

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The context of the loop, as one of this thread. It is left without the exception of the block."""
        scope, leave = trio.CancelScope(), trio.Event()
        left: Future[None] = Future()

        async def held(done: Future[T]) -> None:
            try:
                with scope:
                    async with manager as value:
                        done.set_result(value)
                        await leave.wait()
            except Exception as error:
                if not done.done():
                    raise
                left.set_exception(error)
            finally:
                _finish(left)

        value = self._result(held, scope)
        try:
            yield value
        finally:
            # A forked process drops what it cannot leave.
            if os.getpid() == self._pid:
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(leave.set)
                    left.result()

    def close(self) -> None:
        """End what is under way, and the thread."""
        if os.getpid() != self._pid:
            return
        atexit.unregister(self.close)
        try:
            self._token.run_sync_soon(self._scope.cancel)
        except trio.RunFinishedError:
            return
        self._thread.join()

    # --- how ------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            _fail(self._begun, error)
        finally:
            for done in list(self._under_way):
                _fail(done, RuntimeError(_CLOSED))

    async def _main(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._begun.set_result((trio.lowlevel.current_trio_token(), nursery))
                await trio.sleep_forever()

    def _result(self, work: Callable[[Future[T]], Awaitable[None]], scope: trio.CancelScope) -> T:
        """What the work sets on the loop. Where this thread is interrupted meanwhile, the scope is cancelled."""
        self._check_process()
        done: Future[T] = Future()
        # Before it is handed over: the end of the thread answers all that are named here.
        self._under_way.add(done)
        try:
            self._token.run_sync_soon(self._start, work, done)
            return done.result()
        except trio.RunFinishedError:
            raise RuntimeError(_CLOSED) from None
        except BaseException:
            if not done.done():
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(scope.cancel)
                    wait([done], _CANCELLED_S)
            raise
        finally:
            self._under_way.discard(done)

    def _start(self, work: Callable[[Future[T]], Awaitable[None]], done: Future[T]) -> None:
        try:
            self._nursery.start_soon(self._work, work, done)
        except RuntimeError:  # the nursery is closed
            _fail(done, RuntimeError(_CLOSED))

    async def _work(self, work: Callable[[Future[T]], Awaitable[None]], done: Future[T]) -> None:
        try:
            await work(done)
            _fail(done, RuntimeError("The call was interrupted."))
        except trio.Cancelled:
            _fail(done, RuntimeError(_CLOSED))
            raise
        except BaseException as error:
            _fail(done, error)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"This peer was opened in process {self._pid}: each process opens its own.")


def _fail(done: Future[Any], error: BaseException) -> None:
    """Unless it has a result."""
    if not done.done():
        done.set_exception(error)


def _finish(left: Future[None]) -> None:
    if not left.done():
        left.set_result(None)
