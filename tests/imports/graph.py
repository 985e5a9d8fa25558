"""Every import of our packages, read from their source: also those of functions, of TYPE_CHECKING, and by name."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PLUGINS: Final = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py"))
PACKAGES: Final = {
    "leafcuttr": ROOT / "core",
    "leafcuttr_sdk": ROOT / "sdk",
    **dict.fromkeys(PLUGINS, ROOT / "plugins"),
}

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """The modules of our packages by name; a package by its own name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in (folder / package).rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All imports of a file, which is read once for all tests of a process."""
    return tuple(_imports_in(ast.parse(path.read_text(), str(path))))


def _imports_in(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Statements are looked into, expressions not: no import is in one, and they are most of a tree."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            if isinstance(inner, list):  # of a conditional expression and of a lambda it is one expression
                waiting += inner


@cache
def by_name(path: Path) -> tuple[str, ...]:
    """Modules that a file imports by `import_module` and a name that stands there."""
    return tuple(re.findall(r"import_module\(\s*[\"']([\w.]+)[\"']", path.read_text()))


def graph(sources: Mapping[str, Path]) -> Graph:
    """Which of these modules each of them imports."""
    return {name: set(imported(name, path, sources)) - {name} for name, path in sources.items()}


def imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules among `known` that the statements of one name. `from package import module` is an import of the
    module; from a package that has the name itself it is one of the package."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    yield from (each for each in by_name(path) if each in known)
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        else:
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in known:
                    yield inner
                elif base in known:
                    yield base


def circles(edges: Graph) -> list[list[str]]:
    """The sets of modules that import each other, directly or by way of others (Tarjan's algorithm), each sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(edges[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            at = stack.index(module)
            component = sorted(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for module in sorted(edges):
        if module not in order:
            visit(module)
    return sorted(found)
