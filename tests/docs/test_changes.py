"""Each change has a file that ends up in CHANGELOG.md with its text."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from leafcuttr import __version__

ROOT = Path(__file__).parents[2]
CHANGES = ROOT / "docs" / "changes"
TYPES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]


def test_each_file_has_a_type_whose_text_is_shown() -> None:
    shown = {kind["directory"] for kind in TYPES if kind["showcontent"]}
    files = [path for path in CHANGES.glob("*.md") if path.name not in ("README.md", "CHANGELOG.md")]
    assert [
        path.name for path in files if not re.fullmatch(rf"[\w-]+\.({'|'.join(shown)})\.md", path.name)
    ] == []
    assert [path.name for path in files if not path.read_text().strip()] == []
    named = set(re.findall(r"`(?:NAME)?\.(\w+)\.md`", (CHANGES / "README.md").read_text()))
    assert named == shown


def test_each_release_has_its_commit_and_its_changes() -> None:
    text = (CHANGES / "CHANGELOG.md").read_text()
    releases = re.split(r"^# leafcuttr ", text, flags=re.MULTILINE)[1:]
    assert releases[-1].startswith("0.6.0 (2026-11-22)\n\nCommit 48d65e6.\n")
    for release in releases:
        assert re.search(r"^Commit [0-9a-f]{7}\.$", release, re.MULTILINE)
        assert re.findall(r"^- \W*$", release, re.MULTILINE) == []
        assert not release.startswith(f"{__version__} ")
