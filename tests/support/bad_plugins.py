"""Plugins that do badly in every way, as source: one for each fault, with every part that a plugin can give."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Fault(NamedTuple):
    """What a part does instead of what it should, and what its line in the log says."""

    statement: str
    said: str


FAULTS: Final = {
    "exception": Fault('raise ValueError("bad words")', "ValueError: bad words ("),
    "exit": Fault("raise SystemExit(3)", "SystemExit: 3 ("),
    "interrupt": Fault("raise KeyboardInterrupt", "KeyboardInterrupt ("),
    "group": Fault(
        'raise BaseExceptionGroup("g", [SystemExit(3), ValueError("x")])', "SystemExit: 3 and 1 more"
    ),
    "stop": Fault("raise StopIteration", "StopIteration"),
    "type": Fault("return 3.5", "float"),
    "huge": Fault("raise ValueError(HUGE)", "ValueError: xxxxx"),
}

HEAD = """
from leafcuttr_sdk import *

NAME = {name!r}
PLUGIN = Plugin(NAME, 1, "Does badly.")
HUGE = "x" * {size}


def bad(*_):
    {statement}


"""

PARTS = """
import trio

DOORS = ("door", "steps", "unbegun", "unmade")
METRIC = f"leafcuttr_{NAME.replace('-', '_')}_"
P = f"lc.plugin.{NAME}."
TRIGGERS = {}


async def bad_async(*_):
    return bad()


async def pieces(_):
    async def body():
        yield b"one"
        yield await bad_async()

    return Response(body(), "text/plain")


def steps():
    yield (), 1
    yield bad()


async def trigger(request):
    await TRIGGERS[request.path.rpartition("-")[2]]()
    return Response(b"{}")


async def spawn_system_task():
    trio.lowlevel.spawn_system_task(bad_async, name="watcher")


async def run_sync_soon():
    trio.lowlevel.current_trio_token().run_sync_soon(bad)


class Idle:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        self.broker.settings.on_change(bad)
        self.broker.topics.on_change(lambda topic: topic == f"{NAME}-topic" and bad())
        TRIGGERS.update(spawn=spawn_system_task, soon=run_sync_soon)
        await self.broker.serve(P + "served", bad_async, task_status=task_status)


class Fails:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        async with trio.open_nursery() as nursery:
            send, receive = trio.open_memory_channel(0)
            TRIGGERS["task"] = lambda: send.send(None)
            nursery.start_soon(self.wait, receive)
            task_status.started()
            await trio.sleep_forever()

    async def wait(self, receive):
        await receive.receive()
        await bad_async()


class Authenticator:
    authenticate = bad_async


class Steps(Authenticator):
    def begin(self, mechanism):
        return self

    step = bad_async


class Unbegun(Authenticator):
    def begin(self, mechanism):
        return bad()


class Filter:
    def __init__(self, context):
        pass

    def filter(self, record):
        return bad() or record

    validate = filter


def leafcuttr_register_settings():
    return [
        Setting(P + "count", Type.INT, 0, "A number.", dynamic=True),
        Setting(P + "checked", Type.INT, 0, "Not 13.", check=lambda n: bad() if n == 13 else None, dynamic=True),
        *serving_settings(P + "served", 0, "127.0.0.1"),
        *authentication_settings(P + "door", [f"{NAME}-auth"]),
        *authentication_settings(P + "steps", [f"{NAME}-steps"], ways=["none", "sasl"]),
        *authentication_settings(P + "unbegun", [f"{NAME}-unbegun"], ways=["none", "sasl"]),
        *authentication_settings(P + "unmade", [f"{NAME}-unmade"]),
    ]


def leafcuttr_register_authenticators(broker):
    return [
        AuthenticatorSpec(f"{NAME}-auth", "is bad", Authenticator, ("basic",)),
        AuthenticatorSpec(f"{NAME}-steps", "is bad", Steps, ("basic",), ("BAD",)),
        AuthenticatorSpec(f"{NAME}-unbegun", "is bad", Unbegun, ("basic",), ("BAD",)),
        AuthenticatorSpec(f"{NAME}-unmade", "is bad", bad, ("basic",)),
    ]


def leafcuttr_register_services():
    return [ServiceSpec(NAME, Idle), ServiceSpec(f"{NAME}-fails", Fails)]


def leafcuttr_register_record_filters():
    return [RecordFilterSpec(f"{NAME}-filter", "bad", Filter), RecordFilterSpec(f"{NAME}-made", "bad", bad)]


def leafcuttr_register_produce_validators():
    return [ProduceValidatorSpec(f"{NAME}-validator", "bad", Filter)]


def leafcuttr_register_health_checks(broker):
    return [HealthCheck("look", "is bad", bad)]


def leafcuttr_register_metrics(broker):
    return [MetricReading(gauge(METRIC + "read", "Bad."), bad), MetricReading(gauge(METRIC + "steps", "Bad."), steps)]


def leafcuttr_register_admin_routes(broker):
    async def authenticate(request):
        what = request.path.rpartition("/")[2]
        authentication = broker.authentication(P + what)
        if "sasl" in authentication.ways:
            outcome = await authentication.begin("BAD").step(b"")
        else:
            outcome = await authentication.authenticate(NameAndPassword("alice", "sesame"))
        return Response(repr(outcome).encode())

    return [
        *(AdminRoute(f"/authenticate/{what}", authenticate, "is asked") for what in DOORS),
        AdminRoute("/route", bad_async, "is bad"),
        AdminRoute("/plain", bad, "is bad, and not even asynchronous"),
        AdminRoute("/pieces", pieces, "is bad after a while"),
        *(AdminRoute(f"/do-{what}", trigger, "lets others do badly") for what in ("spawn", "soon", "task")),
    ]
"""

DOORS: Final = {"door": "basic", "steps": "sasl", "unbegun": "sasl", "unmade": "basic"}
"""The settings of the doors above, and the way that each is to offer."""


def ways_to_authenticate(plugin: str) -> dict[str, str]:
    """Settings by which the authenticators of such a plugin are asked."""
    return {f"lc.plugin.{plugin}.{door}.auth": way for door, way in DOORS.items()}


SERVICES = """
class Unrun:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        return bad()


def leafcuttr_register_services():
    return [ServiceSpec(f"{NAME}-unmade", bad), ServiceSpec(f"{NAME}-unrun", Unrun)]
"""
"""Services that fail at their first start, and at each one that follows."""

HOOK = """
def {hook}({argument}):
    return bad()
"""

COMMAND_LINE = """
import click


class Codec:
    json_text = False

    def encode(self, text, place):
        return bad()

    decode = encode

    def close(self):
        pass


class Format:
    name, summary, options = f"{NAME}-format", "is bad", {}

    def open(self, options):
        return Codec()


class Unopened(Format):
    name = f"{NAME}-unopened"

    def open(self, options):
        return bad()


@click.command()
def run():
    bad()


def leafcuttr_register_cli_commands():
    return [CliCommand(f"{NAME}-run", "is bad", lambda: run), CliCommand(f"{NAME}-load", "is bad", bad)]


def leafcuttr_register_record_formats():
    return [Format(), Unopened()]
"""


HOLD = """
def hold():
    import pathlib, time

    folder = pathlib.Path(__file__).parent.parent
    armed, log, began = folder / "armed", folder / "broker.log", time.monotonic()
    if not armed.exists():
        return
    least = float(armed.read_text())
    armed.unlink()
    known = log.read_text().count(WORDS)
    while (took := time.monotonic() - began) < least or (log.read_text().count(WORDS) == known and took < 60):
        time.sleep(0.01)


WORDS = " has held the event loop "
"""
"""A part that calls it when there is a file `armed` holds the loop until it is named, and for the seconds in it."""


SLOW: Final = """
import threading
import trio
from leafcuttr_sdk import *

PLUGIN = Plugin("slow", 1, "Answers when it is told to.")
GO = threading.Event()
BEGUN = []


def hang(what):
    BEGUN.append(what)
    GO.wait()


async def wait(_):
    BEGUN.append("route")
    while not GO.is_set():
        await trio.sleep(0.01)
    return Response(b"at last")


async def go(_):
    GO.set()
    return Response(b"{}")


async def begun(_):
    return Response(repr(BEGUN).encode())


class Slow:
    def __init__(self, context):
        pass

    def filter(self, record):
        hang("filter")
        return record

    def validate(self, record):
        hang("validator")


def make(context):
    hang("factory")
    return Slow(context)


def leafcuttr_register_record_filters():
    return [RecordFilterSpec("slow", "is slow", Slow), RecordFilterSpec("slow-made", "is slow", make)]


def leafcuttr_register_produce_validators():
    return [ProduceValidatorSpec("slow", "is slow", Slow)]


def leafcuttr_register_admin_routes(broker):
    return [AdminRoute("/wait", wait, "waits"), AdminRoute("/go", go, "goes"), AdminRoute("/begun", begun, "tells")]
"""
"""A route, a filter, a validator and a factory that wait until `/go` is asked for; `/begun` says which wait."""


def write(folder: Path, name: str, fault: str | Fault, source: str) -> None:
    """A plugin in one file, for `lc.plugins.path`, with this source after `bad`, which does what the fault says."""
    statement = fault.statement if isinstance(fault, Fault) else FAULTS[fault].statement
    folder.mkdir(parents=True, exist_ok=True)
    size = 100_000_000 if fault == "huge" else 0
    head = HEAD.format(name=name, statement=statement, size=size)
    (folder / f"{name}.py").write_text(head + source)
