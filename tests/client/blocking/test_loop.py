"""A loop of trio in a thread, for callers that block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing import get_context
from typing import NoReturn

import pytest
import trio

from leafcuttr.client.blocking.loop import LoopThread


async def double(number: int) -> int:
    await trio.lowlevel.checkpoint()
    return 2 * number


async def fails() -> NoReturn:
    raise KeyError("why")


def test_what_a_function_returns_and_raises() -> None:
    with LoopThread() as loop:
        assert loop.run(double, 3) == 6
        with pytest.raises(KeyError, match="why"):
            loop.run(fails)
        assert loop.call(lambda text: text.upper(), "a") == "A"
        assert loop.run(double, 4) == 8


def test_the_function_runs_in_the_one_thread_of_the_loop() -> None:
    with LoopThread() as loop:
        threads = {loop.call(threading.current_thread) for _ in range(3)}
        assert len(threads) == 1
        assert threads != {threading.current_thread()}
        assert threads.pop().daemon, "it would keep a process from ending"


OPEN_AT_ITS_END = """
from leafcuttr.client.blocking.peer import open_blocking_peer

manager = open_blocking_peer({"bootstrap.servers": "127.0.0.1:1"})
print(manager.__enter__().name)
"""


def test_one_that_was_left_open_does_not_keep_a_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", OPEN_AT_ITS_END], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "127.0.0.1:1\n", "")


def test_many_threads_use_it_at_once() -> None:
    with LoopThread() as loop:
        met = trio.Event()
        arrived: list[int] = []

        async def meet(number: int) -> int:
            arrived.append(number)
            if len(arrived) == 4:
                met.set()
            await met.wait()
            return number

        found: list[int] = []
        threads = [
            threading.Thread(target=lambda number=number: found.append(loop.run(meet, number)))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [0, 1, 2, 3]


class Context:
    """One of the loop, which notes what happens to it."""

    def __init__(self, *, refuses: bool = False, fails: bool = False) -> None:
        self.noted: list[str] = []
        self.refuses = refuses
        self.fails = fails

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise KeyError("refused")
        self.noted.append("entered")
        try:
            yield "value"
            self.noted.append("left")
            if self.fails:
                raise KeyError("left")
        except BaseException as error:
            self.noted.append(type(error).__name__)
            raise


def test_a_context_is_entered_and_left() -> None:
    context = Context()
    with LoopThread() as loop:
        with loop.entered(context.opened()) as value:
            assert value == "value"
            assert loop.run(double, 1) == 2
            assert context.noted == ["entered"]
        assert context.noted == ["entered", "left"]


def test_what_a_context_raises_comes_out() -> None:
    with LoopThread() as loop:
        with pytest.raises(KeyError, match="refused"), loop.entered(Context(refuses=True).opened()):
            pass
        with pytest.raises(KeyError, match="left"), loop.entered(Context(fails=True).opened()):
            pass
        assert loop.run(double, 1) == 2


def test_a_context_is_left_without_the_exception_of_the_block() -> None:
    context = Context()
    with LoopThread() as loop, pytest.raises(ZeroDivisionError), loop.entered(context.opened()):
        raise ZeroDivisionError
    assert context.noted == ["entered", "left"]


def test_its_end_ends_what_is_under_way() -> None:
    context, begun, raised = Context(), threading.Event(), list[str]()

    async def waits() -> None:
        begun.set()
        await trio.sleep_forever()

    def call(loop: LoopThread) -> None:
        try:
            loop.run(waits)
        except RuntimeError as error:
            raised.append(str(error))

    with LoopThread() as loop:
        manager = loop.entered(context.opened())
        manager.__enter__()
        thread = threading.Thread(target=call, args=(loop,))
        thread.start()
        assert begun.wait(10)
    thread.join(10)
    assert raised == ["This peer is closed."]
    assert context.noted == ["entered", "Cancelled"]
    with pytest.raises(RuntimeError, match=r"This peer is closed\."):
        loop.run(double, 1)
    manager.__exit__(None, None, None)
    loop.close()


def test_a_loop_that_breaks_answers_all() -> None:
    begun, raised = threading.Event(), list[str]()

    async def waits() -> None:
        begun.set()
        await trio.sleep_forever()

    def breaks() -> NoReturn:
        raise ZeroDivisionError

    def call(loop: LoopThread) -> None:
        try:
            loop.run(waits)
        except RuntimeError as error:
            raised.append(str(error))

    loop = LoopThread()
    thread = threading.Thread(target=call, args=(loop,))
    thread.start()
    assert begun.wait(10)
    loop._token.run_sync_soon(breaks)  # an error of trio's own
    thread.join(10)
    assert raised == ["This peer is closed."]
    loop.close()


def test_a_call_that_never_began_is_answered_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, raised = threading.Event(), list[str]()
    monkeypatch.setattr(LoopThread, "_start", lambda *_: begun.set())

    def call(loop: LoopThread) -> None:
        try:
            loop.run(double, 1)
        except RuntimeError as error:
            raised.append(str(error))

    with LoopThread() as loop:
        thread = threading.Thread(target=call, args=(loop,))
        thread.start()
        assert begun.wait(10)
    thread.join(10)
    assert raised == ["This peer is closed."]


def test_an_interrupted_caller_cancels_its_call() -> None:
    """As Ctrl-C does, and a handler of signals that raises."""
    noted: list[str] = []
    main = threading.get_ident()

    async def waits() -> None:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await trio.sleep_forever()
        except trio.Cancelled:
            noted.append("cancelled")
            raise

    with LoopThread() as loop:
        with pytest.raises(KeyboardInterrupt):
            loop.run(waits)
        assert noted == ["cancelled"]
        assert loop.run(double, 1) == 2


def test_what_ends_a_program_ends_the_call_only() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    with LoopThread() as loop:
        with pytest.raises(SystemExit):
            loop.run(leaves)
        assert loop.run(double, 1) == 2


def test_a_process_that_was_forked_has_none() -> None:
    """As workers of Spark are forked from their daemon: a call there would wait without end."""

    def child(loop: LoopThread, status: int) -> None:
        try:
            loop.run(double, 1)
        except RuntimeError as error:
            loop.close()  # nothing, and it returns
            assert str(error) == f"This peer was opened in process {status}: each process opens its own."
            os._exit(7)
        os._exit(1)

    with LoopThread() as loop:
        process = get_context("fork").Process(target=child, args=(loop, os.getpid()))
        process.start()
        process.join(20)
        assert process.exitcode == 7


def test_a_call_that_comes_as_it_ends_is_answered() -> None:
    for _ in range(20):
        loop = LoopThread()
        threads, ended = list[threading.Thread](), list[str]()

        def call(loop: LoopThread = loop, ended: list[str] = ended) -> None:
            try:
                while True:
                    loop.run(double, 1)
            except RuntimeError as error:
                ended.append(str(error))

        for _ in range(3):
            threads.append(threading.Thread(target=call))
            threads[-1].start()
        time.sleep(0)
        loop.close()
        for thread in threads:
            thread.join(10)
        assert ended == ["This peer is closed."] * 3
