"""Kafka Streams' own smoke test, exactly once: windows, joins, suppression, tables, checked by its own driver, while
the application and the broker are killed."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import jars
from support.broker_process import Restarting
from support.librdkafka import create
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Streams", version="4.3.1"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
VERSION = "4.3.1"
SMOKE = "org.apache.kafka.streams.tests.StreamsSmokeTest"
SECONDS = 600.0
TOPICS = "data echo max min min-suppressed min-raw dif sum sws-raw sws-suppressed cnt avg tagg fk"
PROPERTIES = """bootstrap.servers={address}
state.dir={state}
processing.guarantee=exactly_once_v2
num.stream.threads=2
session.timeout.ms=10000
"""


def test_smoke_test_through_kills(tmp_path: Path) -> None:
    broker = Restarting(tmp_path / "broker", {"group.initial.rebalance.delay.ms": "0"})
    for topic in TOPICS.split():
        create(broker.address, topic, 5)
    properties = tmp_path / "streams.properties"
    properties.write_text(PROPERTIES.format(address=broker.address, state=tmp_path / "state"))
    more = jars.streams_tests(VERSION) / "libs"
    running: list[subprocess.Popen[bytes]] = []

    def run(role: str) -> subprocess.Popen[bytes]:
        command = jars.java(VERSION, SMOKE, str(properties), role, heap="384m", more=more)
        with (tmp_path / role).open("ab") as out:
            running.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
        return running[-1]

    def told() -> str:
        return (tmp_path / "run").read_text()

    def processed(count: int) -> Callable[[], bool]:
        def look() -> bool:
            assert application.poll() is None, (tmp_path / "process").read_text()[-3000:]
            seen = re.findall(r"Echo records processed = (\d+)", told())
            return driver.poll() is not None or bool(seen and int(seen[-1]) >= count)

        return look

    try:
        driver, application = run("run"), run("process")
        for count, victim in ((2000, "application"), (8000, "broker"), (14_000, "application")):
            until(processed(count), f"{count} of 20000 records", seconds=SECONDS)
            if victim == "broker":
                broker.restart(signal.SIGKILL)
            else:
                application.kill()
                application.wait()
                application = run("process")
        assert driver.wait(SECONDS) == 0, told()[-3000:]
        assert "SUCCESS" in told().splitlines(), told()[-3000:]
    finally:
        for process in running:
            process.kill()
            process.wait()
        broker.end()
