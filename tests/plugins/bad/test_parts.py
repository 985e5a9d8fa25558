"""Every part that a plugin can give, with every way to do badly, in one real `leafcuttr serve`: one line in the log
that names plugin and part; Kafka, `/health` and a plugin that does well are served all the while."""

from __future__ import annotations

import http.client
import json
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from support.bad_plugins import DOORS, FAULTS, PARTS, SERVICES, ways_to_authenticate, write
from support.broker_process import running_broker
from support.driven_plugins import Driven
from support.waiting import until
from support.wire_client import WireClient

STREAMS = """
import os
import trio
from leafcuttr_sdk import *

PLUGIN = Plugin("streams", 1, "Answers with a nursery in its body, and with headers of its own.")


async def stream(_):
    async def body():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
            while True:
                yield bytes(65536)

    return Response(body(), "text/plain")


async def fails():
    await trio.sleep(0)
    raise SystemExit(3)


async def os_fork():
    os.fork()


async def framed(_):
    return Response(b"abc", "text/plain", headers=(("Content-Length", "5"), ("X-Own", "yes")))


async def odd(request):
    return Response(b"abc", "text/plain", **{
        "status": {"status": 99}, "type": {"headers": 3}, "header": {"headers": (("a", "b\\nc"),)}, "body": {},
    }[request.query["what"][0]])


async def text(_):
    return Response("abc", "text/plain")


async def fork(request):
    if "task" in request.query:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(os_fork)
    pid = os.fork()
    if pid:  # what the child does is what a plugin does that has forgotten which it is
        await trio.to_thread.run_sync(os.waitpid, pid, 0)
    return Response(str(pid).encode(), "text/plain")


def leafcuttr_register_admin_routes(broker):
    return [AdminRoute(f"/{call.__name__}", call, "is odd") for call in (stream, framed, odd, text, fork)]
"""
WELL = """
from leafcuttr_sdk import *

PLUGIN = Plugin("well", 1, "Does well.")

def leafcuttr_register_health_checks(broker):
    return [HealthCheck("look", "is well", lambda: Finding(True))]
"""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    folder = tmp_path_factory.mktemp("bad")
    settings = {"lc.plugins.path": str(folder / "plugins"), "auto.create.topics.enable": "false"}
    for fault in FAULTS:
        write(folder / "plugins", f"bad-{fault}", fault, PARTS)
        write(folder / "plugins", f"bad-start-{fault}", fault, SERVICES)
        settings.update(ways_to_authenticate(f"bad-{fault}"))
    (folder / "plugins" / "streams.py").write_text(STREAMS)
    (folder / "plugins" / "well.py").write_text(WELL)
    with running_broker(folder, settings) as broker, WireClient(broker.address) as wire:
        found = Driven(broker, wire)
        assert found.create("well") is None
        yield found


def check(driven: Driven, plugin: str) -> None:
    status, text = driven.get("/health")
    assert (status, json.loads(text)["checks"][f"{plugin}:look"]["ok"]) == (200, False)


def route(path: str) -> Callable[[Driven, str], None]:
    def drive(driven: Driven, plugin: str) -> None:
        assert driven.get(f"/plugins/{plugin}{path}")[0] == 500

    return drive


def pieces(driven: Driven, plugin: str) -> None:
    with pytest.raises(Exception, match=r"incomplete|IncompleteRead|0 bytes read"):
        driven.get(f"/plugins/{plugin}/pieces")


def scrape(driven: Driven, plugin: str) -> None:
    status, text = driven.get("/metrics")
    assert status == 200 and "leafcuttr_build_info" in text


def produced(setting: str, name: str) -> Callable[[Driven, str], None]:
    def drive(driven: Driven, plugin: str) -> None:
        topic = f"{plugin}-{name}-topic"
        assert driven.create(topic, **{setting: f"{plugin}-{name}"}) is None
        for _ in range(3):
            assert driven.produce(topic) != 0

    return drive


def change_setting(driven: Driven, plugin: str) -> None:
    assert driven.set(f"lc.plugin.{plugin}.count", "5") is None


def create_topic(driven: Driven, plugin: str) -> None:
    assert driven.create(f"{plugin}-topic") is None


def connect(driven: Driven, plugin: str) -> None:
    with driven.connect(f"lc.plugin.{plugin}.served") as client:
        assert client.recv(10) == b""


def authenticate(door: str) -> Callable[[Driven, str], None]:
    def drive(driven: Driven, plugin: str) -> None:
        said = f"Refused(reason='the authenticator {plugin}-{authenticator_of(door)} has failed')"
        assert driven.get(f"/plugins/{plugin}/authenticate/{door}") == (200, said)

    return drive


def authenticator_of(door: str) -> str:
    return "auth" if door == "door" else door


def trigger(what: str) -> Callable[[Driven, str], None]:
    def drive(driven: Driven, plugin: str) -> None:
        assert driven.get(f"/plugins/{plugin}/do-{what}")[0] == 200

    return drive


WAYS: Final[dict[str, tuple[str, Callable[[Driven, str], None]]]] = {
    "health check": ("health check look", check),
    "route": ("route /plugins/{plugin}/route", route("/route")),
    "plain route": ("route /plugins/{plugin}/plain", route("/plain")),
    "pieces": ("route /plugins/{plugin}/pieces", pieces),
    "metric": ("metric leafcuttr_{under}_read", scrape),
    "steps of a metric": ("metric leafcuttr_{under}_steps", scrape),
    "filter": (
        "record filter {plugin}-filter of topic {plugin}-filter-topic",
        produced("lc_filters", "filter"),
    ),
    "validator": (
        "produce validator {plugin}-validator of topic {plugin}-validator-topic",
        produced("lc_validators", "validator"),
    ),
    "callback on settings": ("callback on changed settings", change_setting),
    "callback on topics": ("callback on changed topics", create_topic),
    "task of a nursery": ("service {plugin}-fails", trigger("task")),
    "system task": ("system task watcher", trigger("spawn")),
    "handler of serve": ("handler of lc.plugin.{plugin}.served", connect),
    **{
        f"authenticator {door}": (f"authenticator {{plugin}}-{authenticator_of(door)}", authenticate(door))
        for door in DOORS
        if door != "unmade"
    },
    "callback of a token": ("system task .*kill_everything", trigger("soon")),
}
NO_FAILURE: Final = {
    # What these return is not used.
    *((way, "type") for way in WAYS if way.startswith(("callback", "handler", "task", "system"))),
    # The end of an iterator, as Python has it.
    ("metric", ""),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_bad_part_is_one_line_and_harms_no_other(driven: Driven, way: str, fault: str) -> None:
    if (way, fault) in NO_FAILURE:
        pytest.skip("no failure")
    plugin = f"bad-{fault}"
    part, drive = WAYS[way]
    part = part.format(plugin=plugin, under=plugin.replace("-", "_"))
    drive(driven, plugin)
    until(lambda: bool(driven.lines(plugin, part)), f"a line about {part}")
    drive_again = way in ("health check", "route", "plain route", "metric", "handler of serve")
    if drive_again:
        drive(driven, plugin)
    (line,) = driven.lines(plugin, part)
    assert FAULTS[fault].said in line
    assert len(line) < 2000
    assert driven.is_well()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_filter_that_cannot_be_made_closes_its_topic_only(driven: Driven, fault: str) -> None:
    plugin = f"bad-{fault}"
    assert driven.create(f"{plugin}-made-topic", lc_filters=f"{plugin}-made") is None
    assert driven.produce(f"{plugin}-made-topic") != 0
    said = f"takes no records: record filter {plugin}-made"
    (line,) = [line for line in driven.broker.log.splitlines() if said in line]
    assert FAULTS[fault].said in line and len(line) < 2000
    assert driven.is_well()


@pytest.mark.parametrize("fault", FAULTS)
def test_an_authenticator_that_cannot_be_made(driven: Driven, fault: str) -> None:
    """The line is that of the part which wanted it: for a service, why it cannot start."""
    plugin = f"bad-{fault}"
    assert driven.get(f"/plugins/{plugin}/authenticate/unmade")[0] == 500
    (line,) = driven.lines(plugin, f"route /plugins/{plugin}/authenticate/unmade")
    assert f"authenticator {plugin}-unmade" in line
    assert FAULTS[fault].said in line and len(line) < 2000
    assert driven.is_well()


@pytest.mark.parametrize("service", ["unmade", "unrun"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_that_fails_at_each_start(driven: Driven, service: str, fault: str) -> None:
    """It is tried again after pauses that grow to a minute; each line says after which, and for how many times."""
    plugin = f"bad-start-{fault}"
    name = f"{plugin}-{service}"
    lines = driven.lines(plugin, f"service {name}")
    assert lines
    for number, line in enumerate(lines, 1):
        assert FAULTS[fault].said in line or (fault, service) == ("type", "unrun")
        assert re.search(rf"; it is started again in \d+\.\d s \(restart {number}\)$", line)
        assert len(line) < 2000
    check = json.loads(driven.get("/health")[1])["checks"][f"service:{name}"]
    assert not check["ok"] and len(check["detail"]) < 2000
    assert driven.is_well()


@pytest.mark.alone
def test_others_are_answered_without_delay_meanwhile(driven: Driven) -> None:
    """Not what machines can do, which is a few milliseconds, but what nobody would call without delay."""
    driving, took = True, []

    def drive() -> None:
        with WireClient(driven.broker.address) as wire:
            other = Driven(driven.broker, wire)
            while driving:
                for fault in FAULTS:
                    for way in ("health check", "route", "metric", "handler of serve", "authenticator door"):
                        WAYS[way][1](other, f"bad-{fault}")

    thread = threading.Thread(target=drive)
    thread.start()
    try:
        for _ in range(50):
            began = time.perf_counter()
            assert driven.is_well()
            took.append(time.perf_counter() - began)
    finally:
        driving = False
        thread.join()
    print(f"median {statistics.median(took) * 1000:.1f} ms, longest {max(took) * 1000:.1f} ms")
    assert statistics.median(took) < 0.2


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "type"])
def test_a_check_of_a_setting_refuses_the_value(driven: Driven, fault: str) -> None:
    said = driven.set(f"lc.plugin.bad-{fault}.checked", "13")
    assert said is not None and "its check failed with" in said and len(said) < 2000
    (line,) = driven.lines(f"bad-{fault}", f"check of lc.plugin.bad-{fault}.checked")
    assert FAULTS[fault].said in line and len(line) < 2000
    driven.set(f"lc.plugin.bad-{fault}.checked", "13")
    assert driven.lines(f"bad-{fault}", "check of .*checked") == [line], "repeats are counted"
    assert driven.is_well()


def test_a_task_that_fails_between_two_pieces_of_a_body(driven: Driven) -> None:
    """Its nursery cancels what the broker does meanwhile: the connection ends, and the admin port goes on."""
    with pytest.raises(http.client.IncompleteRead):
        driven.get("/plugins/streams/stream")
    (line,) = driven.lines("streams", "route /plugins/streams/stream")
    assert "SystemExit: 3 (" in line
    assert driven.is_well()


def test_how_a_body_is_sent_is_the_brokers(driven: Driven) -> None:
    assert driven.get("/plugins/streams/framed") == (200, "abc")


@pytest.mark.parametrize("path", ["odd?what=status", "odd?what=type", "odd?what=header", "text"])
def test_a_response_that_cannot_be_sent(driven: Driven, path: str) -> None:
    before = len(driven.lines("streams", "route /plugins/streams/.*"))
    assert driven.get(f"/plugins/streams/{path}")[0] == 500
    until(lambda: driven.lines("streams", f"route /plugins/streams/{path.partition('?')[0]}"), "the line")
    assert len(driven.lines("streams", "route /plugins/streams/.*")) <= before + 1
    assert driven.is_well()


def test_a_forked_process_that_comes_back_to_the_loop_is_ended(driven: Driven) -> None:
    status, pid = driven.get("/plugins/streams/fork")
    assert (status, pid != "0") == (200, True)
    (line,) = [line for line in driven.broker.log.splitlines() if "forked" in line]
    by = "forked by the route /plugins/streams/fork of plugin streams, has come back to the event loop"
    assert f"the process {pid}, {by}" in line
    assert driven.is_well()
    assert driven.get("/plugins/streams/fork?task=1")[1] not in ("0", pid)
    until(lambda: driven.broker.log.count(by) == 3, "the process that a task has forked")
    assert driven.is_well()


@pytest.mark.long
def test_then_sigint_stops_the_broker(driven: Driven) -> None:
    """The last of this file: a real SIGINT is no failure of a plugin."""
    assert driven.broker.stop(signal.SIGINT) == 0
