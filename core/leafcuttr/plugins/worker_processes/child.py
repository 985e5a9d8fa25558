"""The program of a worker process: it imports functions and calls them, as the broker tells it to.

    python -P child.py CONTROL LIFELINE

The two are descriptors: a socket with the frames below, and the reading end of a pipe into which nobody writes. The
broker starts this file by its path, so that a process has nothing of the broker: the standard library, and what the
modules of the functions import.

Frames, each a header and a body of the length that it names:

    to the process    LOAD    import a module and keep its function under a number; the body is a pickled `LOADING`
                      CALL    call that function; the body has the pickled arguments
    from the process  LOADED, NOT_LOADED, RETURNED, RAISED, RAISED_TEXT, UNSENDABLE, NO_MEMORY: see below

How it ends:

- The broker kills it: over its deadline, or because the caller was cancelled.
- The broker ends, however it does, SIGKILL too: then the kernel closes the other end of the pipe, and sends the signal
  that is set for it here, SIGKILL, to the group of the process. No thread of this process has to run for that, so it
  ends also where a function holds the interpreter. (PR_SET_PDEATHSIG is about the thread that has started a process,
  and the threads of the broker that start processes come and go.) Only a process that the broker's program has forked
  without exec has that end too, and keeps it open.
- `memory_bytes` of a call are over: see `_limited`.

A process that a function has forked, and that returns from the function or raises, ends there: the answer to a call,
and the next call, are of the process that the broker has started.

What functions print goes to the standard streams, which the broker reads, and never among the frames.
"""

import contextlib
import fcntl
import importlib
import importlib.util
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NoReturn

LOAD: Final = 1
CALL: Final = 2
REQUEST: Final = struct.Struct(">BIQQ")
"""Kind, number of the function, `memory_bytes`, length of the body."""

LOADED: Final = 1
NOT_LOADED: Final = 2  # a text
RETURNED: Final = 3  # a pickled result
RAISED: Final = 4  # a pickled (exception, traceback as text)
RAISED_TEXT: Final = 5  # a text
UNSENDABLE: Final = 6  # a text
NO_MEMORY: Final = 7  # a text
ANSWER: Final = struct.Struct(">B?Q")
"""Kind, whether the process takes no more calls, length of the body."""

Loading = tuple[str, str, list[str], tuple[str, str, list[str] | None] | None]
"""Module, name of the function, `sys.path` of the broker; and the name, file and folders of the top-level package, for
one that is not found by its name: a plugin that is a file of `lc.plugins.path`."""

_PAGE: Final = resource.getpagesize()
_MOST: Final = 1 << 62
_LONGEST: Final = 16 * 1024  # characters of a traceback or a text


class _Worker:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._incoming: BinaryIO = control.makefile("rb")
        self._functions: dict[int, Callable[..., Any]] = {}
        self._pid = os.getpid()
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._kept = 0  # bytes that calls have left behind
        self._limit = resource.getrlimit(resource.RLIMIT_AS)

    def serve(self) -> NoReturn:
        while header := self._incoming.read(REQUEST.size):
            kind, number, memory_bytes, length = REQUEST.unpack(header)
            if kind == LOAD:
                self._load(number, self._incoming.read(length))
            else:
                self._call(self._functions[number], memory_bytes, length)
        os._exit(0)  # the broker has closed the socket; a thread that a function has left would be waited for

    def _load(self, number: int, body: bytes) -> None:
        loading: Loading = pickle.loads(body)
        module, name, sys.path[:], top = loading
        try:
            self._functions[number] = getattr(_imported(module, top), name)
        except BaseException as error:
            self._answer(NOT_LOADED, _text(error))
        else:
            self._answer(LOADED)

    def _call(self, function: Callable[..., Any], memory_bytes: int, length: int) -> None:
        before = self._resident
        kind, body = NO_MEMORY, b""
        try:
            with self._limited(memory_bytes):
                kind, body = _outcome(function, self._incoming.read(length))
        except MemoryError as error:
            self._answer(NO_MEMORY, _text(error), last=True)
            os._exit(0)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        self._kept = max(self._kept + self._resident - before, 0)
        self._answer(kind, body, last=self._kept > memory_bytes)

    @contextlib.contextmanager
    def _limited(self, memory_bytes: int) -> Iterator[None]:
        """The address space may grow by so much: an allocation beyond it fails, at once and before the machine is short
        of memory, and Python raises MemoryError. A watch over the resident size would come late."""
        soft, hard = self._limit
        most = min(self._size + memory_bytes, *(each for each in (soft, hard, _MOST) if each >= 0))
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, self._limit)

    @property
    def _size(self) -> int:
        """Of the address space, in bytes."""
        return int(os.pread(self._statm, 64, 0).split(b" ", 1)[0]) * _PAGE

    @property
    def _resident(self) -> int:
        return int(os.pread(self._statm, 64, 0).split(b" ", 2)[1]) * _PAGE

    def _answer(self, kind: int, body: bytes = b"", *, last: bool = False) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # forked by the function
        header = ANSWER.pack(kind, last, len(body))
        if len(body) < 1 << 16:
            self._control.sendall(header + body)
        else:
            self._control.sendall(header)
            self._control.sendall(body)


def _outcome(function: Callable[..., Any], body: bytes) -> tuple[int, bytes]:
    """What has come of a call: the kind of an answer, and its body. Raises MemoryError."""
    try:
        arguments = pickle.loads(body)
    except MemoryError:
        raise
    except BaseException as error:
        return UNSENDABLE, b"an argument cannot be read in a worker process: " + _text(error)
    del body
    try:
        result = function(*arguments)
    except MemoryError:
        raise
    except Exception as error:
        return _raised(error)
    except BaseException as error:
        return RAISED_TEXT, _text(error)
    try:
        return RETURNED, pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise
    except BaseException as error:
        return UNSENDABLE, b"its result cannot be pickled: " + _text(error)


def _raised(error: Exception) -> tuple[int, bytes]:
    frames = traceback.TracebackException.from_exception(error)
    with contextlib.suppress(IndexError):
        del frames.stack[0]  # the call, above
    where = "".join(frames.format())[-_LONGEST:]
    try:
        # Many a class of exceptions can be written, and not read again: its __init__ takes something else.
        body = pickle.dumps((error, where), pickle.HIGHEST_PROTOCOL)
        if type(pickle.loads(body)[0]) is type(error):
            return RAISED, body
    except MemoryError:
        raise
    except BaseException:
        pass  # its text is sent instead
    return RAISED_TEXT, _text(error)


def _text(error: BaseException) -> bytes:
    try:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    except BaseException:
        text = type(error).__name__
    return " ".join(text[:_LONGEST].split()).encode(errors="replace")


def _imported(module: str, top: tuple[str, str, list[str] | None] | None) -> Any:
    if top is not None:
        name, file, folders = top
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
            if spec is not None and spec.loader is not None:
                loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
                try:
                    spec.loader.exec_module(loaded)
                except BaseException:
                    del sys.modules[name]
                    raise
    return importlib.import_module(module)


def _end_with(lifeline: int) -> None:
    """Have the kernel end this process and its group when the other end of the pipe is closed."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)


def main() -> NoReturn:
    control, lifeline = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (control, lifeline):
        os.set_inheritable(descriptor, False)
    # If the broker has ended before this, the socket says so.
    _end_with(lifeline)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    _Worker(socket.socket(fileno=control)).serve()


if __name__ == "__main__":
    main()
