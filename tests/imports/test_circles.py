"""No two modules of ours import each other: not by way of others, lazily, by name or for their types alone either."""

from collections.abc import Mapping
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


LOG = "leafcuttr.log"
LARGEST_FOLDER = 12
TOGETHER = [["leafcuttr.log.append", "leafcuttr.log.state"]]
"""The state of a log holds what `append/` stages and how (batches, the pending write, rules, the chain); the other
modules of `append/` change that state. No two of the modules import each other."""


def folder_of(module: str, paths: Mapping[str, Path]) -> str:
    """The folder in `log/` that a module is in; a module that lies in `log/` itself counts as one."""
    inner = ".".join(module.split(".")[:3])
    return inner if paths[inner].name == "__init__.py" else module


def test_folders_of_the_log_import_each_other_nowhere_else() -> None:
    paths = modules()
    found: Graph = {}
    for name, others in graph(paths).items():
        if name.startswith(f"{LOG}."):
            folder = folder_of(name, paths)
            inner = {folder_of(other, paths) for other in others if other.startswith(f"{LOG}.")}
            found.setdefault(folder, set()).update(inner - {folder})
    assert f"{LOG}.segment" in found[f"{LOG}.log"]
    assert circles(found) == TOGETHER


def test_no_folder_of_the_log_is_large() -> None:
    folder = modules()[LOG].parent
    sizes = {each.parent: len([*each.parent.glob("*.py")]) for each in folder.rglob("__init__.py")}
    assert len(sizes) > 10
    assert {str(each): size for each, size in sizes.items() if size > LARGEST_FOLDER} == {}


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
        "def f():\n    import_module('leafcuttr.b')",
        'def f():\n    return importlib.import_module(\n        "leafcuttr.b"\n    ).thing',
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
