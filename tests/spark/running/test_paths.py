"""Functions and classes of the user's, found by their paths."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.running.paths import found_by_path, made_by_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_parts").mkdir()
    (tmp_path / "own_parts" / "good.py").write_text(
        "class Outer:\n    def __init__(self, size=1):\n        self.size = size\n\n    @staticmethod\n"
        "    def inner():\n        return 7\n"
    )
    (tmp_path / "own_parts" / "broken.py").write_text("1 / 0\n")
    (tmp_path / "own_parts" / "needs.py").write_text("import not_installed_anywhere\n")
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return tmp_path


def test_it_is_found_from_the_folder_of_the_pipeline(folder: Path) -> None:
    assert found_by_path("own_parts.good:Outer.inner", folder)() == 7
    assert found_by_path("json:dumps", folder)(1) == "1"
    assert made_by_path("own_parts.good:Outer", {"size": 3}, folder).size == 3


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("json", "json is no path: allowed is package.module:name"),
        (":dumps", "is no path"),
        ("json:", "is no path"),
        ("json:none", "the module json has no none"),
        ("own_parts.missing:x", r"there is no module own_parts\.missing, in .* neither"),
        (
            "own_parts.broken:x",
            r"the module own_parts\.broken cannot be imported: ZeroDivisionError: division by zero",
        ),
        (
            "own_parts.needs:x",
            r"the module own_parts\.needs cannot be imported: No module named 'not_installed_anywhere'",
        ),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, path: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said) as caught:
        found_by_path(path, folder)
    # Code of the module may do better the next time.
    assert isinstance(caught.value, PipelineRefusedError) is ("division" not in said)


def test_arguments_that_do_not_fit(folder: Path) -> None:
    with pytest.raises(
        PipelineError, match=r"own_parts\.good:Outer cannot be made: .*unexpected keyword argument 'no'"
    ):
        made_by_path("own_parts.good:Outer", {"no": 1}, folder)
