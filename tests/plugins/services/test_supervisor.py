"""Services under supervision, with trio's clock: order, readiness, failures, pauses, the stop."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.errors import StartError
from leafcuttr.plugins.services.backoff import FIRST_S, LONGEST_S, STEADY_S, Backoff
from leafcuttr.plugins.services.order import CannotStart, Planned
from leafcuttr.plugins.services.service import READY_S, STOP_S
from leafcuttr.plugins.services.supervisor import Supervisor
from leafcuttr_sdk import PluginError, ServiceSpec

Status = trio.TaskStatus[None]
NO_BROKER: Any = None  # these services do not use it


class Recorded:
    """A service that writes down what happens to it. `act` is what it does once it has been started."""

    def __init__(self, name: str, events: list[str], act: Callable[[Status], Any]) -> None:
        self.name, self.events, self.act = name, events, act

    async def run(self, *, task_status: Status) -> None:
        self.events.append(f"{self.name} runs")
        try:
            await self.act(task_status)
        finally:
            self.events.append(f"{self.name} ends")


async def serve(status: Status) -> None:
    status.started()
    await trio.sleep_forever()


def planned(
    name: str, events: list[str], act: Callable[[Status], Any] = serve, needs: tuple[str, ...] = ()
) -> Planned:
    return Planned("acme", ServiceSpec(name, lambda _: Recorded(name, events, act), needs), NO_BROKER)


def one_after_the_other(*acts: Callable[[Status], Any]) -> Callable[[Status], Any]:
    """Another act at each start; the last one stays."""
    left: Iterator[Callable[[Status], Any]] = iter(acts)

    async def act(status: Status) -> None:
        nonlocal last
        last = next(left, last)
        await last(status)

    last = acts[-1]
    return act


async def test_starts_in_the_order_of_needs_and_stops_in_reverse(
    autojump_clock: trio.testing.MockClock,
) -> None:
    events: list[str] = []

    async def slow_to_start_and_stop(status: Status) -> None:
        await trio.sleep(3)
        status.started()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)

    supervisor = Supervisor(
        [
            planned("web", events, needs=("store", "bus")),
            planned("store", events, slow_to_start_and_stop, needs=("disk",)),
            planned("disk", events, slow_to_start_and_stop),
            planned("bus", events),
        ]
    )
    began = trio.current_time()
    async with supervisor.running():
        assert trio.current_time() - began == pytest.approx(6)
        assert all(service.up for service in supervisor.services)
        assert [e for e in events if e != "bus runs"] == ["disk runs", "store runs", "web runs"]
        events.clear()
        stop = trio.current_time()
    assert trio.current_time() - stop == pytest.approx(4)
    assert [e for e in events if e != "bus ends"] == ["web ends", "store ends", "disk ends"]
    assert events.index("bus ends") > events.index("web ends")
    assert not any(service.up for service in supervisor.services)


@pytest.mark.parametrize(
    ("services", "line"),
    [
        ([("a", ("b",))], "its service a needs the service b, and no plugin that is on has it"),
        ([("a", ("b",)), ("b", ("c",)), ("c", ("b",))], "services need each other in a circle: b -> c -> b"),
        ([("a", ("a",))], "services need each other in a circle: a -> a"),
        ([("a", ()), ("a", ())], "two services are named a: of plugins acme and acme"),
    ],
)
def test_what_cannot_be_put_in_order_is_one_line(
    services: list[tuple[str, tuple[str, ...]]], line: str
) -> None:
    with pytest.raises(CannotStart) as refused:
        Supervisor([planned(name, [], needs=needs) for name, needs in services])
    assert (refused.value.plugin, str(refused.value)) == ("acme", line)


async def test_a_refusal_at_the_first_start_stops_the_brokers(autojump_clock: trio.testing.MockClock) -> None:
    events: list[str] = []

    async def refuse(_: Status) -> None:
        async with trio.open_nursery():  # as a group
            raise PluginError("port 8080 is taken\nmore")

    async def slow(status: Status) -> None:
        await trio.sleep(20)
        await serve(status)

    supervisor = Supervisor(
        [planned("well", events), planned("slow", events, slow), planned("bad", events, refuse)]
    )
    began = trio.current_time()
    with pytest.raises(StartError, match=r"^service bad of plugin acme: port 8080 is taken$"):
        async with supervisor.running():
            raise AssertionError("not ready")
    assert trio.current_time() == began  # without waiting for the slow one
    assert {"well ends", "slow ends"} <= set(events)


async def test_a_factory_may_refuse_too() -> None:
    def make(_: Any) -> Any:
        raise PluginError("pip install something")

    supervisor = Supervisor([Planned("acme", ServiceSpec("x", make), NO_BROKER)])
    with pytest.raises(StartError, match="pip install something"):
        async with supervisor.running():
            raise AssertionError("not ready")


async def test_any_other_failure_of_a_first_start_harms_no_other_service(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[str] = []

    async def fail(_: Status) -> None:
        raise KeyError("shoe size")

    async def exits(_: Status) -> None:
        raise SystemExit(3)

    async def never_ready(_: Status) -> None:
        await trio.sleep_forever()

    async def returns(_: Status) -> None:
        return

    bad = {"fails": fail, "exits": exits, "never": never_ready, "returns": returns}
    with caplog.at_level(logging.ERROR, logger="leafcuttr"):
        supervisor = Supervisor(
            [planned("well", events), *(planned(n, events, act) for n, act in bad.items())]
        )
        async with supervisor.running():
            states = {service.name: service for service in supervisor.services}
            assert [name for name, service in states.items() if service.up] == ["well"]
            assert states["never"].trouble == f"it was not ready within {READY_S:.0f} s"
    first = {record.getMessage().split(" failed: ")[0] for record in caplog.records}
    assert first == {f"the service {name} of plugin acme" for name in bad}
    lines = [record.getMessage() for record in caplog.records]
    kept = re.compile(
        r"the service fails of plugin acme failed: KeyError: 'shoe size' \(.*test_supervisor.py, line \d+\); "
        r"it is started again in 0\.\d s \(restart 1\)"
    )
    assert any(kept.fullmatch(line) for line in lines)
    assert any("SystemExit: 3" in line for line in lines)
    assert any("it returned before it was ready" in line for line in lines)
    assert not any(record.exc_info for record in caplog.records)


async def test_a_service_waits_for_a_failing_one_that_it_needs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    events: list[str] = []

    async def fail(_: Status) -> None:
        raise ValueError

    supervisor = Supervisor(
        [
            planned("store", events, one_after_the_other(fail, fail, serve)),
            planned("web", events, needs=("store",)),
        ]
    )
    async with supervisor.running():
        store, web = supervisor.services
        assert not web.up and web.trouble == "it waits for the service store"
        assert "web runs" not in events
        with trio.fail_after(60):
            await web.served.wait()
        assert (store.up, web.up, web.trouble, store.restarts) == (True, True, "", 2)


async def test_a_failure_is_followed_by_a_pause_and_a_new_start(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[str] = []
    trouble = trio.Event()

    async def fail_when_told(status: Status) -> None:
        status.started()
        await trouble.wait()
        raise OSError("the modem is gone")

    act = one_after_the_other(fail_when_told, serve)
    with caplog.at_level(logging.DEBUG, logger="leafcuttr"):
        supervisor = Supervisor([planned("mqtt", events, act), planned("other", events)])
        async with supervisor.running():
            mqtt, other = supervisor.services
            trouble.set()
            await trio.testing.wait_all_tasks_blocked()
            assert (mqtt.up, mqtt.trouble, mqtt.restarts) == (False, "OSError: the modem is gone", 0)
            assert other.up
            await trio.sleep(FIRST_S)
            assert (mqtt.up, mqtt.trouble, mqtt.restarts) == (True, "", 1)
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.levelname for record in told] == ["ERROR", "WARNING"]
    assert (
        told[0]
        .getMessage()
        .startswith("the service mqtt of plugin acme failed: OSError: the modem is gone (")
    )
    assert told[1].getMessage() == "the service mqtt of plugin acme is up again"
    debug = [record for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(debug) == 1 and debug[0].exc_info
    assert sorted(events[:2]) == ["mqtt runs", "other runs"] and events[2:4] == ["mqtt ends", "mqtt runs"]


async def test_a_refusal_after_the_start_is_a_failure_like_any_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def refuse(status: Status) -> None:
        status.started()
        await trio.sleep(1)
        raise PluginError("the certificate has gone")

    supervisor = Supervisor([planned("web", [], one_after_the_other(refuse, refuse, serve))])
    async with supervisor.running():
        await trio.sleep(1.1)
        (web,) = supervisor.services
        assert web.trouble == "the certificate has gone"
        await trio.sleep(4)
        assert web.up and web.restarts == 2


async def test_a_cancellation_that_is_none_is_a_failure_with_a_pause(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One that a service has kept from a scope of its own, and raises outside of it: trio takes it for the end of the
    nursery, without an error."""
    events: list[str] = []

    async def leak(status: Status) -> None:
        kept: BaseException | None = None
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                kept = cancelled
        status.started()
        assert kept is not None
        raise kept

    supervisor = Supervisor([planned("one", events, leak)])
    async with supervisor.running():
        await trio.sleep(10)
    assert 2 <= events.count("one runs") <= 10
    assert "it ended as if it had been cancelled, which it had not; it is started again in" in caplog.text


async def test_one_that_does_not_end_is_named_and_left(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[str] = []
    let_go = trio.Event()

    async def stubborn(status: Status) -> None:
        with trio.CancelScope(shield=True):
            status.started()
            await let_go.wait()

    supervisor = Supervisor([planned("mule", events, stubborn), planned("well", events)])
    async with supervisor.running():
        stop = trio.current_time()
    assert trio.current_time() - stop == pytest.approx(STOP_S)
    assert [service.name for service in supervisor.left] == ["mule"]
    assert "the service mule of plugin acme has not ended 5 s after it was told to" in caplog.text
    let_go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert "mule ends" in events


async def test_one_that_cannot_be_cancelled_while_it_starts_does_not_hold_the_broker(
    autojump_clock: trio.testing.MockClock,
) -> None:
    let_go = trio.Event()

    async def stubborn(_: Status) -> None:
        with trio.CancelScope(shield=True):
            await let_go.wait()

    supervisor = Supervisor([planned("mule", [], stubborn), planned("rider", [], needs=("mule",))])
    async with supervisor.running():
        assert not any(service.up for service in supervisor.services)
    let_go.set()


async def test_a_stop_does_not_wait_for_a_slow_start(autojump_clock: trio.testing.MockClock) -> None:
    async def slow(status: Status) -> None:
        await trio.sleep(20)
        await serve(status)

    stop = trio.Event()
    stop.set()
    began = trio.current_time()
    async with Supervisor([planned("slow", [], slow)]).running(stop):
        pass
    assert trio.current_time() == began


async def test_cancellation_stops_services_properly(autojump_clock: trio.testing.MockClock) -> None:
    events: list[str] = []

    async def with_last_words(status: Status) -> None:
        status.started()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                events.append("last words")

    supervisor = Supervisor([planned("web", events, with_last_words)])
    with trio.CancelScope() as scope:
        async with supervisor.running():
            scope.cancel()
            await trio.sleep_forever()
    assert events == ["web runs", "last words", "web ends"]


async def test_failing_as_it_is_stopped_is_one_line(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_at_the_end(status: Status) -> None:
        status.started()
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("cannot close")

    async def swallow(status: Status) -> None:
        status.started()
        with suppress(trio.Cancelled):
            await trio.sleep_forever()

    supervisor = Supervisor([planned("web", [], fail_at_the_end), planned("meek", [], swallow)])
    async with supervisor.running():
        pass
    lines = [record.getMessage() for record in caplog.records]
    (line,) = lines
    assert line.startswith("the service web of plugin acme failed as it was stopped: OSError: cannot close (")


def test_pauses_double_up_to_a_minute_and_begin_anew_after_a_minute_of_health() -> None:
    backoff = Backoff(random.Random(7))
    longest = [min(FIRST_S * 2**n, LONGEST_S) for n in range(40)]
    for bound in longest:
        assert bound / 2 <= backoff.pause_s(1.0) <= bound
    assert backoff.pause_s(STEADY_S) <= FIRST_S
    # Two services that fail together do not come back together.
    assert Backoff(random.Random(1)).pause_s(0) != Backoff(random.Random(2)).pause_s(0)
