"""Kafka Connect: a worker in a process of its own, and what its file connectors read and write.

worker = Worker(folder, "4.3.1", "one", "Distributed", {"bootstrap.servers": address, **distributed()})
worker.ask("/connectors", {"name": "source", "config": source(folder, "connected")})
"""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import jars
from support.waiting import free_port

SECONDS = 180.0
STORES = ("configs", "offsets", "status")
_WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "500",
    "plugin.discovery": "only_scan",
}


def distributed(group: str = "workers", topics: str = "connect") -> dict[str, str]:
    """Settings of a worker whose three topics begin so; sources are exactly once."""
    return {
        "group.id": group,
        "config.storage.topic": f"{topics}-configs",
        "config.storage.replication.factor": "1",
        "offset.storage.topic": f"{topics}-offsets",
        "offset.storage.replication.factor": "1",
        "offset.storage.partitions": "5",
        "status.storage.topic": f"{topics}-status",
        "status.storage.replication.factor": "1",
        "status.storage.partitions": "3",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "1000",
        "exactly.once.source.support": "enabled",
        "consumer.isolation.level": "read_committed",
    }


class Worker:
    """A Connect process. It is started again with the same settings by another of the same name. `mode` is Standalone,
    with the `files` of its connectors, or Distributed."""

    def __init__(
        self, folder: Path, version: str, name: str, mode: str, given: Mapping[str, str], *files: Path
    ) -> None:
        self._out = folder / f"{name}.out"
        self._port = free_port()
        self.where = f"127.0.0.1:{self._port}"
        self.refused = ""
        """Why it could not answer the last time."""
        more = {"listeners": f"http://{self.where}"}
        if mode == "Standalone":
            more["offset.storage.file.filename"] = str(folder / "source.offsets")
        settings = folder / f"{name}.properties"
        settings.write_text(_lines({**_WORKER, **more, **given}))
        home = jars.connect(version)
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = [f"-Dlog4j2.configurationFile={home}/log4j2.yaml"]
        main = f"org.apache.kafka.connect.cli.Connect{mode}"
        with self._out.open("ab") as out:
            self.process = subprocess.Popen(
                [*java, *logging, "-cp", f"{home}/libs/*", main, str(settings), *map(str, files)],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    @property
    def said(self) -> str:
        """By all that were started with this name."""
        return self._out.read_text()

    def alive(self) -> bool:
        assert self.process.poll() is None, self.said[-3000:]
        return True

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.alive()
        self.process.send_signal(how)
        self.process.wait(SECONDS)

    def ask(self, path: str, body: Any = None, *, method: str | None = None, seconds: float = SECONDS) -> Any:
        """What its REST interface answers; None while it cannot, or if it has not in so many seconds."""
        self.alive()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                content = answer.read()
                return json.loads(content) if content else {}
        except urllib.error.HTTPError as error:
            if error.code in (404, 409, 500, 503):  # unknown yet, or a rebalance is under way
                self.refused = error.read().decode()
                return None
            raise
        except OSError:
            return None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def connector_file(folder: Path, name: str, settings: Mapping[str, str]) -> Path:
    """For a standalone worker."""
    file = folder / f"{name}.connector"
    file.write_text(_lines({"name": name, **settings}))
    return file


def source(folder: Path, topic: str) -> dict[str, str]:
    """Reads in.txt."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(folder / "in.txt"),
        "topic": topic,
    }


def sink(folder: Path, topic: str) -> dict[str, str]:
    """Writes out.txt."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "2",
        "file": str(folder / "out.txt"),
        "topics": topic,
    }


def numbered(first: int, end: int) -> list[str]:
    return [f"line {number}" for number in range(first, end)]


def add(folder: Path, lines: Sequence[str]) -> None:
    """To what the source reads."""
    with (folder / "in.txt").open("a") as out:
        out.writelines(f"{line}\n" for line in lines)


def written(folder: Path) -> list[str]:
    """What the sink has written."""
    file = folder / "out.txt"
    return file.read_text().splitlines() if file.exists() else []
