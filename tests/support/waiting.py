"""Waiting for something outside this process: the one place where tests look again and again."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import isawaitable
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")
LONGEST_S = math.inf
"""A bound for every wait, where what is waited for is expected not to come (support.setting_verdicts)."""


def until(
    look: Callable[[], T | None],
    what: str,
    *,
    seconds: float = 60.0,
    pause: float = 0.02,
    growth: float = 1.0,
) -> T:
    """The first answer of `look` that is not None or False. Raises TimeoutError that names `what`. Each pause is
    `growth` times the one before, and half a second at most.

    `seconds` is only a bound for a broken peer; no test may depend on how fast it comes.
    """
    seconds = min(seconds, LONGEST_S)
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        Event().wait(pause)
        pause = min(pause * growth, 0.5) if growth > 1 else pause


async def eventually(
    look: Callable[[], T | Awaitable[T | None] | None],
    what: str,
    *,
    seconds: float = 60.0,
    pause: float = 0.01,
) -> T:
    """As `until`, in trio. The bound is real time, also where a test moves trio's clock."""
    import trio

    seconds = min(seconds, LONGEST_S)
    deadline = time.monotonic() + seconds
    while True:
        answer: Any = look()
        found: T | None = await answer if isawaitable(answer) else answer
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        await trio.sleep(pause)


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """As `until`, around awaiting: TimeoutError that names `what` if its end is not reached."""
    import trio

    seconds = min(seconds, LONGEST_S)
    with trio.move_on_after(seconds) as patience:
        yield
    if patience.cancelled_caught:
        raise TimeoutError(f"{what}: not within {seconds} s")


def next_look(began: float, period: float, not_before: float) -> float:
    """When somebody who looks every `period` since `began` looks next. A clock that jumps while a worker thread is
    waited for may stand anywhere by then."""
    return began + math.ceil((not_before - began) / period) * period


def free_port() -> int:
    """A port that was free a moment ago, for servers that cannot tell which one they took.

    Not of those that the kernel gives to outgoing connections: a JVM takes seconds until it listens, and any client on
    the machine may have got such a port by then.
    """
    import random
    import socket

    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100):
        port = random.SystemRandom().randrange(10_000, max(first_outgoing, 20_000))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port was found")
