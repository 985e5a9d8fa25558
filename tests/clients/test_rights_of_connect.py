"""Kafka Connect over SASL_SSL has the rights of the page, and no others: what is missing it names, and goes on once it
is given; each line is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from support import jars
from support.connect_worker import (
    SECONDS,
    Worker,
    add,
    connector_file,
    distributed,
    numbered,
    sink,
    source,
    written,
)
from support.needed_rights import CONNECT, CONNECTORS, STANDALONE, Need, Rights, authorized_broker, client
from support.secured_broker import SecuredBroker
from support.waiting import until

VERSION = "4.3.1"
pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Connect", version=VERSION),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(600),
]
LINES = 100
PATIENCE_S = 10
"""A worker that lacks a right may answer after minutes only."""
Fresh = Callable[[str], str]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("connect")) as broker:
        yield broker


class Pipe:
    """A source and a sink with a topic between them, and the worker that runs them: Distributed, where the source is
    exactly once, or Standalone."""

    def __init__(self, secured: SecuredBroker, folder: Path, app: str, mode: str) -> None:
        log_in = client(secured)
        self._folder, self._mode = folder, mode
        self._settings = {
            f"{whose}{name}": value
            for whose in ("", "admin.", "consumer.", "producer.")
            for name, value in log_in.items()
        }
        self._connectors = {
            "source": source(folder, f"topic-{app}"),
            f"sink-{app}": sink(folder, f"topic-{app}"),
        }
        self._files: list[Path] = []
        if mode == "Distributed":
            self._settings |= distributed(app, app)
            self._connectors["source"]["exactly.once.support"] = "required"
        else:
            self._files += [connector_file(folder, name, given) for name, given in self._connectors.items()]
        self.worker = self._start()

    def _start(self) -> Worker:
        return Worker(self._folder, VERSION, "worker", self._mode, self._settings, *self._files)

    def said(self) -> str:
        """By the worker and its tasks; a distributed one is given the connectors, as soon as it takes them."""
        traces = ""
        if self.worker.process.poll() is None:
            for name, settings in self._connectors.items():
                status = self.worker.ask(f"/connectors/{name}/status")
                if status is None and self._mode == "Distributed":
                    self.worker.ask("/connectors", {"name": name, "config": settings}, seconds=PATIENCE_S)
                elif status is not None:
                    traces += "".join(each.get("trace", "") for each in status["tasks"])
        # What it says is read last: a request may have waited for long.
        return self.worker.said + self.worker.refused + traces

    def passes(self, lines: list[str]) -> bool:
        """Whether all have arrived; what has failed is started again."""
        if self.worker.process.poll() is not None:
            self.worker = self._start()
        self.said()
        for name in self._connectors:
            status = self.worker.ask(f"/connectors/{name}/status")
            if status and any(each["state"] == "FAILED" for each in (status["connector"], *status["tasks"])):
                self.worker.ask(f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", {})
        return len(written(self._folder)) >= len(lines)


@pytest.mark.parametrize("missing", [*CONNECT, *CONNECTORS], ids=str)
def test_a_right_is_missing(secured: SecuredBroker, fresh: Fresh, tmp_path: Path, missing: Need) -> None:
    check(secured, tmp_path, fresh("app"), "Distributed", (*CONNECT, *CONNECTORS), missing)


@pytest.mark.parametrize("missing", STANDALONE, ids=str)
def test_a_right_is_missing_to_a_standalone_worker(
    secured: SecuredBroker, fresh: Fresh, tmp_path: Path, missing: Need
) -> None:
    check(secured, tmp_path, fresh("app"), "Standalone", STANDALONE, missing)


def check(
    secured: SecuredBroker, folder: Path, app: str, mode: str, needs: Sequence[Need], missing: Need
) -> None:
    rights, lines = Rights(secured), numbered(0, LINES)
    rights.give([one for one in needs if one != missing], app)
    rights.create([f"topic-{app}"])
    add(folder, lines)
    pipe = Pipe(secured, folder, app, mode)
    try:
        rights.wait_for(missing, app, pipe.said)
        rights.give([missing], app)
        if missing in CONNECT:
            # What a worker lacks it asks for when it starts.
            pipe.worker.kill()
        until(lambda: pipe.passes(lines), "all lines", seconds=SECONDS, pause=0.3)
    finally:
        pipe.worker.kill()
    assert written(folder) == lines
    assert rights.read(f"topic-{app}") == lines
