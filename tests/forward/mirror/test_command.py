"""`leafcuttr mirror`: cluster to cluster, topic to topic, within a cluster; produced before it is committed."""

from __future__ import annotations

import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import leafcuttr_forward
from forward.clusters import LOGGER, create, open_peer, produce, until, values
from forward.conftest import started
from leafcuttr_forward.mirror.ends import parse_end, properties_of
from leafcuttr_forward.mirror.spec import MirrorOptions, mirror_run
from leafcuttr_forward.relay.running import Run
from leafcuttr_sdk.testing import check_command, run_command
from leafcuttr_sdk.testing.commands import CommandResult
from support.live_broker import LiveBroker
from support.secured_broker import secured_broker

_NUMBERS = itertools.count(1)
MIRROR = next(each for each in leafcuttr_forward.leafcuttr_register_cli_commands() if each.name == "mirror")


def mirror(*words: str) -> CommandResult:
    return run_command(MIRROR, *words, plugin=leafcuttr_forward)


@pytest.fixture
def topic(edge: LiveBroker) -> str:
    name = f"mirrored-{next(_NUMBERS)}"
    create(edge.address, name, 3)
    for partition in range(3):
        produce(edge.address, name, [f"{partition}:{number}" for number in range(20)], partition)
    return name


def whole(address: str, topic: str) -> None:
    for partition in range(3):
        assert values(address, topic, partition) == [f"{partition}:{number}" for number in range(20)]


def test_it_keeps_the_contract_of_commands() -> None:
    check_command(MIRROR, plugin=leafcuttr_forward)


def test_a_topic_to_a_topic_of_another_cluster(edge: LiveBroker, hub: LiveBroker, topic: str) -> None:
    done = mirror(f"{edge.address}/{topic}", f"{hub.address}/{topic}-copy", "--stop-at-end", "--json")
    found = json.loads(done.out)
    assert (found["status"], found["read"], found["written"]) == (0, 60, 60)
    whole(hub.address, f"{topic}-copy")


def test_files_of_clients_say_how_each_end_is_reached(tmp_path: Path) -> None:
    """As `kafka-topics.sh --command-config` has them: the source with TLS, both with a password."""
    with secured_broker(tmp_path / "secured") as broker:
        create(broker.addresses["PLAINTEXT"], "kept")
        produce(broker.addresses["PLAINTEXT"], "kept", ["a", "b"])
        words: list[str] = []
        for end, listener, mechanism in (
            ("source", "SASL_SSL", "SCRAM-SHA-256"),
            ("target", "SASL_PLAINTEXT", "SCRAM-SHA-512"),
        ):
            file = tmp_path / f"{end}.properties"
            given = broker.client(listener, mechanism)
            file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            words += [f"--{end}-config", str(file)]
        source, target = broker.addresses["SASL_SSL"], broker.addresses["SASL_PLAINTEXT"]
        done = mirror(f"{source}/kept", f"{target}/copy", "--stop-at-end", *words)
        assert done.status == 0, done.err
        assert values(broker.addresses["PLAINTEXT"], "copy") == ["a", "b"]


def test_a_topic_to_another_one_of_the_same_cluster(edge: LiveBroker, topic: str) -> None:
    done = mirror(f"{edge.address}/{topic}", f"{edge.address}/{topic}-copy", "--stop-at-end")
    assert done.status == 0, done.err
    assert "60 records read, 60 written; lag 0" in done.out
    whole(edge.address, f"{topic}-copy")


def test_a_topic_or_a_cluster_to_itself_is_refused(edge: LiveBroker, topic: str) -> None:
    for words, what in (
        ((f"{edge.address}/{topic}", f"{edge.address}"), topic),
        ((edge.address, edge.address), "topics"),
    ):
        done = mirror(*words, "--stop-at-end")
        assert (done.status, done.out) == (1, "")
        line = f"leafcuttr: source and target are the same cluster: {what} would be copied to itself"
        assert done.err.splitlines()[-1] == line


def test_a_cluster_to_a_cluster(edge: LiveBroker, hub: LiveBroker, topic: str) -> None:
    done = mirror(
        edge.address, hub.address, "--topics", "mirrored-.*", "--exclude", ".*-copy", "--stop-at-end"
    )
    assert done.status == 0, done.err
    whole(hub.address, topic)
    # Nothing more at the second run, and what has come since.
    produce(edge.address, topic, ["0:20"])
    done = mirror(
        edge.address, hub.address, "--topics", "mirrored-.*", "--exclude", ".*-copy", "--stop-at-end"
    )
    assert values(hub.address, topic)[-2:] == ["0:19", "0:20"]


@pytest.mark.parametrize(
    "words", [("a",), ("a:x", "b"), ("a/", "b"), ("a", "b", "--topics", "("), ("a", "b", "--metrics", "c")]
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    assert mirror(*words).status == 2


def test_ends_that_do_not_go_together() -> None:
    done = mirror("a:1", "b:1/t")
    assert (done.status, done.out) == (1, "")
    assert done.err == "leafcuttr: the target names the topic t, and the source none: write a:1/TOPIC\n"


async def test_what_is_committed_at_the_source_is_at_the_target(
    edge: LiveBroker, hub: LiveBroker, topic: str
) -> None:
    """At any moment: the promise of Kafka Topic Mirror, and that of exactly once above it."""
    source, target = parse_end(f"{edge.address}/{topic}"), parse_end(hub.address)
    options = MirrorOptions(name=f"promise-{topic}", at_least_once=True, throttle_bytes_s=600)
    plan = mirror_run(source, target, (properties_of(source, None), properties_of(target, None)), options)
    run = Run(plan, open_peer, LOGGER)
    seen: list[tuple[int, int]] = []

    async def look(peer: Any) -> None:
        while True:
            committed = await peer.committed(plan.spec.group)
            there = await trio.to_thread.run_sync(hub.call, partial(written, hub, topic))
            seen.append((sum(each.offset for each in committed.values()), there))
            await trio.sleep(0.01)

    async with (
        started(run),
        open_peer({"bootstrap.servers": edge.address}) as peer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(look, peer)
        await until(lambda: bool(seen) and seen[-1][0] == 60, "all of it is committed")
        nursery.cancel_scope.cancel()
    assert all(committed <= there for committed, there in seen)
    assert len({committed for committed, _ in seen}) > 1


def written(hub: LiveBroker, topic: str) -> int:
    return sum(log.log_end_offset for each, log in hub.broker.logs.logs.items() if each.topic == topic)
