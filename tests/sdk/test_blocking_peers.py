"""How `open_peer` finds the client."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest

from leafcuttr.client.blocking.peer import open_blocking_peer
from leafcuttr_sdk import blocking_peers
from leafcuttr_sdk.errors import PluginError


def test_by_the_entry_point_of_the_installed_distribution() -> None:
    (found,) = importlib.metadata.entry_points(group=blocking_peers.ENTRY_POINTS, name="blocking")
    assert found.load() is open_blocking_peer


def test_without_it_a_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from an archive without the metadata of the distribution."""
    none: Any = importlib.metadata.EntryPoints(())
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: none)
    with pytest.raises(PluginError, match=r"no client of Kafka's protocol is installed .*leafcuttr\.peers"):
        blocking_peers.open_peer({"bootstrap.servers": "h:1"})
