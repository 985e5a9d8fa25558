"""The mark `setting("name", ...)`: this test gives these settings another value than the default and sees them act.

`changes_what_it_says` holds a marked test to its word: at its end each named setting must have been given such a value,
through the settings of a start, and with `while_running=True` through a change of a running broker. `registered`
finds the marks in the sources of all tests, so that one test can say which settings have no such test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from leafcuttr.config.catalog import CORE, OF_TOPICS, TOPIC
from leafcuttr.config.setting import ConfigKey, Value
from leafcuttr.config.settings import Settings

TESTS = Path(__file__).parent.parent
_EVERYWHERE = "change"  # the fixture that makes its change of the topic, of the broker and of all brokers


class Registered(NamedTuple):
    """One test that is marked for one setting."""

    name: str
    test: str
    while_running: bool
    everywhere: bool


def registered() -> list[Registered]:
    """Every mark on a test function in the folder of tests."""
    found: list[Registered] = []
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.setting(" in text:  # spares the parsing of all the others
            found += _of_module(ast.parse(text), path.relative_to(TESTS))
    return found


def _of_module(module: ast.Module, path: Path) -> Iterator[Registered]:
    for function in module.body:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        marks = [mark for mark in map(_mark, function.decorator_list) if mark]
        if marks and not function.name.startswith("test_"):
            raise AssertionError(f"{path}: {function.name} is marked but is no test")
        for names, options in marks:
            for name in names:
                yield Registered(
                    name,
                    f"{path}::{function.name}",
                    options.get("while_running") is True,
                    any(argument.arg == _EVERYWHERE for argument in function.args.args),
                )


def _mark(decorator: ast.expr) -> tuple[list[str], Mapping[str, object]] | None:
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "pytest.mark.setting":
        return None
    options = {word.arg or "": ast.literal_eval(word.value) for word in decorator.keywords}
    return [ast.literal_eval(argument) for argument in decorator.args], options


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give marked tests the fixture. It comes before the others of its scope, as one of all tests would; in all tests
    it would take more time than many of them do."""
    if isinstance(item, pytest.Function) and item.get_closest_marker("setting"):
        of_test = [name for name in item.fixturenames if _is_of_test(item, name)]
        wider = [name for name in item.fixturenames if name not in of_test]
        item.fixturenames = [*wider, changes_what_it_says.__name__, *of_test]


def _is_of_test(item: pytest.Function, name: str) -> bool:
    found = item._fixtureinfo.name2fixturedefs.get(name)
    return not found or found[-1].scope == "function"


@pytest.fixture
def changes_what_it_says(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the end of a marked test: each setting that it names has been given another value than its default."""
    marks = list(request.node.iter_markers("setting"))
    given: set[str] = set()
    while_running: set[str] = set()
    parse, replace = ConfigKey.parse, Settings.replace_dynamic

    def note_value(self: ConfigKey, text: str) -> Value:
        value = parse(self, text)
        if value != self.default:
            given.add(self.name)
        return value

    def note_change(self: Settings, texts: Mapping[str, str], *, cluster: bool = False) -> None:
        while_running.update(texts)
        replace(self, texts, cluster=cluster)

    monkeypatch.setattr(ConfigKey, "parse", note_value)
    monkeypatch.setattr(Settings, "replace_dynamic", note_change)
    yield
    for mark in marks:
        for name in mark.args:
            assert _are_in(name, given), f"{name} is never given another value than its default"
            if mark.kwargs.get("while_running"):
                assert _are_in(name, while_running), f"{name} is not changed while the broker runs"


def _are_in(name: str, names: set[str]) -> bool:
    """Whether a setting is among these, one listener's too, or what gives a topic its default for it, or a member of
    the family."""
    names = {CORE.base_of(one) for one in names}
    wanted = {name, *(other for other, _ in TOPIC[name].synonyms)} if name in TOPIC else {name}
    family = OF_TOPICS.get(name, name)
    return bool(wanted & names) or (
        family.endswith(">") and any(one.startswith(family.partition("<")[0]) for one in names)
    )
