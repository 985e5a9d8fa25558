"""Where a mutant is run: a copy of the package outside the work tree, one process of pytest at a time.

The process is a fork of this one, which has loaded what all tests need, but nothing of the package. It gets a limit of
time, of memory and of the size of files, because a mutant may loop, allocate or write without end. It is a session of
its own, killed as a whole; whatever it leaves lies in the copy's folder.
"""

import os
import re
import resource
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pytest

from mutants.targets import PACKAGE, ROOT

# Loading every plugin that is installed would take as long as the tests.
_PLUGINS: Final = (
    "pytest_trio.plugin", "pytest_timeout", "_hypothesis_pytestplugin", "leafcuttr_sdk.testing.pytest_plugin",
)  # fmt: skip
_LOADED_ONCE: Final = (
    "hypothesis",
    "hypothesis.strategies",
    "hypothesis.stateful",
    "pytest_trio",
    "trio.testing",
)
# Seconds for one test: a mutant that leaves a task waiting for ever needs no more.
_FOR_A_TEST: Final = 30
_OPTIONS: Final = (
    f"--timeout={_FOR_A_TEST}",
    "-x",
    "-q",
    "--no-header",
    "--tb=no",
    "-p",
    "no:cacheprovider",
    "--hypothesis-profile=mutants",
)
# Tests that start processes or take seconds: for every mutant that survives, they would run to their end.
_SLOW: Final = ("any_crash_point", "held_by_many_partitions", "killed_at_any_moment")
_NICE: Final = 5
_MEMORY: Final = 4 << 30
_FILE_SIZE: Final = 2 << 30
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Limits(NamedTuple):
    """Seconds that a run may take, and seconds of work in them: a loop is known by the latter, however busy the machine
    is; a wait that never ends by the former."""

    elapsed: float
    work: int


class Run(NamedTuple):
    """What became of one run of tests. `outcome` is passed, failed, looped or timeout."""

    outcome: str
    seconds: float
    work: float
    failed_test: str
    output: str


class UnusableTestsError(Exception):
    """The tests say nothing about the module."""


class Workspace:
    """The copy of the package, with at most one module of it mutated."""

    def __init__(self, folder: Path) -> None:
        self._copy = folder / "copy"
        self._scratch = folder / "scratch"
        self._output = folder / "output.txt"
        self._mtime = time.time_ns()
        shutil.copytree(PACKAGE, self._copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in _LOADED_ONCE:
            import_module(name)

    def write(self, module: str, source: str) -> None:
        """Put a module's source into the copy. Python takes compiled code for current by the second and the size of its
        source, so each source is given a second of its own."""
        path = self._copy / PACKAGE.name / f"{module}.py"
        path.write_text(source)
        self._mtime += 1_000_000_000
        os.utime(path, ns=(self._mtime, self._mtime))

    def run(self, tests: list[str], limits: Limits) -> Run:
        """Run these tests on the copy until the first that fails."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir()
        sys.stdout.flush()
        began = time.monotonic()
        process = os.fork()
        if not process:
            self._be_the_tests(tests, limits.work)
        ended = False
        try:
            ended = _has_ended(process, limits.elapsed)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # it may not have its own session yet
            _, status, used = os.wait4(process, 0)
        output = self._output.read_text(errors="replace")
        code = os.waitstatus_to_exitcode(status)
        if not ended:
            outcome = "timeout"
        elif code == -signal.SIGXCPU:
            outcome = "looped"
        else:
            outcome = "failed" if code else "passed"
        failed = _FAILED.search(output)
        name = failed[1].removeprefix("tests/") if failed else ""
        return Run(outcome, time.monotonic() - began, used.ru_utime + used.ru_stime, name, output)

    def _be_the_tests(self, tests: list[str], work: int) -> NoReturn:
        """In the child: be a process of pytest, and end."""
        code = 3
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _redirect(os.devnull, os.O_RDONLY, 0)
            _redirect(str(self._output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1, 2)
            _limit_resources(work)
            os.environ.update(
                PYTHONPATH=str(self._copy),
                PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
                HYPOTHESIS_STORAGE_DIRECTORY=str(self._scratch / "hypothesis"),
                TMPDIR=str(self._scratch),
            )
            os.chdir(ROOT)
            sys.path.insert(0, str(self._copy))
            plugins = [word for name in _PLUGINS for word in ("-p", name)]
            leave_out = " and ".join(f"not {name}" for name in _SLOW)
            base = f"--basetemp={self._scratch / 'tests'}"
            code = int(pytest.main([*plugins, *_OPTIONS, base, "-k", leave_out, *tests]))
            sys.stdout.flush()
        finally:
            os._exit(code)


def _redirect(path: str, flags: int, *descriptors: int) -> None:
    opened = os.open(path, flags, 0o644)
    for descriptor in descriptors:
        os.dup2(opened, descriptor)
    os.close(opened)


def _limit_resources(work: int) -> None:
    os.nice(_NICE)
    for limit, value in (
        (resource.RLIMIT_CPU, work),
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _FILE_SIZE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))


def _has_ended(process: int, limit: float) -> bool:
    """Wait for a child, at most so many seconds."""
    handle = os.pidfd_open(process)
    try:
        return bool(select.select([handle], [], [], limit)[0])
    finally:
        os.close(handle)
