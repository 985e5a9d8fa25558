"""Plain words on the pages: those that readers stumbled over do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN_BY_CODE = {"api-keys.md", "metrics.md", "settings.md", "performance.md"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "changes"
        and not (page.name in WRITTEN_BY_CODE and page.parent.name in ("reference", "explanation"))
    ),
]
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
INSTEAD = {
    r"whoever": "say who",
    r"rooms?": "space, or part",
    r"seats?": "chain",
    r"looked at|looks at": "checked, read or seen",
    r"not known here|nothing here|not here yet": "unknown, nothing, not supported yet",
    r"(?:some|any)body asks|is asked for|asks of": "a request, or what it needs",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_plain_words(page: Path) -> None:
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    found = {
        f"{word}: {instead}"
        for words, instead in INSTEAD.items()
        for word in re.findall(rf"\b(?:{words})\b", prose, re.IGNORECASE)
    }
    assert found == set()
