"""A package that imports its names when they are asked for lists them three times. Type checkers need plain imports and
`__all__`, `__getattr__` needs the module of each name. None can be made from another, so they are compared.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from imports.graph import modules

LAZY = [name for name, path in modules().items() if "\ndef __getattr__(" in path.read_text()]


def of_type_checkers(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (one for one in node.body if isinstance(one, ast.ImportFrom))


def names_of(imports: Iterator[ast.ImportFrom], public: set[str]) -> dict[str, str]:
    """Which module each name is imported from, of those that are public or for type checkers alone."""
    return {alias.name: f"{one.module}" for one in imports for alias in one.names if alias.name in public}


def test_the_lazy_packages_are_those_that_are_known() -> None:
    assert sorted(LAZY) == [
        "leafcuttr",
        "leafcuttr_sdk",
        "leafcuttr_sdk.batches",
        "leafcuttr_sdk.conditions",
        "leafcuttr_sdk.http_schemas",
        "leafcuttr_sdk.testing",
        "leafcuttr_sdk.web",
        "leafcuttr_spark",
    ]


@pytest.mark.parametrize("package", LAZY)
def test_the_lists_of_a_lazy_package_are_the_same(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text())
    public = set(module.__all__)
    assert len(module.__all__) == len(public)
    at_once = names_of((one for one in tree.body if isinstance(one, ast.ImportFrom)), public)
    for_types = [alias.name for one in of_type_checkers(tree) for alias in one.names]
    assert not at_once.keys() & set(for_types)
    assert {*at_once, *for_types} == public
    for name, place in names_of(of_type_checkers(tree), public).items():
        lazy = module.__getattr__(name)
        assert lazy is getattr(importlib.import_module(place), name), name
    table = getattr(module, "_MODULES", dict.fromkeys(for_types, "embedded"))
    assert {name: f"{package}.{place}" for name, place in table.items()} == names_of(
        of_type_checkers(tree), public
    )
