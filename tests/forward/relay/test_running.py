"""A relay between brokers over TCP, from kaf-relay's configuration to the records at the target."""

from __future__ import annotations

import itertools
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from confluent_kafka import Producer

from forward.clusters import create, produce, read, until, values
from forward.conftest import MakeRun, started
from leafcuttr_forward.flows.report import FlowState
from leafcuttr_forward.relay.running import Run
from leafcuttr_forward.relay.spec import RelayOptions
from leafcuttr_sdk.filters import DROP
from support.live_broker import LiveBroker
from support.secured_broker import NAME, PASSWORD, secured_broker

_NUMBERS = itertools.count(1)


@pytest.fixture
def topics(edge: LiveBroker) -> tuple[str, str]:
    """A topic of two partitions at the source with a hundred records in each, and a name at the target."""
    number = next(_NUMBERS)
    source, target = f"source-{number}", f"target-{number}"
    create(edge.address, source, 2)
    for partition in (0, 1):
        produce(edge.address, source, expected(partition), partition)
    return source, target


def expected(partition: int, count: int = 100) -> list[str]:
    return [f"{partition}:{number}" for number in range(count)]


async def ended(run: Run) -> None:
    with trio.fail_after(60):
        await run.run()


def get(run: Run, path: str) -> str:
    host, port = run.addresses[0]
    with urllib.request.urlopen(f"http://{host}:{port}{path}") as answer:
        text: str = answer.read().decode()
        return text


async def test_records_are_copied_as_they_are_until_the_end(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True)
    await ended(run)
    assert (run.status, run.why, run.report.state) == (0, None, FlowState.ENDED)
    assert run.counters.total == 200
    for partition in (0, 1):
        before, after = (
            [
                (message.key(), message.value(), message.headers(), message.timestamp())
                for message in read(address, name, [partition])
            ]
            for address, name in ((edge.address, topics[0]), (hub.address, topics[1]))
        )
        assert len(before) == 100
        assert after == before


async def test_with_tls_at_both_ends(make_run: MakeRun, tmp_path: Path) -> None:
    """With a password at the source, with a certificate at the target."""
    with secured_broker(tmp_path / "secured") as broker:
        await trio.to_thread.run_sync(create, broker.addresses["PLAINTEXT"], "tls")
        await trio.to_thread.run_sync(produce, broker.addresses["PLAINTEXT"], "tls", ["a", "b"])
        trusted = f'enable_tls = true\nca_cert_path = "{broker.trusted}"\n'
        login = f'enable_auth = true\nsasl_mechanism = "PLAIN"\nusername = "{NAME}"\npassword = "{PASSWORD}"'
        certificate = f'client_cert_path = "{broker.own}"\nclient_key_path = "{broker.own}"'
        run = make_run(
            [broker.addresses["SASL_SSL"]],
            broker.addresses["MTLS"],
            {"tls": "tls-copy"},
            more_of_source=trusted + login,
            more=trusted + certificate,
            stop_at_end=True,
        )
        await ended(run)
        assert (run.status, run.why) == (0, None)
        assert await trio.to_thread.run_sync(values, broker.addresses["PLAINTEXT"], "tls-copy") == ["a", "b"]


async def test_a_second_run_copies_what_came_since(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    for options in (RelayOptions(), RelayOptions(at_least_once=True), RelayOptions()):
        await ended(make_run([edge.address], hub.address, dict([topics]), stop_at_end=True, options=options))
        produce(edge.address, topics[0], ["more"])
    assert values(hub.address, topics[1]) == [*expected(0), "more", "more"]
    assert values(hub.address, topics[1], 1) == expected(1)


async def test_a_fixed_partition_takes_all(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    create(hub.address, topics[1], 3)
    run = make_run([edge.address], hub.address, {topics[0]: f"{topics[1]}:2"}, stop_at_end=True)
    await ended(run)
    found = values(hub.address, topics[1], 2)
    assert sorted(found) == sorted(expected(0) + expected(1))
    for partition in (0, 1):
        assert [each for each in found if each.startswith(f"{partition}:")] == expected(partition)
        assert values(hub.address, topics[1], partition) == []


async def test_filters_leave_records_out(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    def judge(topic: str) -> Any:
        assert topic == topics[0]
        return lambda records: [one if one.value.endswith(b"7") else DROP for one in records]

    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True, judge=judge)
    await ended(run)
    assert values(hub.address, topics[1]) == [each for each in expected(0) if each.endswith("7")]
    assert run.counters.total == 20
    assert sum(each.dropped_records for each in run.report.partitions.values()) == 180


# What it shows


async def test_metrics_and_status_at_its_address(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    source, target = topics
    async with started(make_run([edge.address], hub.address, dict([topics]))) as run:
        await until(lambda: run.counters.total == 200, "all records are copied")
        metrics = (await trio.to_thread.run_sync(get, run, "/metrics")).splitlines()
        for line in (
            f'kafka_relay_msg_count{{destination="{target}",partition="0",source="{source}"}} 100.0',
            f'kafka_relay_messages_relayed_total{{source_partition="1",source_topic="{source}",'
            f'target_partition="1",target_topic="{target}"}} 100.0',
            "kafka_relay_source_candidate_switches_total 0.0",
            'kafka_relay_source_highwatermark{node_id="0"} 200.0',
            'kafka_relay_source_connections_total{node_id="0"} 1.0',
            f'leafcuttr_forward_written_records_total{{flow="{run.report.name}",partition="0",topic="{source}"}} 100.0',
            f'leafcuttr_forward_lag_records{{flow="{run.report.name}",partition="1",topic="{source}"}} 0.0',
            f'leafcuttr_forward_up{{flow="{run.report.name}"}} 1.0',
        ):
            assert line in metrics
        assert {name for name in map(first_word, metrics) if not name.startswith("#")} <= {
            name
            for name in map(first_word, metrics)
            if name.startswith(("kafka_relay_", "leafcuttr_forward_"))
        }
        health = await trio.to_thread.run_sync(get, run, "/health")
        assert '"status":"ok"' in health
        status = await trio.to_thread.run_sync(get, run, "/")
        assert '"name": "node1"' in status
    assert (run.status, run.why) == (0, None)


def first_word(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0]


# Targets of kaf-relay


def as_kaf_relay(edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str], count: int) -> None:
    """What kaf-relay has copied: the same records at the same offsets, with other timestamps and a header more."""
    create(hub.address, topics[1], 2)
    for partition in (0, 1):
        produce(hub.address, topics[1], expected(partition, count), partition)


async def test_a_target_of_kaf_relay_is_taken_over(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    as_kaf_relay(edge, hub, topics, 60)
    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True)
    await ended(run)
    assert run.counters.total == 80
    for partition in (0, 1):
        assert values(hub.address, topics[1], partition) == expected(partition)


async def test_a_target_with_other_records_is_not(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    create(hub.address, topics[1], 2)
    produce(hub.address, topics[1], ["other"])
    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True)
    await ended(run)
    assert run.status == 1
    assert run.why == (
        f"{topics[1]}-0 of the target ends at 1, and its last record is not record 0 of {topics[0]}-0 at the source: "
        "it was not filled from there; --start earliest or --start latest says where to begin"
    )
    assert values(hub.address, topics[1]) == ["other"]


async def test_what_a_transaction_has_left_is_not_taken_over(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    """A relay was ended before its first commit: the target's log is as long as the source's, and has nothing of it."""
    create(hub.address, topics[1], 2)

    def abort_all() -> None:
        producer = Producer({"bootstrap.servers": hub.address, "transactional.id": f"ended-{topics[1]}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for partition in (0, 1):
            for value in expected(partition):
                producer.produce(topics[1], value, partition=partition)
        producer.abort_transaction(60)

    await trio.to_thread.run_sync(abort_all)
    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True)
    await ended(run)
    assert run.counters.total == 200
    for partition in (0, 1):
        assert values(hub.address, topics[1], partition) == expected(partition)


async def test_where_to_begin_may_be_said(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    create(hub.address, topics[1], 2)
    produce(hub.address, topics[1], ["other"])
    options = RelayOptions(start="earliest")
    await ended(make_run([edge.address], hub.address, dict([topics]), stop_at_end=True, options=options))
    assert values(hub.address, topics[1]) == ["other", *expected(0)]


async def test_latest_leaves_out_what_there_is(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    options = RelayOptions(start="latest")
    run = make_run([edge.address], hub.address, dict([topics]), options=options)
    async with started(run):
        await until(lambda: run.report.state is FlowState.RUNNING, "it runs")
        await trio.to_thread.run_sync(produce, edge.address, topics[0], ["new"])
        await until(lambda: run.counters.total == 1, "the new one is copied")
    assert values(hub.address, topics[1]) == ["new"]


@pytest.mark.parametrize("what", ["a filter", "a fixed partition"])
async def test_after_filters_or_a_fixed_partition_nothing_is_taken_over(
    what: str, make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    as_kaf_relay(edge, hub, topics, 60)
    judge = (lambda topic: list) if what == "a filter" else None
    to = topics[1] if what == "a filter" else f"{topics[1]}:0"
    run = make_run([edge.address], hub.address, {topics[0]: to}, stop_at_end=True, judge=judge)
    await ended(run)
    assert run.counters.total == 200


# Ends


async def test_a_topic_to_itself_is_refused(
    make_run: MakeRun, edge: LiveBroker, topics: tuple[str, str]
) -> None:
    run = make_run([edge.address], edge.address, {topics[0]: topics[0]})
    await ended(run)
    assert run.status == 1
    assert run.why == f"source and target are the same cluster: {topics[0]} would be copied to itself"


async def test_a_source_that_is_away_ends_it_after_the_tries_that_are_allowed(
    make_run: MakeRun, hub: LiveBroker, unused_port: int
) -> None:
    pool = 'max_retries = 2\nbackoff_enable = true\nbackoff_min = "10ms"\nbackoff_max = "20ms"'
    run = make_run([f"127.0.0.1:{unused_port}"], hub.address, {"a": "b"}, pool=pool)
    await ended(run)
    assert run.status == 1
    assert run.why is not None
    assert run.why.startswith("no source answers after 2 tries: node1: ")
    assert run.counters.unhealthy == 2


async def test_a_target_that_is_away_ends_it_after_the_tries_that_are_allowed(
    make_run: MakeRun, edge: LiveBroker, topics: tuple[str, str], unused_port: int
) -> None:
    more = 'max_retries = 2\nbackoff_enable = true\nbackoff_min = "10ms"\nbackoff_max = "20ms"'
    run = make_run([edge.address], f"127.0.0.1:{unused_port}", {topics[0]: "b"}, more=more)
    await ended(run)
    assert run.status == 1
    assert run.why is not None
    assert run.why.startswith("the target does not answer after 2 tries: hub: ")


async def test_a_topic_that_the_source_does_not_have_is_waited_for(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker
) -> None:
    name = f"late-{next(_NUMBERS)}"
    run = make_run(
        [edge.address], hub.address, {name: name}, pool='backoff_enable = true\nbackoff_min = "10ms"'
    )
    async with started(run):
        await until(lambda: run.pool.vain > 1, "it has looked for the topic")
        assert run.pool.sources[0].trouble == f"it has no topic {name}"
        assert run.report.trouble == f"no source answers: node1: it has no topic {name}"
        await trio.to_thread.run_sync(create, edge.address, name)
        await trio.to_thread.run_sync(produce, edge.address, name, ["first"])
        await until(lambda: run.counters.total == 1, "the record is copied")
        assert run.report.is_well


async def test_a_position_is_of_the_source_that_it_was_read_from(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    """The relay's group at the source shows how far it is."""
    run = make_run([edge.address], hub.address, dict([topics]), stop_at_end=True)
    await ended(run)
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": edge.address})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"leafcuttr-{run.report.name}")])
    (future,) = (partial(each.result, 60) for each in asked.values())
    found = {(each.topic, each.partition): each.offset for each in future().topic_partitions}
    assert found.items() >= {(topics[0], 0): 100, (topics[0], 1): 100}.items()
