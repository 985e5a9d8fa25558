"""In which order files of tests are given to processes (`forked_run`): those that take longest first.

A file's tests share what they have made (a broker for a module, the two brokers of parity); some files are known to
take long, and whichever of them begins last decides when the run ends.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "tests/crash/test_crash.py",
    "tests/docs/test_how_to.py",
    "tests/log/recovery/test_rescan.py",
    "tests/parity",
    "tests/crash",
    "tests/log/test_manager.py",
    "tests/docs/test_examples_run.py",
    "tests/cli/plugins",
    "tests/cli/doctor",
    "tests/broker/test_damage.py",
    "tests/log/test_dump_log_segments.py",
    "tests/installed",
    "tests/plugins",
    "tests/docs",
    "tests/forward",
    "tests/cli",
    "tests/settings",
    "tests/clients",
    "tests/stress",
    "tests/http_proxy",
    "tests/log",
    "tests/broker",
    "tests/spark/commands",
    "tests/spark/running",
    "tests/spark/spark",
)
"""Beginnings of paths, the costliest first."""


def costliest_first(items: list[pytest.Item]) -> None:
    """Those of the same rank stay in their order."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return next((rank for rank, path in enumerate(LONGEST) if nodeid.startswith(path)), len(LONGEST))
