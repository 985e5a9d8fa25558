"""SIGTERM and SIGINT in each state of a process, in programs of a few lines; `leafcuttr serve` as a whole is in
tests/cli/serve/test_signals.py."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import dedent

import pytest

from support.broker_process import clean_environ

HEAD = """
import atexit, logging, signal, subprocess, threading, time
import trio
from leafcuttr.server import signals
from leafcuttr.server.signals import StopSignals, end_soon
from leafcuttr.state.plugged import LoopHolder

logging.basicConfig(format="%(message)s")
stops = StopSignals()
stops.install()
# Each test says which of these it is that ends it.
signals.PATIENCE_S = signals.AGAIN_S = 3600.0
signals.END_S = 0.05

def say(word):
    print(word, flush=True)

def stopped():
    say("stop")

async def stopping():
    while not stops._stopping:
        await trio.sleep(0.01)

def nobody():
    return None

def acme():
    return LoopHolder("service acme of plugin acme", "acme.py:7 in run")
"""
TERM, INT = signal.SIGTERM, signal.SIGINT


class Program:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def says(self, word: str) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said == f"{word}\n", said or self.ends()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ends(self) -> tuple[int, str]:
        """Its status, and what it has written to standard error."""
        _, said = self._process.communicate(timeout=120)
        return self._process.returncode, said


@contextmanager
def running(source: str, before: Sequence[str] = ()) -> Iterator[Program]:
    process = subprocess.Popen(
        [*before, sys.executable, "-c", HEAD + dedent(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environ(),
    )
    with process:
        try:
            yield Program(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [TERM, INT])
def test_without_a_loop_a_signal_ends_the_process_as_if_there_were_no_handler(number: signal.Signals) -> None:
    # Short sleeps: a signal that comes just before a long one is taken only after it.
    with running("say('waits')\nwhile True: time.sleep(0.01)") as program:
        program.says("waits")
        program.signal(number)
        assert program.ends() == (-number, "")


LOOP = """
    async def main():
        with stops.on_loop(stopped, {holder}):
            say("runs")
            {body}

    trio.run(main)
    say("ended")
    {after}
"""


def loop(body: str, holder: str = "nobody", after: str = "") -> str:
    return LOOP.format(body=body, holder=holder, after=after)


@pytest.mark.parametrize("number", [TERM, INT])
def test_a_loop_that_runs_takes_each_signal(number: signal.Signals) -> None:
    with running(loop("await trio.sleep_forever()", "acme")) as program:
        program.says("runs")
        for _ in range(3):
            program.signal(number)
            program.says("stop")


@pytest.mark.parametrize(
    ("holder", "part"), [("acme", "service acme of plugin acme"), ("nobody", "the broker itself")]
)
def test_a_loop_that_is_held_is_ended_with_one_line(holder: str, part: str) -> None:
    source = "signals.PATIENCE_S = 0.1\n" + dedent(loop("time.sleep(3600)", holder))
    with running(source) as program:
        program.says("runs")
        program.signal(TERM)
        status, said = program.ends()
    assert status == 143
    (line,) = said.splitlines()
    assert line.startswith(
        f"SIGTERM ends the process with status 143, because {part} holds the event loop and it "
    )
    assert line.endswith("acme.py:7 in run" if holder == "acme" else " in main")


def test_a_second_signal_ends_it_at_once() -> None:
    source = "signals.AGAIN_S = 0.1\n" + dedent(loop("say('held'); time.sleep(3600)", "acme"))
    with running(source) as program:
        program.says("runs")
        program.says("held")
        program.signal(INT)
        program.signal(TERM)
        status, said = program.ends()
    assert status in (130, 143), "of the one that came first: they may be delivered in any order"
    assert said.count("\n") == 1


def test_a_second_signal_that_comes_later_ends_it_without_delay() -> None:
    """For the thread 10000 s pass between two signals."""
    clock = """
    from itertools import count
    from types import SimpleNamespace
    numbers = count()

    def monotonic():
        number = next(numbers)
        if number == 2:  # before it began to wait, after the first signal, and before it waits again
            say("waits")
        return 10000.0 * number

    signals.time = SimpleNamespace(monotonic=monotonic)
    signals.PATIENCE_S, signals.AGAIN_S, signals._SLICE_S = 100000.0, 5000.0, 10000.0
    """
    with running(dedent(clock) + dedent(loop("say('held'); time.sleep(3600)", "acme"))) as program:
        program.says("runs")
        program.says("held")
        program.signal(TERM)
        program.says("waits")
        program.signal(INT)
        assert program.ends()[0] == 143


def test_a_third_signal_shortens_nothing_further() -> None:
    """Some at once, as of a supervisor and a terminal, reach a loop that is only busy."""
    taken = """
    import array, fcntl, termios

    def sent(count):
        for _ in range(count):
            signal.raise_signal(signal.SIGTERM)
        unread = array.array("i", [1])
        while unread[0]:
            time.sleep(0.001)
            fcntl.ioctl(stops._writable, termios.FIONREAD, unread)

    signals.AGAIN_S = 60.0
    """
    # When the thread has read the fourth, it has acted on the three before.
    body = "sent(3); sent(1); say('goes on'); await trio.sleep_forever()"
    with running(dedent(taken) + dedent(loop(body, "acme"))) as program:
        program.says("runs")
        program.says("goes on")
        program.says("stop")


def test_a_loop_that_takes_it_in_time_is_not_ended() -> None:
    """Held for a while, and then it goes on: the first signal is taken, and so is the next one."""
    body = "time.sleep(0.3); say('goes on'); await trio.sleep_forever()"
    source = "signals.PATIENCE_S = 60.0\n" + dedent(loop(body, "acme"))
    with running(source) as program:
        program.says("runs")
        program.signal(TERM)
        program.says("goes on")
        program.says("stop")
        program.signal(TERM)
        program.says("stop")


STOPPING = "signal.raise_signal(signal.SIGTERM); await stopping(); say('stops'); time.sleep({hold_s})"


def test_a_plugin_that_holds_a_loop_which_stops_is_ended_by_another_signal() -> None:
    source = "signals.PATIENCE_S = 0.1\n" + dedent(loop(STOPPING.format(hold_s=3600), "acme"))
    with running(source) as program:
        for word in ("runs", "stop", "stops"):
            program.says(word)
        program.signal(TERM)
        status, said = program.ends()
    assert status == 143
    assert said.count("\n") == 1


def test_a_clean_stop_that_the_broker_itself_is_at_is_not_cut_short() -> None:
    source = "signals.PATIENCE_S = signals.AGAIN_S = 0.01\n" + dedent(
        loop(STOPPING.format(hold_s=1), "nobody")
    )
    with running(source) as program:
        for word in ("runs", "stop", "stops"):
            program.says(word)
        for _ in range(3):
            program.signal(TERM)
        program.says("stop")  # trio calls what it was given, also after its main task has ended
        program.says("ended")
        assert program.ends() == (0, "")


def test_a_process_that_stood_still_has_not_been_patient_meanwhile() -> None:
    # Held in short sleeps: one that begins just when the signal comes is not cut short by it.
    held = (
        "end = time.monotonic() + 3.2; say('held'); "
        "[time.sleep(0.01) for _ in iter(lambda: time.monotonic() < end, False)]"
    )
    body = f"{held}; say('goes on'); await trio.sleep_forever()"
    seen = "signals.PATIENCE_S = 3.0\nsignal.signal(signal.SIGTERM, lambda *_: say('seen'))\n"
    source = seen + dedent(loop(body))
    with running(source) as program:
        program.says("runs")
        program.says("held")
        program.signal(TERM)
        program.says("seen")
        program.signal(signal.SIGSTOP)
        time.sleep(3.2)
        program.signal(signal.SIGCONT)
        program.says("goes on")
        program.says("stop")


def test_a_line_that_cannot_be_written_keeps_nothing() -> None:
    """Whatever has the lock of the log may be what holds the loop."""
    held = "logging.getLogger().handlers[0].acquire(); time.sleep(3600)"
    source = "signals._SAY_S = signals.PATIENCE_S = 0.1\n" + dedent(loop(held))
    with running(source) as program:
        program.says("runs")
        program.signal(TERM)
        assert program.ends() == (143, "")


def test_handlers_of_other_signals_wake_the_loop_as_before() -> None:
    body = """
            with trio.open_signal_receiver(signal.SIGUSR1) as received:
                say("listens")
                async for _ in received:
                    say("received")
    """
    with running(loop(body.strip())) as program:
        program.says("runs")
        program.says("listens")
        for _ in range(3):
            program.signal(signal.SIGUSR1)
            program.says("received")


def test_a_signal_arrives_though_a_plugin_has_taken_the_descriptor_of_signals() -> None:
    body = """
            signal.set_wakeup_fd(-1)
            say("taken")
            await stopping()
            signal.set_wakeup_fd(-1)
            say("again")
            await trio.sleep_forever()
    """
    with running(loop(body.strip())) as program:
        program.says("runs")
        program.says("taken")
        program.signal(TERM)
        program.says("stop")
        program.says("again")
        program.signal(INT)
        program.says("stop")


def test_after_the_loop_a_signal_ends_the_process() -> None:
    with running(loop("pass", after="time.sleep(3600)")) as program:
        program.says("runs")
        program.says("ended")
        program.signal(TERM)
        assert program.ends() == (-TERM, "")


THREAD = "threading.Thread(target=time.sleep, args=(3600,), name='mine').start()"
CHILD = """
import multiprocessing, os
command = ["sh", "-c", "exec sleep 20 >&- 2>&-"]  # it keeps no pipe of this test open
multiprocessing.get_context("fork").Process(target=os.execvp, args=("sh", command)).start()
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        (THREAD, "threads that were left behind (mine)"),
        ("atexit.register(time.sleep, 3600)", "what was left behind"),
        (CHILD, "what was left behind"),
    ],
)
def test_what_is_left_behind_does_not_keep_the_process(what: str, words: str) -> None:
    with running(f"{what}\nend_soon(7)\nraise SystemExit(7)") as program:
        status, said = program.ends()
    assert status == 7
    (line,) = said.splitlines()
    assert f"without waiting for {words}: " in line


def test_a_loop_that_does_not_end_does_not_keep_the_process() -> None:
    source = """
    signals.LEAVE_S = 0.05

    async def main():
        end_soon(7, lambda: ["system task a of plugin acme", "another"])
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()

    trio.run(main)
    """
    with running(source) as program:
        status, said = program.ends()
    assert status == 7
    (line,) = said.splitlines()
    assert "without waiting for tasks that were left behind (system task a of plugin acme, another): " in line


def test_nothing_is_said_where_nothing_is_left_behind() -> None:
    with running("end_soon(7)\nraise SystemExit(7)") as program:
        assert program.ends() == (7, "")


def test_the_descriptors_of_a_loop_are_closed() -> None:
    source = """
    import os

    async def main():
        with stops.on_loop(stopped, nobody):
            pass

    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(5):
        trio.run(main)
    while count() > before:
        time.sleep(0.01)
    assert signal.set_wakeup_fd(-1) == -1
    """
    with running(source) as program:
        assert program.ends() == (0, "")
