"""The commands of docs/how-to/streams.md run, and its tables name what the code has."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leafcuttr_http.streams.query import KNOWN
from leafcuttr_http.streams.websocket import Close
from support.pages import DOCS, run_page

PAGE = "how-to/streams.md"


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
def test_the_commands_run(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path) == 2


def first_column(head: str) -> set[str]:
    table = (DOCS / PAGE).read_text().partition(f"| {head} |")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `?(\w+)`? \|", table, re.MULTILINE))


def test_every_parameter_and_close_code_is_there() -> None:
    assert first_column("parameter") == {*KNOWN, "credits"}
    assert first_column("close code") == {str(int(code)) for code in Close}


def test_every_event_is_there() -> None:
    source = "".join(
        path.read_text()
        for path in (Path(__file__).parents[2] / "plugins/leafcuttr_http/streams").glob("*.py")
    )
    assert first_column("event") == set(re.findall(r'notice\("(\w+)"', source))
