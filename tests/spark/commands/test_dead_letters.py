"""`leafcuttr spark dlq`."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from leafcuttr.cli.root import cli
from support import librdkafka
from support.live_broker import LiveBroker

pytest.importorskip("yaml")
pytest.importorskip("sqlglot")

_NUMBERS = count()
TEXT = """
pipeline: {name}
cluster: {{bootstrap.servers: "{address}"}}
sources:
  orders: {{topic: {name}, key: none, value: text}}
sinks:
  out: {{from: orders, topic: out, value: {{format: text, columns: [value]}}}}
dead-letters: {{topic: {name}-dead}}
"""


def ran(*words: object) -> Result:
    return CliRunner().invoke(cli, ["spark", "dlq", *map(str, words)])


@pytest.fixture
def file(live: LiveBroker, tmp_path: Path) -> Path:
    """A pipeline with three dead letters."""
    name = f"letters-{next(_NUMBERS)}"
    librdkafka.create(live.address, name, 1)
    librdkafka.create(live.address, f"{name}-dead", 1)
    producer = Producer({"bootstrap.servers": live.address})
    for number, (step, reason) in enumerate(
        [("sources.orders", "not JSON"), ("steps[0] (large)", "it raised"), ("steps[0] (large)", "late: 5 s")]
    ):
        about = {"reason": reason, "step": step, "topic": name, "partition": "0", "offset": str(number)}
        headers = [(f"lc.dead.letter.{part}", text.encode()) for part, text in about.items()]
        producer.produce(f"{name}-dead", b"v%d\xff" % number, b"k", headers=headers, timestamp=99)
    producer.flush(30)
    path = tmp_path / f"{name}.yaml"
    path.write_text(TEXT.format(name=name, address=live.address))
    return path


def test_they_are_shown(file: Path) -> None:
    done = ran("list", file)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["letter", "record", "step", "reason", "key", "value"]
    assert lines[1].split() == ["0:0", f"{file.stem}:0:0", "sources.orders", "not", "JSON", "k", r"v0\xff"]
    rows = json.loads(ran("list", file, "--json").stdout)
    assert [row["reason"] for row in rows] == ["not JSON", "it raised", "late: 5 s"]
    assert rows[0] | {"topic": "t"} == {
        "partition": "0", "offset": "0", "at_ms": 99, "reason": "not JSON", "step": "sources.orders", "topic": "t",
        "key": "k", "value": r"v0\xff", "letter": "0:0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (["--step", "large"], ["it raised", "late: 5 s"]),
        (["--step", "sources.orders"], ["not JSON"]),
        (["--step", "arge"], []),
        (["--reason", "JSON"], ["not JSON"]),
        (["--topic", "other"], []),
        (["--limit", "1"], ["not JSON"]),
    ],
)
def test_some_of_them(file: Path, words: list[str], reasons: list[str]) -> None:
    rows = json.loads(ran("list", file, "--json", *words).stdout)
    assert [row["reason"] for row in rows] == reasons


def test_they_are_sent_back_once(file: Path, live: LiveBroker) -> None:
    assert ran("replay", file, "--dry-run").stdout == "3 records to send back\n"
    assert ran("replay", file, "--step", "large").stdout == "2 records sent back\n"
    found = librdkafka.read(live.address, file.stem, 2)
    assert [message.value() for message in found] == [b"v1\xff", b"v2\xff"]
    assert json.loads(ran("replay", file, "--json").stdout) == {"records": 0, "sent": True}


def test_what_fails_is_a_line(file: Path) -> None:
    text = file.read_text()
    file.write_text(text.replace(f"{file.stem}-dead", "nowhere"))
    done = ran("list", file)
    assert done.exit_code == 1
    assert "has no topic nowhere" in done.stderr
    file.write_text(text[: text.index("dead-letters")])
    done = ran("list", file)
    assert (done.exit_code, done.stderr) == (
        1,
        f"leafcuttr: {file.stem} has no dead letters: its file does not name a topic for them\n",
    )
    file.write_text(text.replace("bootstrap.servers:", "security.protocol: nonsense, bootstrap.servers:"))
    done = ran("list", file)
    assert done.exit_code == 1
    assert "security.protocol" in done.stderr
