"""What each folder of tests took: a table at the end of a run that went through several folders.

The seconds are those of the tests, with the making of what they share; side by side they are more than the clock's.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest


@dataclass
class _Folder:
    seconds: float = 0.0
    tests: int = 0
    longest: tuple[float, str] = (0.0, "")


class FolderTimes:
    """A plugin of pytest, for the process that reports: with pytest-xdist that is the one that starts the workers."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._folders: dict[str, _Folder] = defaultdict(_Folder)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, name = report.nodeid.partition("::")
        parts = PurePosixPath(path).parts
        folder = self._folders["/".join(parts[:-1][:2])]
        folder.seconds += report.duration
        if report.when == "call":
            folder.tests += 1
            folder.longest = max(folder.longest, (report.duration, f"{parts[-1]}::{name}"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._folders) < 2:
            return
        terminalreporter.section("what each folder took")
        for name, folder in sorted(self._folders.items(), key=lambda each: -each[1].seconds):
            seconds, test = folder.longest
            terminalreporter.write_line(
                f"{folder.seconds:7.1f} s {folder.tests:5} tests  {name:18} longest {seconds:5.1f} s {test[:60]}"
            )
        total = sum(folder.seconds for folder in self._folders.values())
        passed = time.monotonic() - self._began
        terminalreporter.write_line(f"{total:7.1f} s of tests in {passed:.1f} s")
