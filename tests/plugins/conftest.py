"""What tests of plugins share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` for plugins to be installed in; what was imported from it is forgotten at the end."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.endswith("_plugin") or name.startswith("leafcuttr_plugin_"):
            del sys.modules[name]
