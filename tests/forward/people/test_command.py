"""`leafcuttr flows`: what runs, its lag; pause, resume and reset of a relay that runs; groups at the target."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import trio

import leafcuttr_forward
from forward.clusters import create, produce, read, until, values
from forward.conftest import MakeRun, started
from leafcuttr_forward.flows.report import FlowState
from leafcuttr_forward.people.command.asking import complete_flows
from leafcuttr_forward.relay.running import Run
from leafcuttr_forward.relay.spec import RelayOptions
from leafcuttr_sdk.filters import DeadLetter
from leafcuttr_sdk.testing import check_command, run_command
from leafcuttr_sdk.testing.commands import CommandResult
from support import librdkafka
from support.live_broker import LiveBroker
from support.waiting import free_port

_NUMBERS = itertools.count(1)
FLOWS = next(each for each in leafcuttr_forward.leafcuttr_register_cli_commands() if each.name == "flows")
Ask = Callable[..., CommandResult]


def flows(*words: str) -> CommandResult:
    return run_command(FLOWS, *words, plugin=leafcuttr_forward)


async def of(run: Run, *words: str) -> CommandResult:
    """A command that reads the address of this run, beside it."""
    host, port = run.addresses[0]
    return await trio.to_thread.run_sync(lambda: flows(*words, "--admin-server", f"{host}:{port}"))


async def at(hub: LiveBroker, *words: str) -> CommandResult:
    """A command that writes to the target."""
    return await trio.to_thread.run_sync(lambda: flows(*words, "--bootstrap-server", hub.address))


@pytest.fixture
def topics(edge: LiveBroker) -> tuple[str, str]:
    number = next(_NUMBERS)
    source = f"flowing-{number}"
    create(edge.address, source, 2)
    for partition in (0, 1):
        produce(edge.address, source, [f"{partition}:{each}" for each in range(10)], partition)
    return source, f"flown-{number}"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In another time zone."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


def test_it_keeps_the_contract_of_commands() -> None:
    calls = [
        ("describe", "x"),
        ("pause", "x"),
        ("resume", "x"),
        ("reset", "x", "--to-latest"),
        ("translate", "g"),
    ]
    check_command(FLOWS, plugin=leafcuttr_forward, calls=calls)


async def test_what_runs_and_how_far_it_is(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    source, target = topics
    async with started(make_run([edge.address], hub.address, dict([topics]))) as run:
        await until(lambda: run.counters.total == 20, "all is copied")
        name = run.report.name
        listed = await of(run, "list")
        assert listed.status == 0, listed.err
        assert listed.out.splitlines()[1].split()[:8] == [
            name,
            "running",
            edge.address,
            hub.address,
            "exactly",
            "once",
            "2",
            "20",
        ]
        (row,) = json.loads((await of(run, "list", "--json")).out)
        assert (row["flow"], row["written"], row["lag_records"], row["lag_seconds"]) == (name, 20, 0, 0)
        described = await of(run, "describe", name)
        assert f"flow: {name}\nstate: running\n" in described.out
        assert "guarantee: exactly once\n" in described.out
        found = json.loads((await of(run, "describe", name, "--json")).out)
        assert [(each["topic"], each["target_topic"], each["position"]) for each in found["topics"]] == [
            (source, target, 10),
            (source, target, 10),
        ]
        lag = json.loads((await of(run, "lag", "--json")).out)
        assert [(each["flow"], each["partition"], each["lag_records"]) for each in lag] == [
            (name, 0, 0),
            (name, 1, 0),
        ]
        shown = (await of(run, "lag", name)).out.splitlines()
        assert shown[1].split()[:8] == [name, source, "0", "10", "10", "0", "0s", target]
        none = await of(run, "describe", "none")
        assert (none.status, none.err) == (1, "leafcuttr: no flow has the name none\n")


async def test_pause_resume_and_reset(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    source, target = topics
    async with started(make_run([edge.address], hub.address, dict([topics]))) as run:
        name = run.report.name
        await until(lambda: run.counters.total == 20, "all is copied")
        refused = await at(hub, "reset", name, "--to-earliest")
        assert refused.status == 1
        assert (
            refused.err
            == f"leafcuttr: the flow {name} is not paused: run leafcuttr flows pause {name} first\n"
        )
        assert (await at(hub, "pause", name)).status == 0
        await until(lambda: run.report.state is FlowState.PAUSED, "it is paused")
        await trio.to_thread.run_sync(produce, edge.address, source, ["0:10"])
        assert json.loads((await of(run, "list", "--json")).out)[0]["state"] == "paused"
        told = await at(hub, "reset", name, "--to-offset", f"{source}:0:8", "--json")
        assert json.loads(told.out) == {"flow": name, "requested": "reset"}
        assert (await at(hub, "resume", name)).status == 0
        await until(lambda: run.counters.total == 23, "it has begun at 8 again")
    assert values(hub.address, target) == [*(f"0:{each}" for each in range(10)), "0:8", "0:9", "0:10"]
    assert values(hub.address, target, 1) == [f"1:{each}" for each in range(10)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("word", "again"),
    [
        (("--to-earliest",), ["before", "after", "last"]),
        (("--to-latest",), []),
        (("--to-datetime", "2026-11-20T10:00:00"), ["after", "last"]),
        (("--to-datetime", "2026-11-20T12:00:00.001+02:00"), ["last"]),
    ],
    ids=str,
)
async def test_where_a_flow_is_reset_to(
    word: tuple[str, ...],
    again: list[str],
    make_run: MakeRun,
    edge: LiveBroker,
    hub: LiveBroker,
    elsewhere: None,
) -> None:
    """A moment without a time zone is one of UTC, wherever the command runs."""
    name = f"timed-{next(_NUMBERS)}"
    moment = 1_795_168_800_000  # 2026-11-20T10:00:00Z
    for cluster in (edge, hub):
        await trio.to_thread.run_sync(partial(create, cluster.address, name, retention_ms="-1"))
    for value, timestamp in (("before", moment - 1), ("after", moment), ("last", moment + 1)):
        await trio.to_thread.run_sync(
            partial(librdkafka.send, edge.address, name, [value.encode()], timestamp=timestamp)
        )
    async with started(make_run([edge.address], hub.address, {name: name})) as run:
        await until(lambda: run.counters.total == 3, "all is copied")
        assert (await at(hub, "pause", run.report.name)).status == 0
        await until(lambda: run.report.state is FlowState.PAUSED, "it is paused")
        assert (await at(hub, "reset", run.report.name, *word)).status == 0
        assert (await at(hub, "resume", run.report.name)).status == 0
        await until(lambda: run.report.state is FlowState.RUNNING, "it goes on")
        await trio.to_thread.run_sync(produce, edge.address, name, ["new"])
        await until(lambda: run.counters.total == 3 + len(again) + 1, "what it was reset to is copied")
    assert values(hub.address, name) == ["before", "after", "last", *again, "new"]


async def test_a_paused_flow_is_paused_after_a_restart(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    run = make_run([edge.address], hub.address, dict([topics]))
    assert (await at(hub, "pause", run.report.name)).status == 0
    async with started(run):
        await until(lambda: run.report.state is FlowState.PAUSED, "it is paused")
    assert run.counters.total == 0


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--to-earliest", "--to-latest"),
        ("--to-offset", "a:0"),
        ("--to-offset", "a:x:1"),
        ("--to-datetime", "yesterday"),
    ],
)
def test_what_a_reset_may_not_be(words: tuple[str, ...]) -> None:
    assert flows("reset", "x", *words).status == 2


def test_where_nothing_answers() -> None:
    port = free_port()
    done = flows("list", "--admin-server", f"127.0.0.1:{port}")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"leafcuttr: nothing that runs flows answers at 127.0.0.1:{port}: ")
    done = flows("pause", "x", "--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "1")
    assert done.status == 1
    assert done.err.count("\n") == 1


# Groups


async def test_offsets_of_a_group_at_the_target(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    """The target's offsets differ from the source's: markers, and records that were there before."""
    source, target = topics
    await trio.to_thread.run_sync(create, hub.address, target, 2)
    await trio.to_thread.run_sync(produce, hub.address, target, ["before", "and", "after"])
    from confluent_kafka import Consumer, TopicPartition

    run = make_run(
        [edge.address], hub.address, dict([topics]), options=RelayOptions(start="earliest", name="translated")
    )
    async with started(run):
        await until(lambda: run.counters.total == 20, "all is copied")
        await trio.to_thread.run_sync(commit, edge, "billing", source, 4, 10)
        words = ("translate", "billing", "--flow", "translated")
        found = json.loads((await of(run, *words, "--json")).out)
        assert [(each["partition"], each["offset"], each["target_topic"]) for each in found] == [
            (0, 4, target),
            (1, 10, target),
        ]
        assert [each["how"] for each in found] == ["the same record", "behind the last copied record"]
        shown = (await of(run, "translate", "billing")).out.splitlines()
        assert shown[1].split()[:6] == [source, "0", "4", target, "0", str(found[0]["target_offset"])]
        none = await of(run, "translate", "nobody")
        assert (none.status, none.err) == (
            1,
            "leafcuttr: the group nobody has committed no offset of what translated copies\n",
        )

    def read_from(partition: int, offset: int) -> list[str]:
        consumer = Consumer(
            {"bootstrap.servers": hub.address, "group.id": "moved", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(target, partition, offset)])
        read = []
        while (message := consumer.poll(2)) is not None:
            read.append((message.value() or b"").decode())
        consumer.close()
        return read

    assert await trio.to_thread.run_sync(read_from, 0, found[0]["target_offset"]) == [
        f"0:{each}" for each in range(4, 10)
    ]
    assert await trio.to_thread.run_sync(read_from, 1, found[1]["target_offset"]) == []


async def test_offsets_of_a_group_after_a_restart_and_with_dead_letters(
    make_run: MakeRun, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    """Everything goes to one partition; then a process runs that has copied nothing but a record that is set aside."""
    source, target = topics
    await trio.to_thread.run_sync(create, hub.address, target, 3)

    def judge(topic: str) -> Any:
        return lambda records: [DeadLetter("bad") if one.value == b"bad" else one for one in records]

    def run_again() -> Run:
        options = RelayOptions(name=f"again-{target}", dead_letter_topic=f"{target}-dead")
        topics = {source: f"{target}:2"}
        return make_run([edge.address], hub.address, topics, options=options, judge=judge)

    async with started(run := run_again()):
        await until(lambda: run.counters.total == 20, "all is copied")
    await trio.to_thread.run_sync(produce, edge.address, source, ["bad"], 1)
    await trio.to_thread.run_sync(commit, edge, "restarted", source, 4, 11)
    async with started(run := run_again()):
        await until(
            lambda: sum(each.dead_letters for each in run.report.partitions.values()) == 1, "a letter"
        )
        found = json.loads((await of(run, "translate", "restarted", "--json")).out)
        lag = json.loads((await of(run, "lag", "--json")).out)
    assert [(each["target_topic"], each["target_partition"]) for each in found] == [(target, 2)] * 2
    assert [each["how"] for each in found] == ["the same record", "behind the last copied record"]
    where = {each.value().decode(): each.offset() for each in read(hub.address, target, [2])}
    assert [each["target_offset"] for each in found] == [where["0:4"], where["1:9"] + 1]
    assert [each["target_offset"] for each in lag] == [where["0:9"] + 1, where["1:9"] + 1]


def commit(edge: LiveBroker, group: str, topic: str, *offsets: int) -> None:
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as At

    consumer = Consumer({"bootstrap.servers": edge.address, "group.id": group})
    consumer.commit(offsets=[At(topic, at, one) for at, one in enumerate(offsets)], asynchronous=False)
    consumer.close()


# Completion


async def test_names_of_flows_are_completed(
    make_run: MakeRun,
    edge: LiveBroker,
    hub: LiveBroker,
    topics: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import click

    context = click.Context(click.Command("x"))
    argument = click.Argument(["flow"])
    monkeypatch.delenv("LEAFCUTTR_ADMIN_SERVER", raising=False)
    assert complete_flows(context, argument, "") == []
    async with started(make_run([edge.address], hub.address, dict([topics]))) as run:
        host, port = run.addresses[0]
        monkeypatch.setenv("LEAFCUTTR_ADMIN_SERVER", f"{host}:{port}")
        assert await trio.to_thread.run_sync(complete_flows, context, argument, "relay-") == [run.report.name]
        assert await trio.to_thread.run_sync(complete_flows, context, argument, "other") == []
