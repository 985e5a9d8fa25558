"""The page of rights is the table's."""

from pathlib import Path

from leafcuttr.handlers.access_page import access_page

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rights.md"


def test_the_page() -> None:
    assert _PAGE.read_text() == access_page(), (
        "run: python -m leafcuttr.handlers.access_page > docs/reference/rights.md"
    )
