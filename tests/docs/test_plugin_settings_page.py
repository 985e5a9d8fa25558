"""The commands of docs/how-to/plugin-settings.md print what the page shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support.pages import DOCS, run_page

PAGE = "how-to/plugin-settings.md"


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("curl"), reason="the commands call curl")
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    for language, file in (("python", "plugins/owners.py"), ("properties", "server.properties")):
        source, *_ = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(source, encoding="utf-8")
    assert run_page(PAGE, tmp_path) >= 8
