"""MirrorMaker 2 moves a topic from a real Kafka to LeafCuttr, with the settings of the how-to page."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import jars, librdkafka
from support.broker_process import running_broker
from support.pages import DOCS
from support.real_kafka import VERSION, real_kafka
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
COUNT = 500
SECONDS = 180.0


def test_a_topic_is_mirrored(tmp_path: Path) -> None:
    text = (DOCS / "how-to" / "mirror.properties").read_text()
    with real_kafka(tmp_path / "kafka") as old, running_broker(tmp_path / "new") as new:
        librdkafka.create(str(old), "orders", 2)
        for partition in (0, 1):
            values = [b"%d" % number for number in range(COUNT)]
            librdkafka.send(
                str(old), "orders", values, timestamp=1_700_000_000_000, key=b"key", partition=partition
            )
        settings = tmp_path / "mirror.properties"
        settings.write_text(text.replace("localhost:19092", str(old)).replace("localhost:9092", new.address))
        log = tmp_path / "mirror.log"
        home = jars.mirror(VERSION)
        words = [
            "java",
            "-Xmx256m",
            f"-Dlog4j2.configurationFile={home}/log4j2.yaml",
            "-cp",
            f"{home}/libs/*",
        ]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*words, "org.apache.kafka.connect.mirror.MirrorMaker", str(settings)],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                cwd=tmp_path,
            )
        try:

            def mirrored() -> bool:
                assert process.poll() is None, log.read_text()[-3000:]
                there = librdkafka.admin(new.address).list_topics(timeout=60).topics
                return "orders" in there and all(
                    librdkafka.watermarks(new.address, "orders", partition)[1] >= COUNT
                    for partition in (0, 1)
                )

            until(mirrored, "the records", seconds=SECONDS)
        finally:
            process.kill()
            process.wait()
        for partition in (0, 1):
            read = librdkafka.read(new.address, "orders", COUNT, partition=partition)
            assert [int(message.value()) for message in read] == list(range(COUNT))
            assert {message.key() for message in read} == {b"key"}
            assert {message.timestamp()[1] for message in read} == {1_700_000_000_000}
