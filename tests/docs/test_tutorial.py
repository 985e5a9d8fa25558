"""The commands of the tutorial, run as they stand on the page; what it shows is what they print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leafcuttr import __version__
from support.pages import DOCS, run_page

PAGE = "tutorial/ten-minutes.md"


def test_the_page_shows_this_version() -> None:
    assert f"LeafCuttr {__version__} is ready on" in (DOCS / PAGE).read_text()


@pytest.mark.skipif(not shutil.which("bash"), reason="the commands are for bash")
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path, without=() if shutil.which("kcat") else ("kcat",)) >= 14
