"""docs/how-to/http.md as it is typed, and docs/reference/http.md beside the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leafcuttr_http.app import PARTS
from leafcuttr_http.documentation import describe
from leafcuttr_http.errors import CODES
from leafcuttr_http.front import FORMATS
from leafcuttr_http.negotiation import LINES
from leafcuttr_http.settings import settings
from support.pages import DOCS, run_page

REFERENCE = DOCS / "reference/http.md"
SOURCE = Path(__file__).parents[2] / "plugins" / "leafcuttr_http"


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page("how-to/http.md", tmp_path) >= 19


def section(title: str) -> str:
    return REFERENCE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_endpoint_has_its_line() -> None:
    lines = re.findall(r"^\| ([A-Z]+) \| `(.+?)` \| (.+) \|$", section("Endpoints"), re.MULTILINE)
    pages = {
        (method.upper(), path, operation["summary"])
        for path, operations in describe(PARTS, "1")["paths"].items()
        for method, operation in operations.items()
    }
    assert set(lines) == pages
    assert len(lines) == len(pages)


def test_every_code_has_its_line() -> None:
    lines = re.findall(r"^\| (\d+) \| (.+) \|$", section("Errors"), re.MULTILINE)
    assert {int(code): text for code, text in lines} == dict(CODES)


def test_every_code_that_is_sent_is_listed() -> None:
    sent = {
        int(code)
        for path in SOURCE.rglob("*.py")
        for code in re.findall(r"ApiError\(\s*(\d+)", path.read_text())
    }
    assert sent
    assert sent <= CODES.keys()


def test_the_types_and_limits_are_those_of_the_code() -> None:
    page = REFERENCE.read_text()
    for name in (*FORMATS, LINES):
        assert f"`{name}`" in page or name.endswith(("kafka.json+json", "kafka.binary+json")), name
    declared = {setting.name for setting in settings()}
    named = set(re.findall(r"`(lc\.http\.proxy\.[a-z.]+)`", page))
    assert named <= declared
    limits = {name for name in declared if ".max." in name or name.endswith("timeout.ms")}
    assert {name for name in limits if ".consumer" not in name} <= named
