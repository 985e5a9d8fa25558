"""Functions that tests have run in worker processes: those that do as they should, and those that do not."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_kept: list[bytes] = []


def add(a: int, b: int) -> int:
    return a + b


def echo(thing: Any) -> Any:
    return thing


def pid() -> int:
    return os.getpid()


def modules() -> set[str]:
    return set(sys.modules)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def spin() -> None:
    while True:
        pass


def hold_the_interpreter() -> None:
    """In one call of C, in which no other thread of the process runs."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def allocate(size: int) -> int:
    return len(bytearray(size))


def allocate_and_go_on(size: int) -> str:
    try:
        bytearray(size)
    except MemoryError:
        return "went on"
    return "had it"


def large(size: int) -> bytes:
    return b"x" * size


def keep(size: int) -> int:
    """Leave something behind."""
    _kept.append(b"x" * size)
    return os.getpid()


def exit_at_once(status: int) -> None:
    os._exit(status)


def exit_as_python_does(status: int) -> None:
    sys.exit(status)


def claim(header: bytes) -> None:
    """Begin an answer, in the place of the process itself."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.write(int(name), header)
    time.sleep(1000)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unpicklable() -> Any:
    return threading.Lock()


class SampleError(Exception):
    pass


class DemandingError(Exception):
    """It can be pickled, and not read again."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class LockedError(Exception):
    """It cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def fail(with_: str) -> None:
    raise {
        "sample": SampleError("a", 1),
        "demanding": DemandingError(1, 2),
        "locked": LockedError(),
        "interrupt": KeyboardInterrupt(),
        "stop": StopIteration(3),
    }[with_]


class Unreadable:
    """Its pickle cannot be read in any process."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return int, ("no number",)


def unreadable() -> Unreadable:
    return Unreadable()


def say(lines: int) -> None:
    for number in range(lines):
        print(f"line {number}")
    print("and an error", file=sys.stderr)


def start_another() -> int:
    """A process of its own."""
    return subprocess.Popen(["sleep", "1000"]).pid


def start_another_and_spin(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(start_another()))
    spin()


def fork(how: str) -> str:
    """What the process that is forked does, it has done before its parent returns."""
    forked = os.fork()
    if forked:
        os.waitid(os.P_PID, forked, os.WEXITED)
        return "parent"
    if how == "exits":
        sys.exit(0)
    if how == "fails":
        raise SampleError("in the forked process")
    return "forked"


async def never() -> None:
    pass


def outer() -> Callable[[], int]:
    def inner() -> int:
        return 1

    return inner


class Owner:
    def method(self) -> int:
        return 1

    @staticmethod
    def static() -> int:
        return 1
