"""How pytest-xdist deals tests out: all of a file to one process, the files that take longest first.

A file's tests share what they have made (a broker for a module, the two brokers of parity); some files are known to
take long, and whichever of them begins last decides when the run ends.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "tests/crash/test_crash.py",
    "tests/crash/test_compaction.py",
    "tests/settings/test_setting_marks.py",
    "tests/log/cleaner/test_as_kafka.py",
    "tests/settings/test_long_settings.py",
    "tests/crash",
    "tests/docs/test_how_to.py",
    "tests/docs/test_examples_run.py",
    "tests/cli/doctor",
    "tests/parity",
    "tests/plugins",
    "tests/installed",
    "tests/cli",
    "tests/settings",
    "tests/clients",
    "tests/stress",
    "tests/http_proxy",
    "tests/log",
)
"""Beginnings of paths, the costliest first."""


def costliest_first(items: list[pytest.Item]) -> None:
    """Each process has to come to the same order."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return next((rank for rank, path in enumerate(LONGEST) if nodeid.startswith(path)), len(LONGEST))
