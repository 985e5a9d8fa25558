"""Every example line of a help text does what it says, against a real broker; test_examples.py only parses them.

The lines are run as they stand, in a folder that has what they name; only addresses and absolute paths are others.
What would not end (a broker, a consumer that follows) or only measures is not run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from leafcuttr.cli.plugins.new import render
from leafcuttr.cli.reference import examples
from leafcuttr.cli.root import cli
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, running_broker

KAFKA_DIRECTORY = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
LINES = list(examples())
TOPICS = ("orders", "logs", "events", "greetings", "scores")
ENDLESS = re.compile(
    r"leafcuttr (serve|demo|perf|completion)\b|--follow\b|leafcuttr (relay|mirror)\b(?!.*--(stop-at-end|dry-run))"
)
_SHELL = re.compile(r"[<>;&$`|]")


def calls(line: str) -> list[list[str]]:
    """The words of each program of a pipeline, without variables in front and files behind."""
    line = re.sub(r"^source <\((.*)\)$", r"\1", line)
    line = re.sub(r"\s>\s*\S+$", "", line)
    programs: list[list[str]] = [[]]
    for word in shlex.split(line, comments=True):
        if word == "|":
            programs.append([])
        elif programs[-1] or not re.match(r"[A-Z_]+=", word):
            programs[-1].append(word)
    return programs


def test_there_are_examples_of_every_command() -> None:
    from leafcuttr.cli.reference import walk

    with_examples = {path for path, _ in LINES}
    without = [
        context.command_path
        for context, command in walk()
        if not isinstance(command, click.Group) and context.command_path not in with_examples
    ]
    assert without == []


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("examples")) as broker:
        yield broker


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that had some topics."""
    with running_broker(tmp_path_factory.mktemp("stopped")) as broker:
        for topic in TOPICS:
            librdkafka.create(broker.address, topic, 2)
            librdkafka.send(broker.address, topic, [b"one", b"two"], timestamp=1_700_000_000_000)
    return broker.data


@pytest.fixture
def folder(tmp_path: Path, stopped: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the examples name is here: a configuration, a data directory, files."""
    shutil.copytree(stopped, tmp_path / "leafcuttr-data")
    (tmp_path / "server.properties").write_text("log.retention.hours=48\nlisteners=PLAINTEXT://localhost:0\n")
    (tmp_path / "events.log").write_text("first\nsecond\n")
    (tmp_path / "ca.pem").write_text("")
    for name in ("admin", "alice"):
        (tmp_path / f"{name}.secret").write_text(f"{name}'s\n")
    (tmp_path / "records.jsonl").write_text(
        '{"key": "a", "value": {"level": 1, "card": "4111 1111 1111 1111"}}\n'
    )
    for path, text in render("parcel-watch"):
        (tmp_path / "parcel-watch" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "parcel-watch" / path).write_text(text)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "orders.yaml").write_text("name: orders\n")
    (tmp_path / "front.jpg").write_bytes(bytes(range(256)))
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("KAFKA_"):
            monkeypatch.delenv(name)
    return tmp_path


def ensure(address: str) -> None:
    """The topics and the group of the examples exist."""
    client = librdkafka.admin(address)
    there = client.list_topics(timeout=30).topics
    for topic in TOPICS:
        if topic not in there:
            librdkafka.create(address, topic, 2)
            librdkafka.send(address, topic, [b"one", b"two"], timestamp=1_700_000_000_000)
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "billing", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def prepare(line: str, address: str, folder: Path) -> str:
    """The line as it can be run here, after what it takes for granted has been done."""
    line = re.sub(r"\b(localhost|kafka\.example\.org|[a-z]+\.example\.(?:com|org)):\d+", address, line)
    for path in ("/var/lib/kafka", "/mnt/old-kafka"):
        if path in line:
            shutil.rmtree(folder / "kafka", ignore_errors=True)
            shutil.copytree(KAFKA_DIRECTORY, folder / "kafka")
            line = line.replace(path, str(folder / "kafka"))
    if "--metadata" in line:
        (folder / "leafcuttr-data" / "metadata.sqlite").write_bytes(b"damaged" * 1000)
    if "plugins new" in line:
        shutil.rmtree(folder / "parcel-watch", ignore_errors=True)
    if "topics create" in line:
        for topic in calls(line)[0][3:]:
            if topic in TOPICS:
                librdkafka.delete(address, topic)
    if "--topic orders" in line and "--adopt" in line:
        line = line.replace("--topic orders", "--topic segments")  # what that directory has
    line = line.replace("/var/lib/leafcuttr", str(folder / "leafcuttr-data"))
    return line.replace("=/data", f"={folder}/leafcuttr-data")


def allowed(line: str) -> tuple[int, ...]:
    """The statuses of all commands; `spark run` says by others that no next run would do better."""
    return (0, 1, 2, 3) if line.startswith("leafcuttr spark run") else (0, 1)


RUN = [path for path in dict.fromkeys(path for path, _ in LINES) if path != "leafcuttr serve"]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("path", RUN)
def test_they_run(path: str, broker: BrokerProcess, folder: Path) -> None:
    """One after the other in one folder; each ends with a status that is documented, and none for wrong usage."""
    for where, line in LINES:
        if where == path and not ENDLESS.search(line):
            ensure(broker.address)
            line = prepare(line, broker.address, folder)
            status, said = run(line, {"LEAFCUTTR_BOOTSTRAP_SERVER": broker.address})
            assert status in allowed(line), f"{line}: status {status}\n{said}"
            assert not said.startswith("Usage:"), f"{line}\n{said}"
            assert "Traceback" not in said
            assert said.strip() or status == 0, line


def with_programs(environ: dict[str, str]) -> dict[str, str]:
    """So that a shell finds `leafcuttr`."""
    return environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def run(line: str, environ: dict[str, str]) -> tuple[int, str]:
    """In this process where the line is a plain command, by bash where it is more."""
    if _SHELL.search(line):
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            env=clean_environ(with_programs(environ)),
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr
    (last,) = calls(line)
    variables = dict(word.split("=", 1) for word in shlex.split(line) if re.match(r"[A-Z_]+=", word))
    words = [
        path
        for word in last[1:]
        for path in (sorted(map(str, Path().glob(word))) if "/*" in word else [word])
    ]
    result = CliRunner().invoke(cli, words, env=environ | variables)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output
