"""How pytest-xdist deals tests out: all of a file to one process, the files that take longest first.

A file's tests share what they have made (a broker for a module, the two brokers of parity); some files are known to
take long, and whichever of them begins last decides when the run ends.
"""

from __future__ import annotations

import pytest

LONGEST: tuple[str, ...] = ()
"""Beginnings of paths, the costliest first."""


def costliest_first(items: list[pytest.Item]) -> None:
    """Each process has to come to the same order."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return next((rank for rank, path in enumerate(LONGEST) if nodeid.startswith(path)), len(LONGEST))
