"""The pages of the reference equal the code. (Settings: tests/config/test_reference.py.)"""

from __future__ import annotations

from pathlib import Path

import click

from leafcuttr.cli import reference as commands
from leafcuttr.cli.doctor import reference as doctor
from leafcuttr.metrics import reference as metrics
from leafcuttr.wire import reference as api_keys

DOCS = Path(__file__).parents[2] / "docs"


def test_command_line() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert text == commands.page(), "run: python -m leafcuttr.cli.reference > docs/reference/cli.md"


def test_the_doctors_checks() -> None:
    text = (DOCS / "reference" / "doctor.md").read_text(encoding="utf-8")
    assert text == doctor.page(), "run: python -m leafcuttr.cli.doctor.reference > docs/reference/doctor.md"


def test_every_command_says_how_it_ends() -> None:
    """In its own help or in that of its group."""
    said = [c.command_path for c, command in commands.walk() if "xit status" in (command.help or "")]
    silent = [
        context.command_path
        for context, command in commands.walk()
        if not isinstance(command, click.Group)
        and not any(
            context.command_path == path or context.command_path.startswith(f"{path} ") for path in said
        )
    ]
    assert silent == []


def test_api_keys() -> None:
    text = (DOCS / "reference" / "api-keys.md").read_text(encoding="utf-8")
    assert text == api_keys.api_keys_page(), (
        "run: python -m leafcuttr.wire.reference > docs/reference/api-keys.md"
    )


def test_metrics() -> None:
    text = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert text == metrics.page(), "run: python -m leafcuttr.metrics.reference > docs/reference/metrics.md"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS) for page in DOCS.rglob("*.md") if page.parent.name != "changes"]
    assert [str(page) for page in pages if f": {page}\n" not in navigation] == []
