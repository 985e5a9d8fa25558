"""`leafcuttr flows`: what runs, its lag; pause, resume and reset of a relay that runs; groups at the target."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest
import trio

import leafcuttr_forward
from forward.clusters import create, produce, until, values
from forward.conftest import MakeRun, started
from leafcuttr_forward.flows.report import FlowState
from leafcuttr_forward.people.command.asking import complete_flows
from leafcuttr_forward.relay.running import Run
from leafcuttr_forward.relay.spec import RelayOptions
from leafcuttr_sdk.testing import check_command, run_command
from leafcuttr_sdk.testing.commands import CommandResult
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

    def commit(group: str, *offsets: int) -> None:
        consumer = Consumer({"bootstrap.servers": edge.address, "group.id": group})
        places = [TopicPartition(source, number, offset) for number, offset in enumerate(offsets)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    run = make_run(
        [edge.address], hub.address, dict([topics]), options=RelayOptions(start="earliest", name="translated")
    )
    async with started(run):
        await until(lambda: run.counters.total == 20, "all is copied")
        await trio.to_thread.run_sync(commit, "billing", 4, 10)
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
