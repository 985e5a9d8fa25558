"""Exceptions of others' code in one line of bounded length, with the place in that code."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Final, NoReturn

import pytest

from leafcuttr.runtime.described import LONGEST, described, first_line, leaves_of, place_of, type_of, words_of
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr_sdk import PluginError

HUGE = "x" * 100_000_000


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("id"), "KeyError: 'id'"),
        (ValueError(), "ValueError"),
        (ValueError("\n  one\ntwo"), "ValueError: one"),
        (SystemExit(3), "SystemExit: 3"),
        (PluginError("pip install something\nand more"), "pip install something"),
        (PluginError(), "PluginError"),
        (Mute(), "Mute: its words cannot be read"),
        (ExceptionGroup("several", [ValueError("a")]), "ValueError: a"),
        (BaseExceptionGroup("s", [SystemExit(1), ExceptionGroup("s", [KeyError(2)])]), "SystemExit: 1 and 1 more"),
        (ExceptionGroup("several", [ValueError("a"), PluginError("no port")]), "no port and 1 more"),
        (ValueError(HUGE), f"ValueError: {'x' * (LONGEST - 1)}…"),
        (PluginError(HUGE), f"{'x' * (LONGEST - 1)}…"),
    ],
    ids=lambda value: f"{value:.40}" if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_an_error_in_one_line(error: BaseException, line: str) -> None:
    assert described(error) == line


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name")


class Text(str):
    def strip(self, *_: Any) -> str:
        raise ValueError("no text")

    __getitem__ = splitlines = strip  # type: ignore[assignment]


def refuse(*_: object) -> NoReturn:
    raise SystemExit(4)


HOSTILE: Final[dict[str, tuple[Callable[[], BaseException], str]]] = {
    "name": (lambda: Nameless("Odd", (Exception,), {})("words"), "Odd: words"),
    "class": (lambda: type("Odd", (Exception,), {"__class__": property(refuse)})("words"), "Odd: words"),
    "group": (
        lambda: type("Odd", (BaseExceptionGroup,), {"exceptions": property(refuse), "split": refuse})(
            "g", [OSError("a")]
        ),
        "OSError: a",
    ),
    "traceback": (lambda: type("Odd", (Exception,), {"__traceback__": property(refuse)})("words"), "Odd: words"),
    "text": (type("Odd", (Exception,), {"__str__": lambda _: Text("words")}), "Odd: words"),
    "no text": (type("Odd", (Exception,), {"__str__": lambda _: 3}), "Odd: its words cannot be read"),
    "file": (
        lambda: SyntaxError("words", (type("F", (str,), {"__format__": refuse})("f"), 1, 1, "")),
        "SyntaxError: words",
    ),
}  # fmt: skip
"""Exceptions whose classes raise where they are looked at, and the line. They live no longer than a test: other tests
look at all objects."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_error_is_not_trusted(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    make, line = HOSTILE[kind]
    error = make()
    assert described(error) == line

    def fails() -> None:
        raise error

    with caplog.at_level(logging.DEBUG), pytest.raises(PartError) as caught:
        call(Part("acme", "code"), fails)
    assert caught.value.why.startswith(line) and caught.value.brief == line
    assert not caught.value.is_said
    with caplog.at_level(logging.DEBUG):
        Failures()(caught.value)
    said, _ = caplog.messages
    assert said.startswith(f"plugin acme: code failed: {line}")
    assert "in fails" in caplog.text


def test_a_name_of_a_type_is_cut() -> None:
    assert type_of(type("X" * 1000, (Exception,), {})()) == "X" * 100


def test_lines_are_cut() -> None:
    assert first_line(" a reason \n and more") == "a reason"
    assert first_line("x" * LONGEST) == "x" * LONGEST
    assert first_line("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"
    assert first_line(" \n ") == ""


def raised(source: str, **names: Any) -> BaseException:
    """What this source raises, as code of a package of its own."""
    names["__name__"] = "acme.parts"
    with pytest.raises(PartError) as caught:
        call(Part("acme", "code"), exec, compile(source, "/srv/acme.py", "exec"), names)
    assert caught.value.cause is not None
    return caught.value.cause


def test_the_place_is_the_innermost_one_in_the_code_that_was_called() -> None:
    assert place_of(ValueError()) == ""
    names = {"__name__": "leafcuttr.plugins"}
    exec(compile("def broker(call): call()", "/broker.py", "exec"), names)
    error = raised("def own():\n  json.loads('{')\nbroker(own)", broker=names["broker"], json=json)
    # Between: the broker's; below: the standard library's.
    assert described(error).endswith(" (/srv/acme.py, line 2)")
    error = raised("raise ValueError('no')")
    assert described(error).startswith("ValueError: no (/")
    assert described(error, place=False) == "ValueError: no"


def test_a_syntax_error_has_the_place_that_it_is_about() -> None:
    error = raised("compile('x = (', '/srv/other.py', 'exec')")
    assert described(error) == "SyntaxError: '(' was never closed (/srv/other.py, line 1)"
    assert words_of(SyntaxError("made by hand")) == "made by hand"


def test_very_many_and_very_deep_groups() -> None:
    assert len(leaves_of(ExceptionGroup("many", [ValueError(n) for n in range(100_000)]))) == 100
    deep: Any = ValueError("the one")
    for _ in range(10_000):
        deep = ExceptionGroup("deeper", [deep])
    assert described(deep) == "ValueError: the one"
