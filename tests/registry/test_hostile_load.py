"""Several clients at once whose schemas take for ever: each has an answer, and others are served meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.registry import TESTS, Answer, Asked, RegistryProcess, plugin_settings, running_registry

CLIENTS = 5
PLUGIN = """
import sys
sys.path.append({tests!r})
from leafcuttr_sdk import Plugin
PLUGIN = Plugin("endless", 1, "a format that takes for ever, for tests")

def leafcuttr_register_schema_formats():
    from support.endless_schemas import Endless
    yield Endless()
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryProcess]:
    plugin_settings(tmp_path)
    (tmp_path / "plugins" / "endless.py").write_text(PLUGIN.format(tests=TESTS))
    with running_registry(tmp_path) as running:
        yield running


class Hostile(threading.Thread):
    def __init__(self, url: str, subject: str, done: list[str]) -> None:
        super().__init__()
        self._url, self._subject, self._done = url, subject, done
        self.answer: Answer | None = None
        self.sent = threading.Event()

    def run(self) -> None:
        with httpx.Client(timeout=60, event_hooks={"request": [self._follow]}) as http:
            body = {"schema": self._subject, "schemaType": "ENDLESS"}
            self.answer = Asked(self._url, http)("POST", f"/subjects/{self._subject}/versions", body)
        self._done.append(self._subject)

    def _follow(self, request: httpx.Request) -> None:
        request.extensions["trace"] = self._step

    def _step(self, name: str, _: object) -> None:
        if name == "http11.send_request_body.complete":
            self.sent.set()


def hostile(registry: RegistryProcess, subjects: list[str], done: list[str]) -> list[Hostile]:
    clients = [Hostile(registry.url, each, done) for each in subjects]
    for each in clients:
        each.start()
    return clients


def codes_of(clients: list[Hostile]) -> list[int]:
    for each in clients:
        each.join()
    answers = [each.answer for each in clients if each.answer is not None]
    assert all((each.headers.get("retry-after") == "1") == (each.code == 503) for each in answers)
    return [each.code for each in answers]


@pytest.mark.long
def test_others_are_served_meanwhile(registry: RegistryProcess) -> None:
    done: list[str] = []
    subjects = [f"h-{number}" for number in range(CLIENTS)]
    registry.ask.register("h-first", "a")
    codes = codes_of(hostile(registry, subjects, done))
    assert len(codes) == CLIENTS and set(codes) <= {42201, 503}, codes
    done.clear()
    clients = hostile(registry, subjects, done)
    assert all(each.sent.wait(60) for each in clients)
    registry.ask.register("h-good", "a,b")
    done.append("good")
    assert len(codes_of(clients)) == CLIENTS
    assert done[0] == "good", done
    assert "Traceback" not in registry.broker.log
