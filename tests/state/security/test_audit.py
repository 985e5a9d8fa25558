"""The audit log: a line for each decision, and counts of what is the same again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security import AUDIT_LOGGER
from leafcuttr.state.security import audit as module
from leafcuttr.state.security.acl import AclOperation, AclResourceType
from leafcuttr.state.security.audit import PERIOD_S, AuditLog
from leafcuttr.wire.api import ApiKey
from leafcuttr_sdk.principals import Principal
from support.logs import HandClock

ALICE = ClientIdentity(Principal("User", "al\nice"), "L", "PLAINTEXT", "10.0.0.1", 1)


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(record.getMessage()))

    handler, logger = Kept(), logging.getLogger(AUDIT_LOGGER)
    level = logger.level
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def log(clock: HandClock) -> AuditLog:
    return AuditLog(lambda *_: "because", clock, every=False)


def note(log: AuditLog, name: str = "orders", *, allowed: bool = False) -> None:
    log.note(ALICE, ApiKey.FETCH, AclOperation.READ, AclResourceType.TOPIC, name, allowed=allowed)


def test_a_line(log: AuditLog, clock: HandClock, lines: list[dict[str, Any]]) -> None:
    note(log)
    assert lines == [
        {
            "time_ms": clock.now_ms(),
            "principal": "User:al\nice",
            "address": "10.0.0.1",
            "allowed": False,
            "operation": "READ",
            "resource": "TOPIC:orders",
            "request": "Fetch",
            "rule": "because",
            "count": 1,
        }
    ]


def counts(lines: list[dict[str, Any]]) -> list[tuple[str, bool, int]]:
    return [(one["resource"], one["allowed"], one["count"]) for one in lines]


def test_what_is_the_same_again_comes_once_a_minute(
    log: AuditLog, clock: HandClock, lines: list[dict[str, Any]]
) -> None:
    for _ in range(3):
        note(log)
    note(log, allowed=True)
    note(log, "other")
    assert counts(lines) == [("TOPIC:orders", False, 1), ("TOPIC:orders", True, 1), ("TOPIC:other", False, 1)]
    lines.clear()
    clock.ms += int(PERIOD_S * 1000)
    note(log)
    assert counts(lines) == [("TOPIC:orders", False, 3)]
    note(log)
    log.sweep()
    assert counts(lines) == [("TOPIC:orders", False, 3)], "its minute is not over"
    clock.ms += int(PERIOD_S * 1000)
    log.sweep()
    assert counts(lines)[1:] == [("TOPIC:orders", False, 1)]
    note(log)
    assert counts(lines)[2:] == [("TOPIC:orders", False, 1)], "the first after a pause comes at once"


def test_at_the_end_nothing_is_left(log: AuditLog, lines: list[dict[str, Any]]) -> None:
    note(log)
    note(log)
    note(log, "other")
    log.sweep(everything=True)
    assert counts(lines)[2:] == [("TOPIC:orders", False, 1)]


def test_names_that_clients_make_up_are_bounded(
    log: AuditLog, lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    note(log, "0")
    note(log, "0")
    for number in range(1, 10):
        note(log, str(number))
    note(log, "x" * 100_000)
    assert ("TOPIC:0", False, 1) in counts(lines)[1:], "what was counted is written when it is forgotten"
    assert len(log._counted) == 3  # its size is the point
    assert len(lines[-1]["resource"]) < 400
