"""The normative statements of MQTT 3.1.1 and 5.0, as appendix B of each lists them: which there are (statements.tsv),
which tests check them, and docs/reference/mqtt-conformance.md, which has both.

    PYTHONPATH=tests python -m mqtt.conformance.statements > docs/reference/mqtt-conformance.md

A test names what it checks: `@pytest.mark.normative("5.0", "MQTT-3.1.2-4", ...)`. An identifier alone would not do: the
two specifications number other statements alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from mqtt.conformance.mutants import read_mutants

FOLDER: Final = Path(__file__).parent
TABLE: Final = FOLDER / "statements.tsv"
PAGE: Final = FOLDER.parents[2] / "docs" / "reference" / "mqtt-conformance.md"
VERSIONS: Final = ("3.1.1", "5.0")
BINDS: Final = ("server", "client", "both")
_SPECIFICATIONS: Final = {
    "3.1.1": "https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/os/mqtt-v3.1.1-os.html",
    "5.0": "https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html",
}


class Statement(NamedTuple):
    version: str
    identifier: str
    binds: str
    """Of `BINDS`."""
    demand: str
    """What it demands, in a few words of our own."""

    @property
    def key(self) -> tuple[str, str]:
        return self.version, self.identifier


def read_statements() -> list[Statement]:
    """All of the table, in its order."""
    header, *lines = TABLE.read_text().splitlines()
    assert header.split("\t") == list(Statement._fields)
    return [Statement(*line.split("\t")) for line in lines]


def read_tests() -> dict[tuple[str, str], list[str]]:
    """The tests of this folder by what they check, as `test_connect.py::test_name`."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for function, key in _marks(ast.parse(path.read_text())):
            tests = found.setdefault(key, [])
            name = f"{path.name}::{function}"
            if name not in tests:
                tests.append(name)
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Functions with what their `normative` says: in decorators, in a case of `parametrize`, or by a name of the module
    that stands for a `parametrize`."""
    shared = {
        target.id: list(_keys(node.value))
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                keys = shared.get(decorator.id, []) if isinstance(decorator, ast.Name) else _keys(decorator)
                for key in keys:
                    yield node.name, key


def _keys(node: ast.AST) -> Iterator[tuple[str, str]]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "normative":
            # Text, and tuples of it with an asterisk.
            version, *identifiers = (
                part.value
                for argument in call.args
                for part in ast.walk(argument)
                if isinstance(part, ast.Constant)
            )
            for identifier in identifiers:
                yield str(version), str(identifier)


def page() -> str:
    """docs/reference/mqtt-conformance.md."""
    statements, tests = read_statements(), read_tests()
    lines = [
        "# MQTT: the normative statements",
        "",
        "Appendix B of each specification lists what it demands. Each statement that binds a server has a test that",
        "sends and reads bytes on a socket: `pytest tests/mqtt/conformance`. The tests are for any broker:",
        "`--mqtt-broker HOST:PORT` names another one than LeafCuttr. `nox -s mqtt-mutants` breaks the plugin in",
        f"{len(read_mutants())} places, one at a time, and each has to be noticed.",
        "",
        "This page is made by `PYTHONPATH=tests python -m mqtt.conformance.statements`. The words are ours and short;",
        "the specification's are binding. Tests are in `tests/mqtt/conformance/`.",
        "",
        "| Specification | Statements | Bind a server | Tested |",
        "|---|---|---|---|",
    ]
    for version in VERSIONS:
        own = [one for one in statements if one.version == version]
        of_servers = [one for one in own if one.binds != "client"]
        tested = sum(one.key in tests for one in of_servers)
        lines.append(
            f"| [MQTT {version}]({_SPECIFICATIONS[version]}) | {len(own)} | {len(of_servers)} | {tested} |"
        )
    for version in VERSIONS:
        lines += [
            "",
            f"## MQTT {version}",
            "",
            "| Statement | Binds | It demands | Tests |",
            "|---|---|---|---|",
        ]
        for one in statements:
            if one.version == version:
                named = " ".join(f"`{test}`" for test in tests.get(one.key, []))
                if one.binds == "client":
                    named = named or "binds clients only"
                demand = one.demand.replace("|", "\\|")
                lines.append(f"| {one.identifier} | {one.binds} | {demand} | {named} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
