"""A second broker beside a `real_kafka`, whose controller is the first one's."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from support import jars
from support.real_kafka import CLUSTER_ID, VERSION, listening
from support.waiting import free_port

SETTINGS = """process.roles=broker
node.id=2
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
"""


class SecondBroker:
    """Keeps its data and its port from start to start. `first` is the folder of the other one."""

    def __init__(self, folder: Path, first: Path, *settings: str) -> None:
        folder.mkdir()
        lines = (first / "server.properties").read_text().splitlines()
        voters = next(line.partition("=")[2] for line in lines if line.startswith("controller.quorum.voters"))
        self._folder, self._port = folder, free_port()
        self._file = folder / "server.properties"
        own = SETTINGS.format(voters=voters, port=self._port, data=folder / "data")
        self._file.write_text("\n".join([own, *settings, ""]))
        form = jars.java(
            VERSION, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._file)
        )
        subprocess.run(form, check=True, capture_output=True)
        self._running = ExitStack()

    def start(self) -> None:
        command = jars.java(VERSION, "kafka.Kafka", str(self._file), heap="256m")
        self._running.enter_context(listening(command, self._port, self._folder / "kafka.log"))

    def kill(self) -> None:
        self._running.close()
