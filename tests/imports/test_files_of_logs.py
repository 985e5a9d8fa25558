"""What serves clients asks a log for ranges of bytes: it sees neither the segments nor their paths and descriptors.

That it imports nothing of them is a contract of import-linter (pyproject.toml); here is what it may not ask a log for.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from imports.graph import modules

INSIDE: Final = {
    "leafcuttr.log": "the log",
    "leafcuttr.offline": "works on the files of a broker that is stopped",
    "leafcuttr.cli.dump": "is given paths of segments and indexes, and finds the segment beside an index",
    "leafcuttr.cli.repair": "of a stopped broker; sees from the segments in it whether a folder is a partition's",
    "leafcuttr.cli.verify": "of a stopped broker; says how many segments it has read",
}
SUFFIXES: Final = frozenset({".log", ".index", ".timeindex", ".txnindex"})
HIDDEN: Final = frozenset({"_file", "directory_name", "fd", "open_file", "open_for_writing", "segments"})


def hidden_in(source: str) -> Iterator[tuple[int, str]]:
    """The attributes of that kind that a module asks for, with their lines."""
    if not any(name in source for name in HIDDEN):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in HIDDEN:
            yield node.lineno, node.attr


def suffixes_in(source: str) -> set[str]:
    """The suffixes of a segment's files that a module names, alone or at the end of a pattern."""
    if not any(suffix in source for suffix in SUFFIXES):
        return set()
    constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    texts = {each.removeprefix("*") for each in constants if isinstance(each, str)}
    return texts & SUFFIXES


def outside() -> dict[str, Path]:
    return {
        name: path
        for name, path in modules().items()
        if not any(name == inner or name.startswith(f"{inner}.") for inner in INSIDE)
    }


def test_no_module_outside_asks_for_the_files_of_a_log() -> None:
    found = {name: [*hidden_in(path.read_text())] for name, path in outside().items()}
    assert {name: uses for name, uses in found.items() if uses} == {}


@pytest.mark.long
def test_no_module_outside_makes_paths_of_segments() -> None:
    found = {name: suffixes_in(path.read_text()) for name, path in outside().items()}
    assert {name: suffixes for name, suffixes in found.items() if suffixes} == {}
    assert suffixes_in("log = file.with_suffix('.log'); folder.glob('*.index')") == {".log", ".index"}


@pytest.mark.parametrize("package", sorted(INSIDE))
def test_each_exception_is_needed(package: str) -> None:
    texts = [path.read_text() for name, path in modules().items() if f"{name}.".startswith(f"{package}.")]
    assert any([*hidden_in(text)] or suffixes_in(text) for text in texts)


@pytest.mark.parametrize("attribute", sorted(HIDDEN))
def test_each_of_them_is_found(attribute: str) -> None:
    assert [*hidden_in(f"def size(log):\n    return log.{attribute}\n")] == [(2, attribute)]


def test_they_are_names_of_the_log() -> None:
    text = "\n".join(
        path.read_text() for name, path in modules().items() if name.startswith("leafcuttr.log.")
    )
    assert [name for name in HIDDEN if f".{name}" not in text] == []
