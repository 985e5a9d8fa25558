"""Which listeners share keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from leafcuttr.state.security.bearer.key_source import KeySettings, KeySource
from leafcuttr.state.security.bearer.sources import KeySources
from support.logs import HandClock
from support.token_issuer import Issuer


def test_the_same_settings_are_one_source() -> None:
    sources = KeySources()
    one = sources.of(KeySettings("file:///a"))
    assert sources.of(KeySettings("file:///a")) is one
    assert sources.of(KeySettings("file:///b")) is not one
    assert [each.settings.url for each in sources] == ["file:///a", "file:///b"]


async def test_one_that_has_been_read_is_not_read_again_at_once(tmp_path: Path) -> None:
    issuer, clock, sources = Issuer(), HandClock(), KeySources()
    issuer.add("ES256", "a")
    path = tmp_path / "keys"
    source = KeySource(KeySettings(issuer.write(path)))
    source.read()
    sources.take(source, clock)
    assert sources.of(source.settings) is source
    path.unlink()
    await source.follow(clock)
    assert source._failures == 0


def test_without_tokens_cryptography_is_not_imported() -> None:
    """It takes long, and is in an extra."""
    code = "import sys, leafcuttr.server.run; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
