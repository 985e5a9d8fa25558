"""No two modules of ours import each other, not by way of others either, nor lazily, nor for their types alone."""

from pathlib import Path

import pytest

from imports.graph import Graph, circles, graph, modules

LAZY = ("leafcuttr", "leafcuttr.embedded")
"""What `leafcuttr/__init__.py` offers to programs, imported when they ask for it."""


def test_modules_import_each_other_nowhere() -> None:
    found = graph(modules())
    above, below = LAZY
    found[above].remove(below)
    assert circles(found) == []


def test_what_is_allowed_is_there() -> None:
    assert LAZY[1] in graph(modules())[LAZY[0]]


@pytest.mark.parametrize(
    "statement",
    [
        "from leafcuttr.b import thing",
        "from leafcuttr import b",
        "import leafcuttr.b",
        "from . import b",
        "from .b import thing",
        "def f():\n    from leafcuttr.b import thing",
        "if TYPE_CHECKING:\n    from leafcuttr.b import thing",
    ],
)
def test_every_kind_of_import_counts(tmp_path: Path, statement: str) -> None:
    sources = {f"leafcuttr.{name}": tmp_path / f"{name}.py" for name in "abc"}
    sources["leafcuttr.a"].write_text(statement)
    sources["leafcuttr.b"].write_text("import leafcuttr.c")
    sources["leafcuttr.c"].write_text("import os, leafcuttr.a")
    found: Graph = graph(sources)
    assert circles(found) == [["leafcuttr.a", "leafcuttr.b", "leafcuttr.c"]]
    found["leafcuttr.c"].clear()
    assert circles(found) == []
