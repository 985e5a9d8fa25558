"""What tasks of Spark import is on executors: the plugin's modules that they name need no package of commands."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from imports.graph import modules
from support.spark_tasks import NOT_THERE, PLUGIN, of_tasks, sends

THERE = {"google", "numpy", "pyarrow", "pyspark", "trio"}
"""Of these the modules import something when they are imported themselves."""


def at_import(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that are done when the module is imported."""
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def named(node: ast.Import | ast.ImportFrom, known: Mapping[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        inner = (f"{node.module}.{alias.name}" for alias in node.names)
        yield from (one if one in known else f"{node.module}" for one in inner)


def outside(roots: Iterable[str], known: Mapping[str, Path]) -> dict[str, str]:
    """The packages that are not ours nor Python's which these modules import, directly or by way of others, and the
    module that does."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    left = [(root, "") for root in roots]
    while left:
        name, by = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in known:
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names:
                found[package] = by
            continue
        if "." in name:
            left.append((name.rpartition(".")[0], name))
        for node in at_import(ast.parse(known[name].read_text())):
            left += ((one, name) for one in named(node, known))
    return found


def test_tasks_import_what_executors_have() -> None:
    known = modules()
    found = outside(of_tasks(known), known)
    assert {package: by for package, by in found.items() if package not in THERE} == {}


def test_the_client_of_tasks_imports_what_executors_have() -> None:
    known = modules()
    assert outside(["leafcuttr.client.blocking.peer"], known).keys() <= THERE


def test_what_is_sent_to_tasks_is_in_modules_of_tasks() -> None:
    known = modules()
    sending = {
        name
        for name, path in known.items()
        if name.startswith(PLUGIN) and any(True for _ in sends(ast.parse(path.read_text())))
    }
    assert {f"{PLUGIN}.spark.datasource", f"{PLUGIN}.running.stateful.collecting"} <= sending
    assert sending <= set(of_tasks(known))


def test_the_walk_finds_what_commands_need() -> None:
    known = modules()
    assert outside([f"{PLUGIN}.pipelines.reading.loading"], known)["yaml"] == (
        f"{PLUGIN}.pipelines.reading.yaml_nodes"
    )
    assert "click" in outside([f"{PLUGIN}.commands.run"], known)
    assert not THERE.intersection(NOT_THERE)
