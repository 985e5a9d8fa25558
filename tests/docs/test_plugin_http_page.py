"""docs/how-to/plugin-http.md as it is typed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.pages import run_page


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    """The example passes `plugins check` too: that is its first command."""
    assert run_page("how-to/plugin-http.md", tmp_path) == 9
