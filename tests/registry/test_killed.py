"""Killed while clients register: no id that was answered is lost, changed or given twice."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.broker_process import Restarting
from support.registry import SETTINGS, Asked, plugin_settings
from support.waiting import free_port

CLIENTS = 4


class Client(threading.Thread):
    """Registers one schema after the other, deletes some of them for good, and notes what was answered."""

    def __init__(self, number: int, url: str, stop: threading.Event) -> None:
        super().__init__()
        self._number = number
        self._url = url
        self._stop_it = stop
        self.answered: list[tuple[str, str, int]] = []
        """Subject, schema and id."""
        self.gone: set[str] = set()

    def run(self) -> None:
        with httpx.Client(timeout=10) as http:
            ask = Asked(self._url, http)
            number = 0
            while not self._stop_it.is_set():
                number += 1
                subject, schema = f"s-{self._number}-{number}", f"a,b{self._number},c{number}"
                try:
                    self._register(ask, subject, schema, number)
                except (httpx.HTTPError, AssertionError):
                    time.sleep(0.05)

    def _register(self, ask: Asked, subject: str, schema: str, number: int) -> None:
        found: Any = ask.register(subject, schema)
        self.answered.append((subject, schema, found["id"]))
        if number % 5 == 0:
            self.gone.add(subject)
            ask("DELETE", f"/subjects/{subject}")
            ask("DELETE", f"/subjects/{subject}?permanent=true")


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_killed_while_clients_register(tmp_path: Path, kills: int) -> None:
    port = free_port()
    settings = {**SETTINGS, **plugin_settings(tmp_path), "lc.schema.registry.port": str(port)}
    broker = Restarting(tmp_path / "broker", settings)
    stop = threading.Event()
    url = f"http://127.0.0.1:{port}"
    clients = [Client(number, url, stop) for number in range(CLIENTS)]
    try:
        for client in clients:
            client.start()
        for kill in range(1, kills + 1):
            while min(len(client.answered) for client in clients) < kill * 10:
                time.sleep(0.01)
            broker.restart(signal.SIGKILL)
        stop.set()
        for client in clients:
            client.join()
        with httpx.Client(timeout=60) as http:
            ask = Asked(url, http)
            answered = [each for client in clients for each in client.answered]
            gone = {subject for client in clients for subject in client.gone}
            ids = [id for _, _, id in answered]
            assert len(set(ids)) == len(ids), "an id was given twice"
            for subject, schema, id in answered:
                if subject not in gone:
                    assert ask.get(f"/schemas/ids/{id}")["schema"] == schema
                    assert ask.get(f"/subjects/{subject}/versions/latest")["id"] == id
            assert ask.register("last", "last")["id"] > max(ids)
    finally:
        stop.set()
        broker.end()
