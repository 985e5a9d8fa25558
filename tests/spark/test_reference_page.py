"""The committed page of options is what the tables of the code say."""

from __future__ import annotations

from pathlib import Path

from leafcuttr_spark.reference_page import page
from leafcuttr_spark.sink.options import OPTIONS as SINK
from leafcuttr_spark.source.options import OPTIONS as SOURCE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark.md"


def test_the_committed_page_is_the_code_s() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "see the docstring of leafcuttr_spark.reference_page"


def test_every_option_is_on_it() -> None:
    text = page()
    for option in (*SOURCE, *SINK):
        assert f"| `{option.name}` |" in text
