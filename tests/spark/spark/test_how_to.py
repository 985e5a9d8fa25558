"""The commands of the page for users, as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import run_page


@pytest.mark.usefixtures("spark")
def test_the_page_runs(tmp_path: Path) -> None:
    assert run_page("how-to/spark.md", tmp_path) >= 4
