"""A second broker beside a `real_kafka`, whose controller is the first one's."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from support import jars
from support.real_kafka import CLUSTER_ID, VERSION, listening
from support.waiting import free_port

OWN = """process.roles=broker
node.id=2
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={data}
"""


class SecondBroker:
    """Keeps its data and its port from start to start. `first` is the folder of the other one, whose settings it has
    too: brokers with different `offsets.topic.num.partitions` name different coordinators of a group, or none."""

    def __init__(self, folder: Path, first: Path) -> None:
        folder.mkdir()
        self._folder, self._port = folder, free_port()
        self._file = folder / "server.properties"
        shared = (first / "server.properties").read_text()
        # Java takes the last one of a name.
        self._file.write_text(shared + "\n" + OWN.format(port=self._port, data=folder / "data"))
        form = jars.java(
            VERSION, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._file)
        )
        subprocess.run(form, check=True, capture_output=True, timeout=90)
        self._running = ExitStack()

    def start(self) -> None:
        command = jars.java(VERSION, "kafka.Kafka", str(self._file), heap="256m")
        self._running.enter_context(listening(command, self._port, self._folder / "kafka.log"))

    def kill(self) -> None:
        self._running.close()
