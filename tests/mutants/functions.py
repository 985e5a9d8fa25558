"""The functions of a module by their names, and their text as `equivalent.toml` quotes it."""

import ast
from typing import NamedTuple


class FunctionSource(NamedTuple):
    """A function or method of a module: its lines from the `def` on, without decorators."""

    name: str
    first: int
    last: int
    indented: bool


def functions_in(source: str) -> list[FunctionSource]:
    """The functions and methods of a module in their order; what is nested in one belongs to it."""
    found: list[FunctionSource] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(_function(node, node.name))
        elif isinstance(node, ast.ClassDef):
            found.extend(
                _function(inner, f"{node.name}.{inner.name}")
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            )
    return found


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> FunctionSource:
    assert node.end_lineno is not None
    return FunctionSource(name, node.lineno, node.end_lineno, node.col_offset > 0)


def text_of(lines: list[str]) -> str:
    """Lines of source as one line, so that a change of their indentation alone changes nothing."""
    return " ".join(line.strip() for line in lines if line.strip())
