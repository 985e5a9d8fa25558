"""`python -m leafcuttr …` in a process of its own, a child of this one, that has not to import the broker first.

Imports are nine tenths of what the start of a broker takes of the processor. So a process that has imported what a
start uses waits for words, and forks: the child gets the words, its environment, its folder and its three streams, is
handed over to the test's process, and runs `leafcuttr.__main__` as the interpreter does. From then on it is a process
as any other: signals, exit status, files, memory, a kill.

What is about the start itself takes `fresh=True`, a new interpreter: what is imported and when, how the interpreter
was started. A start is so in any case when its environment would change the interpreter itself.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER: who becomes the parent of processes whose parent has ended
_PYTHONPATH: Final = "PYTHONPATH"
_HARMLESS: Final = {_PYTHONPATH, "PYTHONDONTWRITEBYTECODE"}
_IMPORTED_AT_START: Final = ("leafcuttr", "leafcuttr_sdk", "sitecustomize", "usercustomize", "trio", "click")
_USED_BY_A_START: Final = (
    "cli.root",
    "cli.serve.command",
    "config.load",
    "crashpoints",
    "plugins.catalogue",
    "server.limits",
    "server.logs",
    "server.ready",
    "server.run",
    "server.signals",
    "state.broker",
)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def start_leafcuttr(
    words: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: int | None = None,
    stdout: int,
    stderr: int,
    fresh: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `leafcuttr` with these words. The streams are descriptors; without `stdin` it is empty."""
    command = [sys.executable, "-m", "leafcuttr", *words]
    if fresh or not _is_forkable(environ):
        given = subprocess.DEVNULL if stdin is None else stdin
        return subprocess.Popen(
            command, stdin=given, stdout=stdout, stderr=stderr, cwd=cwd, env=dict(environ)
        )
    if stdin is not None:
        return _forker().start(command, cwd, environ, (stdin, stdout, stderr))
    with Path(os.devnull).open("rb") as nothing:
        return _forker().start(command, cwd, environ, (nothing.fileno(), stdout, stderr))


def run_leafcuttr(
    words: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    seconds: float = 120.0,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `leafcuttr` with these words to its end, in this environment or that of this process. Raises
    subprocess.TimeoutExpired after so many `seconds`, when it has been killed."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process = start_leafcuttr(
            words,
            cwd=cwd or Path.cwd(),
            environ=os.environ if environ is None else environ,
            stdin=given.fileno(),
            stdout=out.fileno(),
            stderr=err.fileno(),
            fresh=fresh,
        )
        try:
            status = process.wait(seconds)
        except BaseException:
            process.kill()
            process.wait()
            raise
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return subprocess.CompletedProcess(process.args, status, *said)


def _is_forkable(environ: Mapping[str, str]) -> bool:
    """Whether the interpreter would begin as that of this process did, but for another path to plugins."""
    changed = {name for name in {*environ, *os.environ} if environ.get(name) != os.environ.get(name)}
    if any(name.startswith(("PYTHON", "LD_", "OPENSSL_", "SSL_")) for name in changed - _HARMLESS):
        return False
    folders = _paths(environ) if _PYTHONPATH in changed else []
    names = [f"{name}{end}" for name in _IMPORTED_AT_START for end in ("", ".py")]
    return not any(Path(folder, name).exists() for folder in folders for name in names)


def _paths(environ: Mapping[str, str]) -> list[str]:
    return [path for path in environ.get(_PYTHONPATH, "").split(os.pathsep) if path]


class _Child(subprocess.Popen[bytes]):
    """A child of this process that another one has started for it."""

    def __init__(self, command: Sequence[str], pid: int) -> None:
        given: dict[str, Any] = {
            "args": list(command),
            "pid": pid,
            "returncode": None,
            "stdin": None,
            "stdout": None,
            "stderr": None,
            "_child_created": True,
            "_waitpid_lock": threading.Lock(),
            "_communication_started": False,
            "_input": None,
            "_sigint_wait_secs": 0.25,
            "_closed_child_pipe_fds": True,
        }
        self.__dict__.update(given)


class _Forker:
    """The process that forks, seen from the one that runs tests."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join([str(Path(__file__).parents[1]), *_paths(os.environ)])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.forked_start", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, _PYTHONPATH: paths},
                pass_fds=[theirs.fileno()],
            )

    def start(
        self, command: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: tuple[int, int, int]
    ) -> subprocess.Popen[bytes]:
        asked = json.dumps([list(command[3:]), str(cwd.absolute()), dict(environ)]).encode()
        with self._lock:
            _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)
            try:
                length = len(asked).to_bytes(8, "big")
                socket.send_fds(self._socket, [length], streams)
                for place in range(0, len(asked), _PART):
                    self._socket.send(asked[place : place + _PART])
                answer = self._socket.recv(64)
            finally:
                _LIBC.prctl(_SUBREAPER, 0, 0, 0, 0)
        if not answer:
            raise RuntimeError(f"the process that forks has ended with status {self._process.wait(60)}")
        return _Child(command, int(answer))

    def end(self) -> None:
        self._socket.close()
        self._process.wait(60)


_PART: Final = 1 << 15
_found: list[_Forker] = []
_finding = threading.Lock()


def _forker() -> _Forker:
    """Of this process: processes that run tests are forked themselves."""
    with _finding:
        if not _found or _found[0].owner != os.getpid():
            _found[:] = [_Forker()]
            atexit.register(_end, _found[0])
        return _found[0]


def _end(forker: _Forker) -> None:
    if forker.owner == os.getpid():
        forker.end()


# What follows is in the process that forks, and in its children.


def _fork_until_told(connection: socket.socket) -> None:
    """Returns in a child only, once it is what was asked for; in the process that forks at the end never."""
    while True:
        length, streams, _, _ = socket.recv_fds(connection, 8, 3)
        if not length:
            sys.exit(0)
        asked = b""
        while len(asked) < int.from_bytes(length, "big"):
            asked += connection.recv(_PART)
        readable, writable = os.pipe()
        between = os.fork()
        if not between:
            # Whose parent has ended goes to the next one above that takes such processes: that is the test's.
            child = os.fork()
            if child:
                os.write(writable, str(child).encode())
                os._exit(0)
            os.close(readable)
            os.close(writable)
            connection.close()
            _become(json.loads(asked), streams)
            return
        os.close(writable)
        os.waitpid(between, 0)
        pid = os.read(readable, 64)
        os.close(readable)
        for stream in streams:
            os.close(stream)
        connection.send(pid)


def _become(asked: list[Any], streams: Sequence[int]) -> None:
    words, cwd, environ = asked
    for stream, place in zip(streams, (0, 1, 2), strict=True):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(cwd)
    # `-m` puts the folder that it is started in first, then come those of the environment.
    own = _paths(os.environ)
    sys.path[:] = [cwd, *_paths(environ), *(path for path in sys.path[1:] if path not in own)]
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.dont_write_bytecode = bool(environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = ["leafcuttr", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _main() -> None:
    import importlib
    import runpy

    for name in _USED_BY_A_START:
        importlib.import_module(f"leafcuttr.{name}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests are told, and end this process
    _fork_until_told(socket.socket(fileno=int(sys.argv[1])))
    importlib.invalidate_caches()
    importlib.reload(sys.modules["leafcuttr.crashpoints"])  # which reads the environment
    runpy.run_module("leafcuttr", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
