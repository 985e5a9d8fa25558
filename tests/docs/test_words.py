"""Plain words on the pages and in the code: those that readers stumbled over do not come back."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN_BY_CODE = {"api-keys.md", "rights.md", "metrics.md", "settings.md", "performance.md"}
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
    r"doors?|houses?": "listener, data directory, or whatever it is",
    r"bury|buried|burial": "write a tombstone, delete",
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


PACKAGES = [
    *(
        path
        for path in sorted((ROOT / "core" / "leafcuttr").iterdir())
        if path.name not in ("__pycache__", "py.typed")
    ),
    ROOT / "sdk" / "leafcuttr_sdk",
    *sorted((ROOT / "plugins").iterdir()),
]


def prose_of(module: Path) -> Iterator[tuple[int, str]]:
    """Comments and texts, docstrings among them, each with its line."""
    with io.StringIO(module.read_text(encoding="utf-8")) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
                yield token.start[0], CODE.sub("", token.string)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_code_has_plain_words(package: Path) -> None:
    modules = [package] if package.is_file() else sorted(package.rglob("*.py"))
    found = [
        f"{module.relative_to(ROOT)}:{line}: {word}"
        for module in modules
        for line, prose in prose_of(module)
        for words in INSTEAD
        for word in re.findall(rf"\b(?:{words})\b", prose, re.IGNORECASE)
    ]
    assert found == []
