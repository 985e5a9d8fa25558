"""Kafka's own Java clients through the kills: VerifiableProducer and VerifiableConsumer of kafka-tools.

Each prints a line of JSON for what it was told. The JVM starts once and goes on through every kill.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crash.acknowledged import Due
from crash.raw_workers import committed
from support import jars
from support.wire_client import WireClient

TOPIC = "java"
NUMBER = 9
VERSION = "4.3.1"
_SETTINGS = """retries=2147483647
delivery.timeout.ms=2000000000
max.block.ms=600000
reconnect.backoff.ms=20
reconnect.backoff.max.ms=100
retry.backoff.ms=20
retry.backoff.max.ms=100
"""


class _Tool:
    """A running tool and the lines it has printed. `failure` says that it has ended by itself."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.failure: str | None = None
        self._out = folder / f"{name}.out"
        self._at = 0
        self._stopping = False
        self._errors = folder / f"{name}.err"
        command = jars.java(VERSION, f"org.apache.kafka.tools.{name}", *arguments, heap="96m")
        with self._out.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)

    def lines(self) -> list[dict[str, Any]]:
        """What has come since the last call."""
        if self.process.poll() is not None and not self._stopping:
            self.failure = f"{self.process.args!r} has ended: {self._errors.read_text()[-2000:]}"
        with self._out.open("rb") as file:
            file.seek(self._at)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._at += len(whole) + len(newline)
        return [json.loads(line) for line in whole.split(b"\n") if line.startswith(b"{")]

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """Ask it to end and wait for that. What it says then of records that it did not send is no fault."""
        self._stopping = True
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.failure = f"{self.process.args!r} does not end"

    def abandon(self) -> None:
        self.process.kill()
        self.process.wait()


class JavaProducer(_Tool):
    """Numbers from 0 on to one partition. It is one of the reader's senders: see `workload.Sender`."""

    def __init__(self, folder: Path, bootstrap: str, *, a_second: int) -> None:
        """`a_second`: how many records it sends in that time, at most."""
        config = folder / "java.properties"
        config.write_text(_SETTINGS)
        super().__init__(
            folder, "VerifiableProducer", "--bootstrap-server", bootstrap, "--topic", TOPIC,
            "--throughput", str(a_second), "--producer.config", str(config),
        )  # fmt: skip
        self.number = NUMBER
        self.topic = TOPIC
        self.partition = 0
        self.idempotent = True
        self.places: dict[int, int] = {}
        self._acknowledged = 0

    def due(self) -> Iterator[Due]:
        """What was acknowledged, in order."""
        for number in range(self.acknowledged):
            yield Due(self.places[number], None, self.value_of(number))

    def value_of(self, number: int) -> bytes:
        return str(number).encode()

    @property
    def acknowledged(self) -> int:
        """How many numbers, from the first on, were acknowledged by now."""
        for line in self.lines():
            if line["name"] == "producer_send_error" and not self._stopping:
                self.failure = f"VerifiableProducer: {line}"
            elif line["name"] == "producer_send_success":
                number = int(line["value"])
                if number != self._acknowledged:
                    self.failure = f"VerifiableProducer: {number} acknowledged after {self._acknowledged - 1}"
                self._acknowledged = number + 1
                self.places[number] = line["offset"]
        return self._acknowledged


class JavaConsumer(_Tool):
    """A group of one that reads what the producer writes and commits by itself."""

    GROUP = "java-group"

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(
            folder, "VerifiableConsumer", "--bootstrap-server", bootstrap, "--topic", TOPIC,
            "--group-id", self.GROUP,
        )  # fmt: skip
        self.read = 0
        self._next = 0
        self._committed = 0

    def check(self, address: str) -> None:
        """It has skipped nothing, and its group is where it was told that it is."""
        for line in self.lines():
            if line["name"] == "records_consumed":
                for part in line["partitions"]:
                    assert part["minOffset"] <= self._next, (
                        f"the Java consumer has read {part['minOffset']}, {self._next} is next"
                    )
                    self.read += max(0, part["maxOffset"] + 1 - self._next)
                    self._next = max(self._next, part["maxOffset"] + 1)
            elif line["name"] == "offsets_committed" and line["success"]:
                self._committed = max(self._committed, *(part["offset"] for part in line["offsets"]))
        with WireClient(address) as client:
            offset = committed(client, self.GROUP, TOPIC)
        assert offset >= self._committed, f"the Java group is at {offset}, {self._committed} was acknowledged"
