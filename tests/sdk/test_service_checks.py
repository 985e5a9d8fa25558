"""The check of services, in real brokers: it passes what keeps its contract, and names what is wrong with the rest."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import trio

from leafcuttr_sdk import Broker, Plugin, PluginError, ServiceSpec, Setting, Type, listener_settings
from leafcuttr_sdk.testing import ContractError, check_service
from leafcuttr_sdk.testing import service_trial as trial

PREFIX = "lc.plugin.parcels"


def parcels() -> ModuleType:
    plugin = ModuleType("parcels")

    def settings() -> Iterable[Setting]:
        yield Setting(f"{PREFIX}.topic", Type.STRING, "parcels", "Where to.")
        yield Setting(f"{PREFIX}.on", Type.BOOLEAN, False, "Whether.")
        yield from listener_settings(PREFIX, 0)

    vars(plugin)["PLUGIN"] = Plugin("parcels", 1, "for tests", enabled_by=f"{PREFIX}.on")
    vars(plugin)["leafcuttr_register_settings"] = settings
    return plugin


class Good:
    """Uses what services use: settings, a listener, topics, metrics, tasks."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.topic = broker.settings.text(f"{PREFIX}.topic")
        self.count = broker.metrics.counter("leafcuttr_parcels_lines_total", "Lines.")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self.broker.topics.ensure(self.topic)
        async with self.broker.listen(PREFIX) as listening:
            listeners = [
                trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in listening.sockets
            ]
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(trio.serve_listeners, self.serve, listeners))
                task_status.started()

    async def serve(self, stream: trio.SocketStream) -> None:
        async for line in stream:
            await self.broker.produce(self.topic, line)
            self.count.add()


def test_a_good_service_passes() -> None:
    check_service(Good, plugin=parcels())
    check_service(ServiceSpec("parcels", Good), plugin=parcels(), settings={f"{PREFIX}.topic": "other"})


@pytest.mark.one_in(4)
@pytest.mark.parametrize("good", ["Plain", "FollowsWell", "StartsProgramsWell", "WaitsWell"])
def test_one_without_a_plugin_passes(good: str) -> None:
    check_service(globals()[good])


class Plain:
    """What the broken ones below differ from in one thing."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()


class NoBroker(Plain):
    def __init__(self) -> None: ...


class Refuses(Plain):
    def __init__(self, broker: Broker) -> None:
        raise PluginError("there is no such station")


class WaitsForNumber(Plain):
    waits_for = 3


class WaitsInLines(Plain):
    waits_for = "one\ntwo"


class WaitsBadly(Plain):
    @property
    def waits_for(self) -> str:
        raise LookupError("no table")


class WaitsWell(Plain):
    """For something, and then for nothing."""

    waits_for: str | None = "the station"

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        self.waits_for = None
        await trio.sleep_forever()


class AsksForMore(Plain):
    def __init__(self, broker: Broker) -> None:
        broker.settings.text(f"{PREFIX}.topics")


class Misnamed:
    def __init__(self, broker: Broker) -> None: ...

    async def runs(self) -> None: ...


class NotAsync(Plain):
    def run(self, *, task_status: trio.TaskStatus[None]) -> None:  # type: ignore[override]
        task_status.started()


class NoStatus(Plain):
    async def run(self) -> None:  # type: ignore[override]
        await trio.sleep_forever()


class NeverStarted(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await trio.sleep_forever()


class EndsBefore(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await trio.lowlevel.checkpoint()


class RaisesBefore(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        raise ValueError("no station")


class Ends(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()


class RaisesLater(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.fail)

    async def fail(self) -> None:
        raise ValueError("no station")


class StartsTwice(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        task_status.started()
        await trio.sleep_forever()


class KeepsGoing(Plain):
    """Ends in the end, or the thread of this test would go on for ever."""

    released = threading.Event()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        while not self.released.is_set():
            try:
                await trio.sleep(0.01)
            except BaseException:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.01)


class RaisesAtTheEnd(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("the station is gone")


class Once(Plain):
    """Binds an address of its own and does not let go."""

    bound: list[socket.socket] = []  # noqa: RUF012

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.bound.append(socket.socket(socket.AF_UNIX))
        self.bound[-1].bind(f"\0leafcuttr-check-{os.getpid()}")
        task_status.started()
        await trio.sleep_forever()


class Singleton(Plain):
    one: Any = None

    def __new__(cls, broker: Broker) -> Any:
        cls.one = cls.one or super().__new__(cls)
        return cls.one


class Blocks(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.lowlevel.checkpoint()
        time.sleep(0.15)  # more than the 100 ms that are told
        await trio.sleep_forever()


class LeavesTasks(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        task_status.started()
        await trio.sleep_forever()


class LeavesThreads(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        timer = threading.Timer(600, print)
        timer.daemon = True
        timer.start()
        task_status.started()
        await trio.sleep_forever()


class LeavesDescriptors(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        os.open(os.devnull, os.O_RDONLY)
        task_status.started()
        await trio.sleep_forever()


class SlowToLeave(Plain):
    """Stops well once it serves, and not while it starts."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await trio.sleep(0.01)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(1.5)  # more than the second that a check waits
            raise
        task_status.started()
        await trio.sleep_forever()


class ExitsAsItIsMade(Plain):
    def __init__(self, broker: Broker) -> None:
        sys.exit("no station")


class Exits(Plain):
    error: BaseException = SystemExit(3)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.lowlevel.checkpoint()
        raise self.error


class Interrupts(Exits):
    error = KeyboardInterrupt()


class RaisesAGroup(Exits):
    error = BaseExceptionGroup("two", [SystemExit("one"), ValueError("two")])


class ExitsInATask(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            task_status.started()
            nursery.start_soon(self.exit)
            await trio.sleep_forever()

    async def exit(self) -> None:
        sys.exit(3)


class ExitsBefore(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        sys.exit()


class ExitsWhenItIsStopped(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            sys.exit(4)


class EndsTheLoop(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        trio.lowlevel.spawn_system_task(self.fail)
        await trio.sleep_forever()

    async def fail(self) -> None:
        sys.exit(5)


class FollowsSettings(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.broker.settings.on_change(lambda names: None)
        task_status.started()
        await trio.sleep_forever()


class FollowsTopics(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.broker.topics.on_change(lambda name: None)
        self.broker.topics.on_change(lambda name: None)
        task_status.started()
        await trio.sleep_forever()


class FollowsWell(Plain):
    """Takes back what it has registered, one of it twice."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        ends = [
            self.broker.settings.on_change(lambda names: None),
            self.broker.topics.on_change(lambda name: None),
        ]
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            for end in (*ends, ends[0]):
                end()


class StartsPrograms(Plain):
    started: list[subprocess.Popen[bytes]] = []  # noqa: RUF012

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.started.append(subprocess.Popen(["sleep", "600"]))
        task_status.started()
        await trio.sleep_forever()


class StartsProgramsWell(Plain):
    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.run_process, ["sleep", "600"])
            task_status.started()
            await trio.sleep_forever()


async def makes_async(broker: Broker) -> Any:
    return Plain(broker)


BROKEN: list[tuple[Any, str, str]] = [
    (WaitsForNumber, "waits for", "waits_for is an int: it is one line of text, or None"),
    (WaitsInLines, "waits for", "waits_for has several lines: it is one ('one'...)"),
    (WaitsBadly, "waits for", "waits_for raised LookupError: no table: it says what is known"),
    (NoBroker, "made", "with the broker as its one argument: TypeError"),
    (Refuses, "made", "it refuses to be made: there is no such station"),
    (AsksForMore, "made", f"{PREFIX}.topics"),
    (Singleton, "made", "returns the same object again"),
    (lambda broker: None, "made", "returned None: return the service"),
    (makes_async, "called", "what makes it is an async function"),
    (Misnamed, "called", "Misnamed has no method run (is runs meant to be it?)"),
    (NotAsync, "called", "write `async def run`"),
    (NoStatus, "called", "cannot be called as run(task_status=...)"),
    (NeverStarted, "starts", "it has not called task_status.started() after 1 s"),
    (EndsBefore, "starts", "run returned without calling task_status.started()"),
    (RaisesBefore, "starts", "run raised ValueError: no station"),
    (Ends, "runs", "run returned: it goes on until it is cancelled"),
    (RaisesLater, "runs", "run raised ValueError: no station"),
    (StartsTwice, "runs", "run raised RuntimeError: called 'started' twice"),
    (KeepsGoing, "stops", "it goes on 1 s after it was cancelled: let trio.Cancelled through"),
    (RaisesAtTheEnd, "stops", "it raised OSError: the station is gone when it was cancelled"),
    (SlowToLeave, "stops", "it goes on 1 s after it was cancelled"),
    (Once, "restarts", "Address already in use when it was run again in the same broker"),
    (Blocks, "does not block", "one step of it took over "),
    (ExitsAsItIsMade, "made", "making it raised SystemExit: no station"),
    (Exits, "runs", "run raised SystemExit: 3"),
    (Interrupts, "runs", "run raised KeyboardInterrupt"),
    (RaisesAGroup, "runs", "run raised SystemExit: one"),
    (ExitsInATask, "runs", "run raised SystemExit: 3"),
    (ExitsBefore, "starts", "run raised SystemExit"),
    (ExitsWhenItIsStopped, "stops", "it raised SystemExit: 4 when it was cancelled"),
    (EndsTheLoop, "runs", "the whole broker ended with SystemExit: 5"),
    (FollowsSettings, "leaves nothing", "1 more function that was given to on_change was left"),
    (FollowsTopics, "leaves nothing", "2 more functions that were given to on_change were left"),
    (StartsPrograms, "leaves nothing", "1 more process was left"),
    (LeavesTasks, "leaves nothing", "1 more task was left"),
    (LeavesThreads, "leaves nothing", "1 more thread was left"),
    (LeavesDescriptors, "leaves nothing", "1 more descriptor was left"),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("broken", "check", "says"), BROKEN, ids=[getattr(row[0], "__name__", "") for row in BROKEN]
)
def test_a_broken_service_is_told_what_is_wrong(
    broken: Any, check: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken in (NeverStarted, KeepsGoing, SlowToLeave):  # what never comes need not be waited for
        monkeypatch.setattr(trial, "START_S", 1.0)
        monkeypatch.setattr(trial, "STOP_S", 1.0)
    try:
        with pytest.raises(ContractError) as caught:
            check_service(broken, plugin=parcels())
    finally:
        if broken is KeepsGoing:
            KeepsGoing.released.set()
        for program in StartsPrograms.started:
            program.kill()
            program.wait()
    found = {one.name: one.problems for one in caught.value.report.checks}
    assert any(says in problem for problem in found[check]), str(caught.value)
    assert [name for name, problems in found.items() if problems] == [check], str(caught.value)


def test_a_plugin_that_does_not_start_is_told() -> None:
    plugin = parcels()
    vars(plugin)["leafcuttr_register_metrics"] = lambda broker: 1 / 0
    with pytest.raises(
        ContractError, match=r"the broker does not start with its plugin: .*ZeroDivisionError"
    ):
        check_service(Plain, plugin=plugin)
    with pytest.raises(ContractError, match=rf"{PREFIX}\.port"):
        check_service(Plain, plugin=parcels(), settings={f"{PREFIX}.port": "many"})
