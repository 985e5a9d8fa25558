"""The same commands, the same tests, on two brokers: ours, and under `--long` a real Apache Kafka.

`LEAFCUTTR_TEST_KAFKA=host:port` names one that runs already. The commands run in this process, which takes a tenth of
the time of a process for each; `../test_clients` runs some as a user does.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer

from leafcuttr.cli.root import cli
from support import jars
from support.broker_process import running_broker
from support.commands import Ran
from support.real_kafka import real_kafka
from support.waiting import until


@pytest.fixture(scope="session", params=["leafcuttr", pytest.param("apache-kafka", marks=pytest.mark.long)])
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Whose broker it is: for the few lines in which the two have to differ."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def address(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("admin")
    if broker_kind == "leafcuttr":
        with running_broker(folder) as broker:
            yield broker.address
        return
    there = os.environ.get("LEAFCUTTR_TEST_KAFKA")
    if there:
        yield there
        return
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with real_kafka(folder) as kafka:
        yield str(kafka)


@pytest.fixture
def run(address: str) -> Callable[..., Ran]:
    """`run("topics", "list")` runs the command against the broker, or another one with `at`."""

    def run(*words: str, at: str = address) -> Ran:
        done = CliRunner().invoke(cli, words, prog_name="leafcuttr", env={"LEAFCUTTR_BOOTSTRAP_SERVER": at})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def topic() -> str:
    """A name that is new even to a Kafka which was there before."""
    return f"topic-{uuid.uuid4().hex[:12]}"


Fill = Callable[..., None]


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
