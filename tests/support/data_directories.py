"""Data directories without a running broker: one that Kafka wrote, brokers opened on one, offline commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import parse
from leafcuttr.wire.records import Record, decode_records
from leafcuttr_sdk import TopicPartition
from support.live_broker import opening
from support.logs import HandClock

KAFKA_FILES: Final = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
FIRST: Final = "segments-0/00000000000000000000"
"""A segment in it, without the suffix."""


def run(*arguments: object) -> Result:
    """`leafcuttr` with these arguments, in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@contextmanager
def broker_on(directory: Path) -> Iterator[Broker]:
    """A broker without sockets on this directory (see `live_broker.opening`), stopped cleanly at the end."""
    with opening(directory, HandClock()) as start:
        yield start()


def create(broker: Broker, topic: str) -> None:
    """A topic of one partition."""
    trio.run(broker.topics.create, topic, 1, {})


def records_of(broker: Broker, topic: str, partition: int = 0) -> list[Record]:
    log = broker.logs.logs[TopicPartition(topic, partition)]
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        region = log.read(offset, 1 << 20, at_least_one=True).region
        assert region is not None
        content, at = region.read(), 0
        while at < len(content):
            header = parse(content, at)
            if not header.is_control:
                found += decode_records(content[at : at + header.size])
            offset = header.next_offset
            at += header.size
    return found
