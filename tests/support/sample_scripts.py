"""Commands as documents write them: `kafka-acls.sh` and the like are the classes of Kafka's jars, and what a person
would type is given to those that ask.

    run = Scripts(folder, "3.9.1", {"broker1:9092": address})
    told = run("kafka-acls.sh --bootstrap-server broker1:9092 --list")
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support import jars

_CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}
_OF_3 = {
    "kafka-acls.sh": "kafka.admin.AclCommand",
    "kafka-console-producer.sh": "kafka.tools.ConsoleProducer",
}


@dataclass(frozen=True)
class Scripts:
    """Runs commands in `folder`, with Kafka's scripts of this version. `instead` are addresses and paths of this test
    for those of the document."""

    folder: Path
    version: str
    instead: Mapping[str, str] = field(default_factory=dict)

    def text(self, sample: str) -> str:
        """A sample with what is there."""
        for written, found in self.instead.items():
            sample = sample.replace(written, found)
        return sample

    def __call__(self, command: str, *more: str, given: str = "", status: int = 0) -> str:
        """What one command prints; its lines may be continued. It has no terminal, so that it reads what is given."""
        words = [*shlex.split(self.text(command).replace("\\\n", " ")), *more]
        name = words[0].removeprefix("bin/")
        if name in _CLASSES:
            found = (_OF_3 if self.version < "4" else {}).get(name, _CLASSES[name])
            words = [*jars.java(self.version, found), *words[1:]]
        done = subprocess.run(
            words,
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            start_new_session=True,
        )
        assert done.returncode == status, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout + done.stderr
