"""Kafka's own Java tools on a topic with filters: consumers over gaps, DumpLogSegments over the files, the reason of a
validator at a producer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from support import jars, librdkafka
from support.broker_process import running_broker
from support.forked_start import run_leafcuttr
from support.wire_client import WireClient

NOW = 1_700_000_000_000
COMPLAINTS = ("mismatch", "invalid", "isvalid: false", "not consecutive", "exception", "corrupt")

pytestmark = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))


def java(name: str, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = jars.java("4.3.1", f"org.apache.kafka.tools.{name}", *arguments)
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.long
def test_java_reads_over_gaps_and_takes_the_files_for_sound(tmp_path: Path, plugins: Path) -> None:
    rows = [b"kdkc", b"d", b"ddd", b"kl", b"dk", b"l", b"c", b"ddd"]
    folder = tmp_path / "broker"
    with running_broker(folder, {"lc.plugins.path": str(plugins)}) as broker:
        librdkafka.create(broker.address, "t", lc_filters="sort")
        kept, at = [], 0
        with WireClient(broker.address) as wire:
            for number, row in enumerate(rows):
                fields = (
                    {"producer_id": 5000, "producer_epoch": 0, "base_sequence": at} if number % 2 == 0 else {}
                )
                records = [Stored(n, NOW, None, b"%c%d" % (kind, at + n)) for n, kind in enumerate(row)]
                fields = {**fields, "base_sequence": sum(map(len, rows[:number:2]))} if fields else {}
                assert wire.produce("t", encode_batch(records, **fields)).base_offset == at
                kept += [f"Offset:{at + n}" for n, kind in enumerate(row) if kind in b"kc"]
                at += len(row)
        done = java(
            "consumer.ConsoleConsumer",
            *(
                "--bootstrap-server",
                broker.address,
                "--topic",
                "t",
                "--from-beginning",
                "--timeout-ms",
                "8000",
            ),
            *("--formatter-property", "print.offset=true"),
        )
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == kept
    log = broker.data / "t-0" / f"{0:020d}.log"
    dumped = java("DumpLogSegments", "--files", str(log), "--deep-iteration", "--print-data-log")
    output = dumped.stdout + dumped.stderr
    assert dumped.returncode == 0, output
    assert not [line for line in output.splitlines() if any(word in line.lower() for word in COMPLAINTS)]
    assert dumped.stdout.count("isvalid: true") == len(rows)
    assert dumped.stdout.count("| offset: ") == len(kept)
    verified = run_leafcuttr(("verify", str(broker.data)), seconds=240)
    assert verified.returncode == 0, verified
    # And a start that has to read it all again.
    for path in (*broker.data.glob("*checkpoint*"), *broker.data.glob("t-0/*.index")):
        path.unlink()
    with running_broker(folder, {"lc.plugins.path": str(plugins)}) as again:
        assert librdkafka.watermarks(again.address, "t") == (0, at)


@pytest.mark.long
def test_javas_producer_is_told_the_reason(tmp_path: Path, plugins: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(plugins)}) as broker:
        librdkafka.create(broker.address, "t", lc_validators="short")
        done = java(
            "ConsoleProducer",
            *("--bootstrap-server", broker.address, "--topic", "t"),
            given="long value\n",
        )
    assert "InvalidRecordException" in done.stdout + done.stderr
    assert "the value is longer than 3 bytes" in done.stdout + done.stderr


LATE = """
from leafcuttr_sdk import NotReady, Plugin, ProduceValidatorSpec

PLUGIN = Plugin(name="late", api_version=1, summary="Is ready for its fourth batch.")


def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("late", "is late", Late)


class Late:
    def __init__(self, context):
        self.asked = 0

    def validate(self, record):
        self.asked += 1
        return NotReady("the fourth batch") if self.asked < 4 else None
"""


@pytest.mark.long
def test_javas_producer_tries_again_until_a_validator_is_ready(tmp_path: Path) -> None:
    """An idempotent one, as by default."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "late.py").write_text(LATE)
    with running_broker(tmp_path, {"lc.plugins.path": str(folder)}) as broker:
        librdkafka.create(broker.address, "t", lc_validators="late")
        done = java(
            "ConsoleProducer",
            *("--bootstrap-server", broker.address, "--topic", "t", "--sync"),
            given="one\ntwo\nthree\n",
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0 and "NOT_ENOUGH_REPLICAS" in output, output
        assert [message.value() for message in librdkafka.read(broker.address, "t", 3)] == [
            b"one",
            b"two",
            b"three",
        ]
        assert librdkafka.watermarks(broker.address, "t") == (0, 3)
