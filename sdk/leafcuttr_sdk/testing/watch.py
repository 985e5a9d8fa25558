"""Sees what a call does beside returning: whether it waits, what it leaves open.

Waiting is seen in two ways. The interpreter itself tells of connecting, of starting programs and, from 3.13 on, of
sleeping (PEP 578). Whatever else waits gives up the processor, which Linux counts for each thread; because now and then
something else makes a thread do so, only a call that does it three times of three is taken to wait.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 0.1
"""What one call may take: the broker names what keeps its loop for longer."""
_TRIES: Final = 3
_EVENTS: Final = {
    "time.sleep": "sleeps",
    "socket.connect": "connects to the network",
    "socket.getaddrinfo": "looks up a host name",
    "socket.gethostbyname": "looks up a host name",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.posix_spawn": "starts a program",
}

_seen_by: dict[int, set[str]] = {}
"""By thread: what has been seen while it is watched. Empty nearly always, which is what makes the hook cheap."""
_installed = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen_by and event in _EVENTS:
        seen = _seen_by.get(threading.get_ident())
        if seen is not None:
            seen.add(_EVENTS[event])


def _install() -> None:
    """Once, at the first check: an audit hook cannot be taken away again."""
    global _installed  # noqa: PLW0603
    if not _installed:
        sys.addaudithook(_hook)
        _installed = True


class Call(NamedTuple, Generic[T]):
    """What a call returned or raised, and what it did."""

    result: T | None
    error: BaseException | None
    did: frozenset[str]
    took_s: float
    worked_s: float
    """The processor's time of it."""
    waits: int
    """How often it gave up the processor by itself."""


def watched(function: Callable[[], T]) -> Call[T]:
    """Call it in this thread."""
    _install()
    me = threading.get_ident()
    seen = _seen_by[me] = set()
    result: T | None = None
    error: BaseException | None = None
    waits, cpu, wall = times_waited(), time.thread_time(), time.perf_counter()
    try:
        result = function()
    except BaseException as caught:
        if of_the_person(caught):
            raise
        error = caught
    finally:
        took, worked, waited = time.perf_counter() - wall, time.thread_time() - cpu, times_waited() - waits
        del _seen_by[me]
    return Call(result, error, frozenset(seen), took, worked, waited)


def slowness(function: Callable[[], object], first: Call[Any]) -> str | None:
    """Why a call takes too long, if it does each time: `first` is how it went, and it is tried again."""
    calls = [first]
    while calls[-1].took_s > PATIENCE_S or calls[-1].waits:
        if len(calls) == _TRIES:
            worked = min(call.worked_s for call in calls)
            waited = min(call.took_s - call.worked_s for call in calls)
            if worked > PATIENCE_S:
                return f"computes for {worked * 1000:.0f} ms"
            if waited > PATIENCE_S or min(call.waits for call in calls):
                return f"waits for {waited * 1000:.1f} ms"
            return None
        calls.append(watched(function))
    return None


def times_waited() -> int:
    """How often this thread has given up the processor by itself: 0 where the system does not tell."""
    if not hasattr(resource, "RUSAGE_THREAD"):
        return 0
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def of_the_person(error: BaseException) -> bool:
    """Whether it is Ctrl-C at the terminal: only the main thread gets that. In any other the plugin has raised it."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def in_thread(function: Callable[[], T]) -> T:
    """Call it in a thread of its own, and raise what it raises."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="leafcuttr-check", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def open_descriptors() -> int | None:
    """How many this process has; None where the system does not say."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))  # noqa: PTH208 - names only
        except OSError:
            continue
    return None


def threads() -> set[int]:
    """Those that run, but for the broker's own, which come and go as it needs them."""
    return {thread.ident or 0 for thread in threading.enumerate() if not thread.name.startswith("leafcuttr-")}


def child_processes() -> set[int]:
    """The ids of those that this process has started, ended ones that it has not waited for among them; empty where
    the system does not say."""
    found: set[int] = set()
    me = str(os.getpid())
    try:
        ids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only
    except OSError:
        return found
    for pid in ids:
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        # proc(5): pid (name) state parent ...; a name may have spaces and brackets.
        if status.rpartition(")")[2].split()[1] == me:
            found.add(pid)
    return found
