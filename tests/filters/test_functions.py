"""A function of a person's as a filter: what it gets, and what it may answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_filters.definitions.parsing import quoted
from leafcuttr_sdk import DROP, DeadLetter, PluginError, Record, Routed
from support.making_filters import made, of

SOURCE = """
from leafcuttr_sdk import DROP, DeadLetter, Routed


def is_allowed(message, config):
    return message == config["wanted"].encode()


def of_value(value):
    return value is not None


def of_record(record):
    return {b"drop": DROP, b"dead": DeadLetter("why"), b"route": Routed(record, "x")}.get(
        record.value, record._replace(key=b"seen")
    )


def both(record, config, other=None):
    return record.key == config.encode()


class Counts:
    def __init__(self, config):
        self.most = config

    def filter(self, record):
        self.most -= 1
        return self.most >= 0


class Plain:
    class Inner:
        def is_allowed(self, value):
            return value == b"x"


def wrong(message):
    return "yes"


def fails(message):
    raise LookupError("no table\\nfor it")


def too_many(a, b, c):
    return True


class Nothing:
    pass


number = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def judged(file: Path, name: str, record: Record, config: str | None = None) -> Any:
    with_config = "" if config is None else f" config={quoted(config)}"
    return made(f"python path={file}{name}{with_config}").filter(record)


def test_what_kaf_relays_users_have(file: Path) -> None:
    yes, no = of(b"yes"), of(b"no")
    assert judged(file, "", yes, '{"wanted": "yes"}') is yes
    assert judged(file, "", no, '{"wanted": "yes"}') is DROP


def test_values_records_and_verdicts(file: Path) -> None:
    record = of(b"x")
    assert judged(file, ":of_value", record) is record and judged(file, ":of_value", of(None)) is DROP
    assert judged(file, ":of_record", record) == record._replace(key=b"seen")
    assert judged(file, ":of_record", of(b"drop")) is DROP
    assert judged(file, ":of_record", of(b"dead")) == DeadLetter("why")
    assert judged(file, ":of_record", of(b"route")) == Routed(of(b"route"), "x")


def test_a_config_that_is_no_json_is_a_text(file: Path) -> None:
    record = of(b"", b"plain 'text' \\ here")
    assert judged(file, ":both", record, "plain 'text' \\ here") is record
    assert judged(file, ":both", of(b"", b"x"), "y") is DROP


def test_classes(file: Path) -> None:
    counts = made(f"python path={file}:Counts config=2").filter
    record = of(b"x")
    assert [counts(record) is record for _ in range(3)] == [True, True, False]
    assert judged(file, ":Plain.Inner", record) is record and judged(file, ":Plain.Inner", of(b"y")) is DROP


def test_a_module(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(file.parent))
    record = of(b"x")
    assert made("python path=mine:of_value").filter(record) is record


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (":nothing", "has not a function nothing"),
        (":number", "has not a function number"),
        (":too_many", "a filter takes a value or a `record`, and may take `config` behind it"),
        (":Nothing", "a class of a filter has a method filter or is_allowed"),
    ],
)
def test_what_is_no_filter(file: Path, name: str, line: str) -> None:
    with pytest.raises(PluginError, match=line):
        judged(file, name, of(b""))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1", "has not one of the functions filter, is_allowed, IsAllowed"),
        ("import nothing_like_it", "raised ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def (", "raised SyntaxError"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, source: str, line: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(PluginError, match=line):
        made(f"python path={tmp_path}/bad.py")


def test_what_goes_wrong_is_told_with_its_place(file: Path) -> None:
    with pytest.raises(PluginError, match=r"python: LookupError: no table \(mine\.py, line \d+\)$"):
        judged(file, ":fails", of(b""))
    verdict = made(f"python path={file}:wrong on.error=dead-letter").filter(of(b""))
    assert (
        isinstance(verdict, DeadLetter)
        and "returned str, neither true, false nor a verdict" in verdict.reason
    )


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(PluginError, match="importing no_such_module raised ModuleNotFoundError"):
        made("python path=no_such_module:f")
