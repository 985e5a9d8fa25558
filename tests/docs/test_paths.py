"""Every path that a page names is there, and so is every test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
BASES = [ROOT, ROOT / "core" / "leafcuttr", ROOT / "core", ROOT / "tests", ROOT / "plugins", ROOT / "sdk"]
FIRST = {path.name for base in BASES for path in base.iterdir() if path.is_dir() and path.name.isidentifier()}
"""What a path of ours begins with: pages also name those of Kafka, of users and of their plugins."""
NAMED = re.compile(r"`(?:\.\./)*([a-z_]+/[\w./-]*?(?:\.py|/))?(?:::(\w+))?`")


def named_on(page: Path) -> list[tuple[str, str]]:
    """(path, test) of each; a test that stands alone belongs to the file before it."""
    found, last = [], ""
    for path, test in NAMED.findall(page.read_text(encoding="utf-8")):
        last = path or last
        if (path or test) and (last.split("/")[0] in FIRST or last.endswith(".py")) and "src/" not in last:
            found.append((last, test))
    return found


def pages_with_paths() -> list[Path]:
    return [page for page in PAGES if page.parent.name != "changes" and named_on(page)]


@pytest.mark.parametrize("page", pages_with_paths(), ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    missing = []
    for path, test in named_on(page):
        if re.search(r"NAME|THEME", path):
            continue
        files = [base / path for base in BASES if (base / path).exists()]
        if not files or (
            test and not any(f"def {test}(" in file.read_text() for file in files if file.is_file())
        ):
            missing.append(f"{path}::{test}" if test else path)
    assert missing == []


def test_pages_name_paths() -> None:
    assert len(pages_with_paths()) > 5
    assert sum(len(named_on(page)) for page in pages_with_paths()) > 60
