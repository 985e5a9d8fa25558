"""The commands of docs/how-to/records.md print what the page shows, and its tables name what the code has."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leafcuttr.cli.common.records.json_lines import MEMBERS
from support.pages import DOCS, run_page

PAGE = "how-to/records.md"


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("bash"), reason="the commands are for bash")
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path) >= 8


def test_every_member_of_a_json_line_is_described() -> None:
    table = (DOCS / PAGE).read_text().partition("| member | what it is |")[2].partition("\n\n")[0]
    members = " ".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", members)) == MEMBERS
