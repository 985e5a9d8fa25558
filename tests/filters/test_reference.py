"""The page of the reference is that of the table, and the table is complete."""

from __future__ import annotations

from pathlib import Path

from leafcuttr_filters.definitions.table import COMMON, TYPES
from leafcuttr_filters.reference import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_that_of_the_code() -> None:
    text = (DOCS / "reference" / "filters.md").read_text(encoding="utf-8")
    assert text == page(), "run: python -m leafcuttr_filters.reference > docs/reference/filters.md"


def test_names_are_unique_and_every_option_is_explained() -> None:
    assert len({one.name for one in TYPES}) == len(TYPES)
    for kind in TYPES:
        names = [option.name for option in (*kind.options, *COMMON)]
        assert len(set(names)) == len(names)
        for option in kind.options:
            assert option.help.endswith(".") and option.kind.__doc__
            assert f"| `{option.name}` |" in page()
