"""The setting that switches forwarding on."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.plugins.catalogue import examine_all
from leafcuttr.plugins.loaded import PluginState


@pytest.mark.setting("lc.topic.forward.config")
def test_a_file_switches_it_on(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text("clusters=a,b\n")
    _, _, plugins = examine_all(None, {}, [f"lc.topic.forward.config={file}"])
    found = plugins.get("forward")
    assert found is not None
    assert found.state is PluginState.ENABLED


def test_it_is_off_without_one() -> None:
    _, _, plugins = examine_all(None, {})
    found = plugins.get("forward")
    assert found is not None
    assert found.state is PluginState.OFF
