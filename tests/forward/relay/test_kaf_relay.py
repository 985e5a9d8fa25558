"""kaf-relay itself beside ours, with one file: what each makes of a topic, and that each goes on where the other has
stopped."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forward.clusters import create, produce, read, values
from support import kaf_relay
from support.broker_process import clean_environ
from support.live_broker import LiveBroker

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PARTITIONS = 1
"""Of today's kaf-relay all records go to partition 0 where none is named."""
_NUMBERS = itertools.count(1)


@cache
def built() -> Path | str:
    return kaf_relay.program()


@pytest.fixture
def program() -> Path:
    found = built()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def topic(edge: LiveBroker) -> str:
    """With 200 records in each partition."""
    name = f"both-{next(_NUMBERS)}"
    create(edge.address, name, PARTITIONS)
    for partition in range(PARTITIONS):
        produce(edge.address, name, expected(partition, 0, 200), partition, **{"compression.type": "lz4"})
    return name


def expected(partition: int, first: int, end: int) -> list[str]:
    return [f"{partition}:{number}" for number in range(first, end)]


def more(edge: LiveBroker, topic: str, first: int, end: int) -> None:
    for partition in range(PARTITIONS):
        produce(edge.address, topic, expected(partition, first, end), partition)


def ours(file: Path, *words: str) -> dict[str, Any]:
    """What `leafcuttr relay` says of itself."""
    command = [
        sys.executable,
        "-m",
        "leafcuttr",
        "relay",
        "--config",
        str(file),
        "--stop-at-end",
        "--json",
        *words,
    ]
    done = subprocess.run(
        command, env=clean_environ(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def seen(address: str, topic: str, partition: int) -> list[Any]:
    """Records without the header that kaf-relay adds, and without the time, which it does not keep."""
    return [
        (
            each.offset(),
            each.key(),
            each.value(),
            [header for header in each.headers() or () if header[0] != "_t"],
        )
        for each in read(address, topic, [partition])
    ]


def test_both_make_the_same(
    program: Path, tmp_path: Path, edge: LiveBroker, hub: LiveBroker, topic: str
) -> None:
    for name in ("theirs", "ours"):
        create(hub.address, f"{topic}-{name}", PARTITIONS)
    file = kaf_relay.file_of(tmp_path / "a", edge.address, hub.address, {topic: f"{topic}-theirs"})
    kaf_relay.run_to_the_end(program, file)
    file = kaf_relay.file_of(tmp_path / "b", edge.address, hub.address, {topic: f"{topic}-ours"})
    assert ours(file, "--name", f"{topic}-ours", "--at-least-once")["written"] == 200 * PARTITIONS
    for partition in range(PARTITIONS):
        assert seen(hub.address, f"{topic}-ours", partition) == seen(
            hub.address, f"{topic}-theirs", partition
        )


def test_we_go_on_where_it_stopped(
    program: Path, tmp_path: Path, edge: LiveBroker, hub: LiveBroker, topic: str
) -> None:
    copy = f"{topic}-copy"
    create(hub.address, copy, PARTITIONS)
    file = kaf_relay.file_of(tmp_path, edge.address, hub.address, {topic: copy})
    kaf_relay.run_to_the_end(program, file)
    more(edge, topic, 200, 300)
    assert ours(file, "--name", topic)["written"] == 100 * PARTITIONS
    for partition in range(PARTITIONS):
        assert values(hub.address, copy, partition) == expected(partition, 0, 300)


def test_it_goes_on_where_we_stopped_without_transactions(
    program: Path, tmp_path: Path, edge: LiveBroker, hub: LiveBroker, topic: str
) -> None:
    copy = f"{topic}-copy"
    create(hub.address, copy, PARTITIONS)
    file = kaf_relay.file_of(tmp_path, edge.address, hub.address, {topic: copy})
    assert ours(file, "--name", topic, "--at-least-once")["written"] == 200 * PARTITIONS
    more(edge, topic, 200, 300)
    kaf_relay.run_to_the_end(program, file)
    for partition in range(PARTITIONS):
        assert values(hub.address, copy, partition) == expected(partition, 0, 300)
