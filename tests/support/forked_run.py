"""Tests in several processes that share one collection: `pytest --processes 4`.

pytest collects once, then the processes are forked: none collects and imports again what is there (with pytest-xdist
each of them collects all tests for itself). All tests of a file run in one process, because they share what they have
made; a process that is done with a file takes the next one, in the order of the collection. Reports go to the first
process, which counts and prints them. A process that ends within a test fails that test, and the run.

With `--second-attempts N`, up to N tests that failed are run once more when all others have ended, alone, in a fresh
process. What passes then has passed; what failed at first is shown at the end of the run. If more than N tests failed,
none is run again.
"""

from __future__ import annotations

import gc
import pickle
import random
import warnings
from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import pytest

_FORK = get_context("fork")
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)
_PATIENCE_S = 60.0
"""How long a process may take to end that is to run no more tests."""

_number: int | None = None
"""Of this process, if it was forked to run tests."""


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run of the tests, one for all of its processes."""
    folder = factory.getbasetemp()
    return folder if _number is None else folder.parent


def files_of(paths: Sequence[str]) -> list[list[int]]:
    """The places of each file's tests, the files in the order in which they come first."""
    files: dict[str, list[int]] = defaultdict(list)
    for place, path in enumerate(paths):
        files[path].append(place)
    return list(files.values())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, metavar="N", help="run the tests in N processes")
    parser.addoption(
        "--second-attempts",
        type=int,
        default=0,
        metavar="N",
        help="with --processes: run up to N tests that failed once more, alone",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What is made here stays until the end. Collections of garbage, which some tests ask for again and again, do not
    # go through it each time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    processes: int = session.config.getoption("--processes")
    if not processes or session.testsfailed or session.config.option.collectonly:
        return None  # to pytest's own
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.showfspath = False  # tests of several files come in turn
    run = _Run(session)
    session.config.pluginmanager.register(run)
    run.go_through(processes)
    return True


class _Told(NamedTuple):
    """What a process tells of a test that has ended."""

    place: int
    reports: list[dict[str, Any]]
    warned: list[dict[str, Any]]


class _Worker:
    """A process that runs tests, as the first one sees it. `left`: the places of those it has to run, in order."""

    def __init__(self, process: ForkProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.left: deque[int] = deque()


class _Run:
    """The first process: deals out the files, and hands on what it is told."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        self._files = deque(files_of([item.nodeid.partition("::")[0] for item in session.items]))
        self._workers: list[_Worker] = []
        self._attempts: int = session.config.getoption("--second-attempts")
        self._failed: dict[int, list[pytest.TestReport]] = {}
        """By their places: what first attempts came to that may be followed by a second one."""
        self._first: dict[int, list[pytest.TestReport]] = {}
        """The same, once second attempts have begun."""
        self._passed_then: list[tuple[int, list[pytest.TestReport]]] = []

    def go_through(self, processes: int) -> None:
        _factory(self._config).getbasetemp()  # the folder that those of all processes are in
        try:
            self._deal_out(range(min(processes, len(self._files))))
            if 0 < len(self._failed) <= self._attempts:
                self._try_again(processes)
        finally:
            self._end()
            for reports in self._failed.values():
                self._log(reports)

    def _deal_out(self, numbers: range) -> None:
        working = [self._start(number) for number in numbers]
        while working:
            ready = wait([worker.connection for worker in working])
            for worker in [each for each in working if each.connection in ready]:
                if not self._hear(worker):
                    working.remove(worker)
            self._end_if_told()

    def _try_again(self, number: int) -> None:
        self._first, self._failed = self._failed, {}
        paths = [self._session.items[place].nodeid.partition("::")[0] for place in self._first]
        places = list(self._first)
        self._files.extend([places[each] for each in file] for file in files_of(paths))
        self._deal_out(range(number, number + 1))

    def _take(self, place: int, reports: list[pytest.TestReport]) -> None:
        failed = any(report.failed for report in reports)
        if failed and self._attempts and not self._first:
            self._failed[place] = reports
            return
        if place in self._first and not failed:
            self._passed_then.append((place, self._first[place]))
        self._log(reports)

    def _log(self, reports: list[pytest.TestReport]) -> None:
        for report in reports:
            self._config.hook.pytest_runtest_logreport(report=report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._passed_then:
            return
        terminalreporter.section("failed at first, passed at the second attempt, alone")
        for place, reports in self._passed_then:
            terminalreporter.write_line(f"AT SECOND ATTEMPT {self._session.items[place].nodeid}", bold=True)
            for report in reports:
                if report.failed:
                    terminalreporter.write_line(report.longreprtext)

    def _start(self, number: int) -> _Worker:
        ours, theirs = _FORK.Pipe()
        not_theirs = [ours, *(worker.connection for worker in self._workers)]
        process = _FORK.Process(target=_work, args=(self._session, theirs, number, not_theirs))
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _hear(self, worker: _Worker) -> bool:
        """Take one message; returns whether there may be more."""
        try:
            told: _Told | None = worker.connection.recv()
            if told is None:
                file = self._files.popleft() if self._files else []
                worker.left += file
                worker.connection.send(file)
                return True
        except _GONE:
            if worker.left:
                self._lost(worker)
            return False
        of_a_test = bool(worker.left)  # else: what belongs to the session has ended
        if of_a_test:
            assert told.place == worker.left.popleft()
        for each in told.warned:
            self._config.hook.pytest_warning_recorded.call_historic(kwargs=each)
        loaded = self._config.hook.pytest_report_from_serializable
        reports = [loaded(config=self._config, data=data) for data in told.reports]
        if of_a_test:
            self._take(told.place, reports)
        else:
            self._log(reports)
        return True

    def _lost(self, worker: _Worker) -> None:
        worker.process.join(_PATIENCE_S)
        item = self._session.items[worker.left[0]]
        why = f"the process that ran this test has ended, with status {worker.process.exitcode}"
        keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
        report = pytest.TestReport(item.nodeid, item.location, keywords, "failed", why, "call")
        self._config.hook.pytest_runtest_logreport(report=report)
        self._session.shouldfail = f"{item.nodeid}: {why}"

    def _end_if_told(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _end(self) -> None:
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(_PATIENCE_S)
            if worker.process.is_alive():
                worker.process.kill()


# What follows is in the processes that run tests.


class _Noted:
    """A plugin that keeps what the first process is told of a test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: list[dict[str, Any]] = []
        self._warned: list[dict[str, Any]] = []

    def taken(self, place: int) -> _Told:
        told = _Told(place, self._reports, self._warned)
        self._reports, self._warned = [], []
        return told

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(
            self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        )

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        message = warning_message.message
        if not isinstance(message, Warning) or not _travels(message):
            message = UserWarning(f"{warning_message.category.__name__}: {message}")
        kept = warnings.WarningMessage(
            message, type(message), warning_message.filename, warning_message.lineno
        )
        self._warned.append({"warning_message": kept, "when": when, "nodeid": nodeid, "location": location})


def _travels(message: Warning) -> bool:
    try:
        pickle.loads(pickle.dumps(message))
    except Exception:
        return False
    return True


def _work(
    session: pytest.Session, connection: Connection, number: int, not_ours: Sequence[Connection]
) -> None:
    for each in not_ours:
        each.close()
    _become(session.config, number)
    noted = _Noted(session.config)
    session.config.pluginmanager.register(noted)
    noted.taken(0)  # warnings of the collection, which a new plugin is told again
    place, run = 0, _factory(session.config).getbasetemp()
    try:
        for count, file in enumerate(_files(connection)):
            _use_folder(session.config, run / f"{number}-{count}")
            for place, after in zip(file, [*file[1:], None], strict=True):
                item = session.items[place]
                # Behind the last test of a file only what belongs to the session is kept.
                kept: Any = session if after is None else session.items[after]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=kept)
                connection.send(noted.taken(place))
    except (KeyboardInterrupt, *_GONE):
        pass  # the first process says why
    finally:
        _end_what_is_shared(session, session.items[place])
        with suppress(*_GONE):
            connection.send(noted.taken(place))


def _files(connection: Connection) -> Iterator[list[int]]:
    """The places of the tests to run, file by file. One is not taken before the one before it is done: another process
    may be free sooner."""
    while True:
        connection.send(None)
        file: list[int] = connection.recv()
        if not file:
            return
        yield file


def _end_what_is_shared(session: pytest.Session, item: pytest.Item) -> None:
    """What belongs to the session; said of the test that was the last one."""
    call = pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), when="teardown")
    report = session.config.hook.pytest_runtest_makereport(item=item, call=call)
    session.config.hook.pytest_runtest_logreport(report=report)


def _become(config: pytest.Config, number: int) -> None:
    """Share nothing with the other processes that they would change."""
    global _number
    _number = number
    random.seed()
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()  # into files whose positions all processes share
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.unregister(reporter)
        config.pluginmanager.register(SimpleNamespace(_tw=reporter._tw), "terminalreporter")


def _use_folder(config: pytest.Config, folder: Path) -> None:
    """Temporary folders are made in this one from now on. For each new one pytest reads the names of all that are
    there: of the tests of a file, not of the thousands that a process has run."""
    folder.mkdir(mode=0o700)
    _factory(config)._basetemp = folder


def _factory(config: pytest.Config) -> pytest.TempPathFactory:
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory
