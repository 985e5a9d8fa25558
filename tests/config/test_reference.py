"""The committed page of settings is the one that the tables make."""

from pathlib import Path

from leafcuttr.config.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m leafcuttr.config.reference > docs/reference/settings.md"
    )
