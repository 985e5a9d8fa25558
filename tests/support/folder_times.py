"""What each folder of tests took: a table at the end of a run that went through several folders.

The seconds are those of the processor, which a busy machine changes little: of the process that runs the tests, with
the making of what they share, and of the processes that they have started and waited for. The longest test is by the
clock.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest


def processor_s() -> float:
    """Of this process, and of its children that have ended."""
    return sum(os.times()[:4])


class ProcessorTimes:
    """A plugin of pytest, for each process that runs tests: gives each report its seconds of the processor."""

    def __init__(self) -> None:
        self._last = 0.0

    def pytest_runtest_logstart(self) -> None:
        self._last = processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        before, self._last = self._last, processor_s()
        report.__dict__["processor_s"] = self._last - before  # `forked_run` sends all fields of a report
        return report


@dataclass
class _Folder:
    seconds: float = 0.0
    tests: int = 0
    longest: tuple[float, str] = (0.0, "")


class FolderTimes:
    """A plugin of pytest, for the process that prints what comes of the tests."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._folders: dict[str, _Folder] = defaultdict(_Folder)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, name = report.nodeid.partition("::")
        parts = PurePosixPath(path).parts
        folder = self._folders["/".join(parts[:-1][:2])]
        folder.seconds += getattr(report, "processor_s", 0.0)
        if report.when == "call":
            folder.tests += 1
            folder.longest = max(folder.longest, (report.duration, f"{parts[-1]}::{name}"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._folders) < 2:
            return
        terminalreporter.section("what each folder took of the processor")
        for name, folder in sorted(self._folders.items(), key=lambda each: -each[1].seconds):
            seconds, test = folder.longest
            terminalreporter.write_line(
                f"{folder.seconds:7.1f} s {folder.tests:5} tests  {name:18} longest {seconds:5.1f} s {test[:60]}"
            )
        total = sum(folder.seconds for folder in self._folders.values())
        passed = time.monotonic() - self._began
        terminalreporter.write_line(f"{total:7.1f} s of the processor in {passed:.1f} s")
