"""What a plugin author knows by a name is nothing else in the broker; no two classes or aliases of it share a name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import leafcuttr_sdk
from imports.graph import PLUGINS, modules

VIEWS = {"Broker", "Record", "Settings", "Topics"}
"""What plugins see of the very thing that has this name in the broker."""


def named_in(source: str) -> Iterator[str]:
    """The names of the classes in a module (NamedTuples and others), and of its aliases of types; not what it imports,
    and no constants, which are in capitals."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and re.fullmatch(
                    "_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", target.id
                ):
                    yield target.id


@cache
def names_of(path: Path) -> tuple[str, ...]:
    return tuple(named_in(path.read_text()))


def classes(package: str) -> Iterator[tuple[str, str]]:
    """These names of a package, each with its module. The messages of Kafka have Kafka's names."""
    for module, path in modules().items():
        if module.split(".")[0] == package and not module.startswith("leafcuttr.wire.messages."):
            yield from ((name, module) for name in names_of(path))


@pytest.mark.parametrize(
    "source",
    [
        "class Found: ...",
        "class Found(NamedTuple): ...",
        "Found = tuple[int, int]",
        "Found: TypeAlias = int | str",
        "Found = namedtuple('Found', 'a b')",
    ],
)
def test_classes_and_aliases_are_seen(source: str) -> None:
    assert [*named_in(f"from other import Thing\nLIMIT = 3\n{source}\n")] == ["Found"]


@pytest.mark.long
def test_no_class_of_the_broker_has_a_name_that_the_sdk_exports() -> None:
    exported = {name for name in leafcuttr_sdk.__all__ if isinstance(getattr(leafcuttr_sdk, name), type)}
    assert len(exported) > 40
    clashes = {name: module for name, module in classes("leafcuttr") if name in exported - VIEWS}
    assert clashes == {}
    assert [name for plugin in PLUGINS for name, _ in classes(plugin) if name in exported] == []
    assert exported & {name for name, _ in classes("leafcuttr")} == VIEWS, "no more of these are needed"


@pytest.mark.long
def test_no_two_classes_of_the_broker_have_the_same_name() -> None:
    """But those of one module only, which begin with an underscore."""
    found = defaultdict(list)
    for name, module in classes("leafcuttr"):
        found[name].append(module)
    assert len(found) > 300
    shared = {name: of for name, of in found.items() if len(of) > 1 and not name.startswith("_")}
    assert shared == {}
