"""A pytest plugin: how each test ended that was run with one setting kept at its default (`support.setting_defaults`).

A marked test has to fail, and by an assertion of its own. That is so when a value was dropped while it ran and the
exception of its call, not of its fixtures, is one of these, raised in a file of the tests and not in the product:

- an AssertionError (`assert`), raised by the test's module or by what it calls in `support`;
- pytest's `Failed`, of `pytest.raises` that saw nothing raised or of `pytest.fail`, but not of a timeout;
- the TimeoutError of `support.waiting`, `until` or `within`: what the test waits for, by name, did not come in twenty
  seconds, but does when nothing is dropped (the control). These are counted apart.

Of a group of exceptions each one has to be such. What else it may be has a name of its own in `Verdict`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from support import setting_defaults, waiting

TESTS = Path(__file__).parents[1]
LONGEST_WAIT_S = 20.0
"""So long `until` waits here: what it waits for does not come."""


class Verdict(Enum):
    ASSERTS = "fails by an assertion"
    AWAITS = "waits in vain"
    PASSES = "PASSES"
    ELSEWHERE = "FAILS ELSEWHERE"
    FIXTURE = "FAILS IN A FIXTURE"
    NEVER_GIVEN = "WAS NOT GIVEN A VALUE"
    SKIPPED = "IS SKIPPED"
    TOO_SLOW = "WAITS TOO LONG EITHER WAY"

    @property
    def holds(self) -> bool:
        return self in (Verdict.ASSERTS, Verdict.AWAITS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--verdicts", type=Path, metavar="FILE", help="where to write how each test ended")
    parser.addoption("--dropped", type=Path, metavar="FILE", help="where each dropped value is noted")
    parser.addoption("--control", action="store_true", help="drop nothing, but wait no longer either")


def pytest_configure(config: pytest.Config) -> None:
    if (setting_defaults.kept_at_default() is None) is not config.getoption("--control"):
        raise pytest.UsageError("no setting is kept at its default: run tests/support/run_setting_marks.py")
    waiting.LONGEST_S = LONGEST_WAIT_S
    options = (config.getoption(f"--{name}") for name in ("verdicts", "dropped", "control"))
    config.pluginmanager.register(_Judge(*options))


class _Judge:
    def __init__(self, verdicts: Path, dropped: Path, control: bool) -> None:
        self._verdicts, self._dropped, self._control = verdicts, dropped, control
        self._rows: list[dict[str, Any]] = []
        self._before = 0  # bytes of the notes when the test that runs now began

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._before = self._dropped.stat().st_size if self._dropped.exists() else 0

    @pytest.fixture(autouse=True)
    def in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The default of log.dir is a folder where the process stands."""
        monkeypatch.chdir(tmp_path)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "setup" and (report.failed or report.skipped):
            self._note(item, Verdict.FIXTURE if report.failed else Verdict.SKIPPED, call.excinfo)
        elif call.when == "call":
            self._note(item, self._of_call(item, call, report), call.excinfo)
        return report

    def _of_call(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> Verdict:
        if report.skipped:
            return Verdict.SKIPPED
        if not self._ways() and not self._control:
            return Verdict.NEVER_GIVEN
        if call.excinfo is None:
            return Verdict.PASSES
        found = {verdict_on(error, item.path) for error in leaves(call.excinfo.value)}
        return max(found, key=list(Verdict).index)

    def _note(self, item: pytest.Item, verdict: Verdict, info: pytest.ExceptionInfo[Any] | None) -> None:
        why = "" if info is None else "; ".join(said(error) for error in leaves(info.value))
        self._rows.append({"test": item.nodeid, "verdict": verdict.name, "why": why, "ways": self._ways()})
        self._verdicts.write_text(json.dumps(self._rows), encoding="utf-8")

    def _ways(self) -> list[str]:
        """On which ways values came that were dropped since this test began."""
        return setting_defaults.dropped(self._dropped, self._before)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group, or the one there is."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def verdict_on(error: BaseException, module: Path) -> Verdict:
    """By its type and by the file that raised it; `module` is the file of the test."""
    file = raised_in(error)
    ours = file is not None and (file == module or file.is_relative_to(TESTS))
    if isinstance(error, TimeoutError) and file == Path(waiting.__file__):
        return Verdict.AWAITS
    if isinstance(error, AssertionError) and ours:
        return Verdict.ASSERTS
    if isinstance(error, pytest.fail.Exception) and not str(error).startswith("Timeout"):
        return Verdict.ASSERTS  # raised within pytest, by what the test has requested
    return Verdict.ELSEWHERE


def raised_in(error: BaseException) -> Path | None:
    """The file of the innermost frame."""
    at: TracebackType | None = error.__traceback__
    if at is None:
        return None
    while at.tb_next is not None:
        at = at.tb_next
    return Path(at.tb_frame.f_code.co_filename)


def said(error: BaseException) -> str:
    """One line: type, first line, place."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" ({Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno})" if at is not None else ""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:160]}{place}"
