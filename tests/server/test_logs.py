"""The log: one line an event, whatever is in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable

import pytest

from leafcuttr.server.logs import Format, set_up_logging
from leafcuttr.state.security.audit import AUDIT_LOGGER as AUDIT


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[[Format], io.StringIO]:
    root = logging.getLogger("leafcuttr")
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "propagate", root.propagate)
    monkeypatch.setattr(root, "level", root.level)

    def start(form: Format) -> io.StringIO:
        out = io.StringIO()
        monkeypatch.setattr("sys.stderr", out)
        set_up_logging(form, "warning")
        return out

    return start


def log_something() -> None:
    log = logging.getLogger("leafcuttr.x")
    log.info("not shown")
    log.warning("a name %s", "with\nlines\r\x1b[31m and \u2028 signs, and é")
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        log.exception("it failed")


def test_text(written: Callable[[Format], io.StringIO]) -> None:
    out = written("text")
    log_something()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(r"WARNING a name with\nlines\x0d\x1b[31m and \u2028 signs, and é")
    assert "ERROR it failed" in lines[1] and r"ValueError: bad\nvalue" in lines[1]


def test_lines_of_plugins_have_their_names(written: Callable[[Format], io.StringIO]) -> None:
    out = written("text")
    logging.getLogger("leafcuttr.plugin.doorbell").warning("it rings at %s", "nine")
    logging.getLogger("leafcuttr.plugins").warning("of all")
    first, second = out.getvalue().splitlines()
    assert first.endswith("WARNING plugin doorbell: it rings at nine")
    assert second.endswith("WARNING of all")


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_the_audit_log_stay_as_they_are(
    written: Callable[[Format], io.StringIO], form: Format
) -> None:
    out = written(form)
    audit = logging.getLogger(AUDIT)
    level = audit.level
    audit.setLevel(logging.INFO)
    audit.info("%s", '{"a": 1}')
    audit.setLevel(level)
    assert out.getvalue() == '{"a": 1}\n'


def test_json(written: Callable[[Format], io.StringIO]) -> None:
    out = written("json")
    log_something()
    events = [json.loads(line) for line in out.getvalue().split("\n") if line]
    assert [event["level"] for event in events] == ["warning", "error"]
    assert events[0]["message"].startswith("a name with\nlines\r")
    assert "ValueError: bad\nvalue" in events[1]["exception"]


def test_very_long_lines_are_cut(written: Callable[[Format], io.StringIO]) -> None:
    out = written("text")
    logging.getLogger("leafcuttr.x").warning("%s the end", "x" * 100_000)
    assert len(out.getvalue()) < 5000
    assert out.getvalue().endswith("the end\n")
