"""The command in this process or in one of its own, against our broker and, under `--long`, a real Apache Kafka.

`address` is that of both brokers, one after the other; tests of what only ours has, or of what depends on no broker,
take `own_address`. `LEAFCUTTR_TEST_KAFKA=host:port` names a Kafka that runs already.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer

from leafcuttr.cli.root import cli
from support import jars
from support.broker_process import clean_environ, running_broker
from support.commands import Ran
from support.data_directories import KAFKA_FILES, broker_on
from support.forked_start import run_leafcuttr
from support.real_kafka import real_kafka
from support.waiting import until

Run = Callable[..., Ran]
Fill = Callable[..., None]


@pytest.fixture(scope="session", params=["leafcuttr", pytest.param("apache-kafka", marks=pytest.mark.long)])
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Which broker it is: for the few lines in which the two have to differ."""
    kind: str = request.param
    return kind


# Retention never starts by itself: some records of the tests are as old as their timestamps say.
_SETTINGS: Final = {"num.partitions": "2", "log.retention.check.interval.ms": "86400000"}


@pytest.fixture(scope="session")
def address(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cli")
    if broker_kind == "leafcuttr":
        with running_broker(folder, _SETTINGS) as broker:
            yield broker.address
        return
    there = os.environ.get("LEAFCUTTR_TEST_KAFKA")
    if there:
        yield there
        return
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with real_kafka(folder, *(f"{key}={value}" for key, value in _SETTINGS.items())) as kafka:
        yield str(kafka)


@pytest.fixture(scope="session")
def own_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("own"), _SETTINGS) as broker:
        yield broker.address


@pytest.fixture
def run(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`run("topics", "list")` runs the command in this process, which takes a tenth of the time of a process for each.

    `stdin` is its input, a file as in `< file`; `at` is another broker.
    """

    def run(*words: object, stdin: bytes = b"", at: str = address) -> Ran:
        source = tmp_path / "standard-input"
        source.write_bytes(stdin)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        with source.open() as file, monkeypatch.context() as patch:
            patch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", at)
            for name, stream in (("stdin", file), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            try:
                cli.main([str(word) for word in words], prog_name="leafcuttr")
            except SystemExit as ended:
                status = ended.code or 0
        assert isinstance(status, int)
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
        return Ran(status, *texts)

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def run_process(own_address: str) -> Run:
    """The same in a process of its own, as a user runs it."""

    def run(*words: str, stdin: bytes = b"", at: str = own_address, timeout: float = 120) -> Ran:
        done = run_leafcuttr(
            words, stdin=stdin, seconds=timeout, environ=clean_environ({"LEAFCUTTR_BOOTSTRAP_SERVER": at})
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def topic() -> str:
    """A name that is new even to a Kafka which was there before."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """A copy of a data directory that Kafka wrote."""
    return Path(shutil.copytree(KAFKA_FILES, tmp_path / "kafka"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An empty data directory of our own, closed in good order."""
    directory = tmp_path / "own"
    with broker_on(directory):
        pass
    return directory


@pytest.fixture
def fill(address: str) -> Fill:
    """`fill(topic, 5)` sends five records to partition 0, `timestamps=[...]` one for each of these times in ms."""

    def fill(topic: str, number: int = 0, *, partition: int = 0, timestamps: tuple[int, ...] = ()) -> None:
        producer = Producer({"bootstrap.servers": address})
        failed: list[Any] = []
        for timestamp in timestamps or (0,) * number:
            producer.produce(
                topic,
                b"value",
                partition=partition,
                timestamp=timestamp,
                on_delivery=lambda error, _: error and failed.append(error),
            )
            producer.flush(60)
        assert not failed

    return fill


@pytest.fixture
def member(address: str) -> Iterator[Callable[..., Any]]:
    """`member(group, topic)` is a consumer that has been given its partitions; closed at the end of the test."""
    made: list[Any] = []

    def member(group: str, topic: str, **settings: Any) -> Any:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "client.id": "probe",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        made.append(consumer)
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        until(assigned, "an assignment", seconds=90)
        return consumer

    yield member
    for consumer in made:
        consumer.close()
