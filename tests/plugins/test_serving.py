"""Plugins in a real `leafcuttr serve`: one that does badly harms nothing else, and all see it; what they show."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from support.broker_process import BrokerProcess, clean_environ, running_broker, start_broker
from support.waiting import free_port, until

HEAD = """
import time
import trio
from leafcuttr_sdk import *

PLUGIN = Plugin("{name}", 1, "For a test.")

def leafcuttr_register_services():
    return [ServiceSpec("{name}", Service)]

class Service:
    def __init__(self, broker):
        self.broker = broker

"""
WELL = """
    async def run(self, *, task_status):
        await self.broker.topics.create("well")
        count = self.broker.metrics.counter("leafcuttr_well_beats_total", "Beats.", "of")
        task_status.started()
        try:
            while True:
                await self.broker.produce("well", b"beat")
                count.add(1, "the heart")
                await trio.sleep(0.05)
        finally:
            with trio.CancelScope(shield=True):
                await self.broker.produce("well", b"last words")
"""
FAILS = """
    async def run(self, *, task_status):
        task_status.started()
        raise OSError("the modem is gone\\nand more")
"""
BLOCKS = """
    async def run(self, *, task_status):
        task_status.started()
        while True:
            await trio.sleep(0.2)
            hold_the_loop()

def hold_the_loop():
    time.sleep(0.5)
"""
STUBBORN = """
    async def run(self, *, task_status):
        task_status.started()
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()
"""
SLOW = """
    async def run(self, *, task_status):
        self.broker.logger.warning("starting slowly")
        await trio.sleep_forever()
"""


def plugins(folder: Path, **bodies: str) -> dict[str, str]:
    """The setting for a folder with these plugins."""
    place = folder / "plugins"
    place.mkdir(parents=True, exist_ok=True)
    for name, body in bodies.items():
        (place / f"{name}.py").write_text(HEAD.format(name=name) + body)
    return {"lc.plugins.path": str(place)}


def admin(broker: BrokerProcess) -> str:
    return "http://" + json.loads((broker.folder / "ready.json").read_text())["metrics"]


def get(broker: BrokerProcess, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(admin(broker) + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def health(broker: BrokerProcess) -> Any:
    return json.loads(get(broker, "/health")[1])


def metrics(broker: BrokerProcess) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample, once read by each of Prometheus' own parsers."""
    openmetrics = get(broker, "/metrics", Accept="application/openmetrics-text")[1]
    assert list(parse_openmetrics(openmetrics))
    families = text_string_to_metric_families(get(broker, "/metrics")[1])
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def values(broker: BrokerProcess, topic: str) -> list[bytes]:
    """Every value of the topic's one partition."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "x", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes] = []
    for _ in range(100_000):
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            break  # the end of the partition
        found.append(message.value())
    consumer.close()
    return found


def produces(broker: BrokerProcess) -> bool:
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce("clients", b"x")
    return producer.flush(60) == 0


def test_services_run_and_stop_before_the_data_is_closed(tmp_path: Path) -> None:
    settings = plugins(tmp_path, well=WELL)
    with running_broker(tmp_path, settings) as broker:
        until(lambda: metrics(broker)["leafcuttr_well_beats_total", ("the heart",)] > 3, "beats")
        assert metrics(broker)["leafcuttr_plugin_service_up", ("well", "well")] == 1
        assert health(broker)["status"] == "ok"
        assert health(broker)["checks"]["service:well"]["ok"]
    with running_broker(tmp_path) as broker:
        found = values(broker, "well")
    assert len(found) > 4 and set(found[:-1]) == {b"beat"} and found[-1] == b"last words"


def test_one_that_fails_harms_no_other(tmp_path: Path) -> None:
    with running_broker(tmp_path, plugins(tmp_path, bad=FAILS, well=WELL)) as broker:
        until(
            lambda: metrics(broker)["leafcuttr_plugin_service_restarts_total", ("bad", "bad")] >= 2,
            "restarts",
        )
        assert produces(broker)
        assert metrics(broker)["leafcuttr_plugin_service_up", ("well", "well")] == 1

        def degraded() -> bool:
            # Between a start and its failure it is well for a moment.
            found = health(broker)
            return (found["status"], found["checks"]["service:bad"].get("detail")) == (
                "degraded",
                "OSError: the modem is gone",
            )

        until(degraded, "health that says so")
        assert get(broker, "/health/ready")[0] == 200
        lines = [line for line in broker.log.splitlines() if "service bad" in line and "ERROR" in line]
        assert "the service bad of plugin bad failed: OSError: the modem is gone (" in lines[0]
        assert "Traceback" not in broker.log


def test_the_traceback_is_there_at_debug_level(tmp_path: Path) -> None:
    with running_broker(tmp_path, plugins(tmp_path, bad=FAILS), options=("--log-level", "debug")) as broker:
        until(lambda: "Traceback" in broker.log, "the traceback")


def test_one_that_blocks_the_loop_is_named_with_its_stack(tmp_path: Path) -> None:
    with running_broker(tmp_path, plugins(tmp_path, lazy=BLOCKS)) as broker:
        line = until(
            lambda: next((each for each in broker.log.splitlines() if "event loop" in each), None),
            "the warning",
        )
        assert "WARNING the service lazy of plugin lazy has held the event loop for over 100 ms" in line
        assert "plugins/lazy.py:" in line and "in hold_the_loop <" in line
        assert metrics(broker)["leafcuttr_plugin_service_blocks_total", ("lazy", "lazy")] >= 1


def test_one_that_does_not_end_is_left_and_the_data_is_closed(tmp_path: Path) -> None:
    broker = start_broker(tmp_path, plugins(tmp_path, mule=STUBBORN, well=WELL))
    assert broker.stop(signal.SIGTERM) == 0
    assert "the service mule of plugin mule has not ended 5 s after it was told to" in broker.log
    assert not (tmp_path / "ready.json").exists()
    with running_broker(tmp_path) as broker:
        assert metrics(broker)["leafcuttr_clean_start", ()] == 1


def test_a_start_that_fails_ends_although_a_service_does_not(tmp_path: Path) -> None:
    refuses = """
    async def run(self, *, task_status):
        import trio.testing
        await trio.testing.wait_all_tasks_blocked()  # the other one is there
        raise PluginError("no licence")
"""
    with pytest.raises(
        RuntimeError, match=r"(?s)status 1.*service never of plugin never: no licence"
    ) as ended:
        start_broker(tmp_path, plugins(tmp_path, mule=STUBBORN, never=refuses))
    assert "the service mule of plugin mule has not ended" in str(ended.value)


@contextmanager
def starting(folder: Path, settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A broker that is not ready yet; what it says is in `folder`/log."""
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder / "data"), **settings}
    words = [word for name, value in given.items() for word in ("-o", f"{name}={value}")]
    command = [sys.executable, "-m", "leafcuttr", "serve", "--ready-file", str(folder / "ready.json"), *words]
    with (folder / "log").open("wb") as out:
        process = subprocess.Popen(command, stderr=out, stdout=out, env=clean_environ())
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_the_broker_is_ready_once_its_services_are(tmp_path: Path) -> None:
    waits = f"""
    async def run(self, *, task_status):
        import pathlib
        while not pathlib.Path({str(tmp_path / "go")!r}).exists():
            await trio.sleep(0.05)
        task_status.started()
        await trio.sleep_forever()
"""
    port = free_port()

    def ready() -> int | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                assert "serving" in json.load(error)["failing"]
            return error.code
        except OSError:
            return None  # not even listening

    with starting(tmp_path, {**plugins(tmp_path, waits=waits), "lc.metrics.port": str(port)}) as process:
        assert until(ready, "the admin port") == 503
        assert not (tmp_path / "ready.json").exists()
        assert "is ready" not in (tmp_path / "log").read_text()
        (tmp_path / "go").touch()
        until(lambda: ready() == 200, "ready")
        until((tmp_path / "ready.json").exists, "the ready file")
        process.terminate()
        assert process.wait(120) == 0


def test_a_signal_while_a_service_starts_stops_the_broker(tmp_path: Path) -> None:
    """The slow one has half a minute until it counts as failed; nobody who presses Ctrl-C waits for that."""
    with starting(tmp_path, plugins(tmp_path, slow=SLOW)) as process:
        until(lambda: "starting slowly" in (tmp_path / "log").read_text(), "the start of the service")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    assert "was not ready" not in (tmp_path / "log").read_text()


ADDS = """
    async def run(self, *, task_status):
        task_status.started()
        await trio.sleep_forever()

def leafcuttr_register_health_checks(broker):
    def broken():
        raise ZeroDivisionError("no look")
    return [
        HealthCheck("modem", "the modem answers", lambda: Finding(True, "42 dB")),
        HealthCheck("valve", "the valve is open", lambda: Finding(state["open"], "closed by hand"), required=True),
        HealthCheck("broken", "it can be read", broken),
        HealthCheck("odd", "it gives a Finding", lambda: "fine"),
    ]

state = {"open": True}

def leafcuttr_register_metrics(broker):
    def broken():
        yield ("1",), 1.0
        raise ZeroDivisionError("no value")
    return [
        MetricReading(gauge("leafcuttr_adds_topics", "Topics."), lambda: [((), len(broker.topics.names()))]),
        MetricReading(gauge("leafcuttr_adds_broken", "Breaks.", "number"), broken),
        MetricReading(gauge("leafcuttr_adds_labels", "Labels.", "one"), lambda: [(("a", "b"), 1)]),
        MetricReading(gauge("leafcuttr_adds_twice", "Twice.", "one"), lambda: [(("a",), 1), (("a",), 2)]),
        MetricReading(gauge("leafcuttr_adds_words", "Words."), lambda: [((), "many")]),
        MetricReading(counter("leafcuttr_adds_last_total", "The last."), lambda: [((), 3)]),
    ]

def leafcuttr_register_admin_routes(broker):
    async def hello(request):
        state["open"] = "close" not in request.query
        return Response(request.path.encode(), "text/plain")
    async def broken(request):
        raise ZeroDivisionError("no answer")
    async def odd(request):
        return "text"
    async def pieces(request):
        async def body():
            yield b"some"
            raise ZeroDivisionError("no more")
        return Response(body(), "text/plain")
    async def subject(request):
        return Response(f"{request.route} {dict(request.parameters)}".encode(), "text/plain")
    return [AdminRoute("/subjects/{subject}", subject, "one subject"), AdminRoute("/subjects/all", hello, "all"),
            AdminRoute("/hello", hello, "says hello"), AdminRoute("/broken", broken, "breaks"),
            AdminRoute("/odd", odd, "is odd"), AdminRoute("/pieces", pieces, "breaks off")]
"""


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("adding")
    with running_broker(folder, plugins(folder, adds=ADDS)) as broker:
        yield broker


def test_health_checks(adding: BrokerProcess) -> None:
    checks = health(adding)["checks"]
    assert checks["adds:modem"] == {
        "ok": True,
        "required": False,
        "looks_at": "the modem answers",
        "detail": "42 dB",
    }
    assert checks["adds:broken"]["detail"] == "the check failed: ZeroDivisionError: no look"
    assert (
        checks["adds:odd"]["detail"]
        == "the check failed: it returned a str, and has to return a Finding with a text"
    )
    assert get(adding, "/health/ready")[0] == 200
    assert get(adding, "/plugins/adds/hello?close=1") == (200, "/plugins/adds/hello")
    assert get(adding, "/health/ready") == (503, '{"status": "not ready", "failing": ["adds:valve"]}\n')
    get(adding, "/plugins/adds/hello")
    assert get(adding, "/health/ready")[0] == 200


def test_metrics_of_a_plugin(adding: BrokerProcess) -> None:
    found = metrics(adding)
    assert found["leafcuttr_adds_topics", ()] >= 0
    assert found["leafcuttr_adds_last_total", ()] == 3
    # What can be shown of a reading that breaks is shown, and no other is harmed.
    assert found["leafcuttr_adds_broken", ("1",)] == 1
    assert found["leafcuttr_adds_twice", ("a",)] == 1
    assert ("leafcuttr_adds_words", ()) not in found
    assert found["leafcuttr_health_check", ("adds:modem",)] == 1
    for line in (
        "plugin adds: metric leafcuttr_adds_broken failed: ZeroDivisionError: no value",
        "plugin adds: metric leafcuttr_adds_labels failed: ValueError: 2 labels, and it has 1",
        "plugin adds: metric leafcuttr_adds_twice failed: ValueError: the labels ('a',) twice",
        "plugin adds: metric leafcuttr_adds_words failed: ValueError: could not convert string to float: 'many'",
    ):
        assert adding.log.count(line) == 1, line  # however often it was scraped


def test_admin_routes(adding: BrokerProcess) -> None:
    assert json.loads(get(adding, "/")[1])["paths"]["/plugins/adds/hello"] == "says hello"
    assert get(adding, "/plugins/adds/hello/") == (200, "/plugins/adds/hello/")
    for path in ("/plugins/adds/broken", "/plugins/adds/odd"):
        status, body = get(adding, path)
        assert (status, json.loads(body)["error"]) == (500, "plugin_failed")
    with pytest.raises(http.client.IncompleteRead):
        urllib.request.urlopen(f"{admin(adding)}/plugins/adds/pieces", timeout=60).read()
    assert get(adding, "/plugins/adds/none")[0] == 404
    assert get(adding, "/health/live")[0] == 200
    assert "Traceback" not in adding.log


def test_parameters_of_an_admin_route(adding: BrokerProcess) -> None:
    """What clients may write in a path is tested with the endpoint: tests/server/admin/test_http.py."""
    assert json.loads(get(adding, "/")[1])["paths"]["/plugins/adds/subjects/{subject}"] == "one subject"
    route = "/plugins/adds/subjects/{subject}"
    assert get(adding, "/plugins/adds/subjects/a%2Fb%20c") == (200, f"{route} {{'subject': 'a/b c'}}")
    assert get(adding, "/plugins/adds/subjects/all") == (200, "/plugins/adds/subjects/all")
    assert get(adding, "/plugins/adds/subjects/%zz")[0] == 400
    assert get(adding, "/plugins/adds/subjects/a/b")[0] == 404


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            "def leafcuttr_register_admin_routes(broker):\n"
            "    return [AdminRoute(f'/subjects/{{{name}}}', print, 'x') for name in ('subject', 'name')]\n",
            "its admin route /subjects/{name} cannot be told from /subjects/{subject}: they match the same paths",
        ),
        (
            "def leafcuttr_register_admin_routes(broker):\n    return [AdminRoute('/a/', print, 'x')] * 2\n",
            "its admin route /a is answered already",
        ),
        (
            "def leafcuttr_register_admin_routes(broker):\n    return [AdminRoute('/a{b}', print, 'x')]\n",
            "its admin route /a{b}: 'a{b}' is no parameter: braces go around the name of a whole part",
        ),
        (
            "def leafcuttr_register_admin_routes(broker):\n"
            "    return [AdminRoute('/a', print, 'x', ('GET', 'POST'))]\n",
            "its admin route /a has the methods ('GET', 'POST'): allowed is a tuple of GET and DELETE",
        ),
        (
            "def leafcuttr_register_admin_routes(broker):\n    return [AdminRoute('/a', print, 'x', 'GET')]\n",
            "its admin route /a has the methods 'GET': allowed is a tuple of GET and DELETE",
        ),
        (
            "def leafcuttr_register_metrics(broker):\n"
            "    return [MetricReading(gauge('leafcuttr_log_size', 'Size.'), list)]\n",
            "leafcuttr_log_size: a metric of the plugin bad begins with leafcuttr_bad_",
        ),
        (
            "def leafcuttr_register_admin_routes(broker):\n    return [AdminRoute('hello', print, 'says hello')]\n",
            "'hello' is no path: it has to begin with a slash",
        ),
        (
            "def leafcuttr_register_health_checks(broker):\n    return [HealthCheck('a', 'x', print)] * 2\n",
            "it has two health checks named a",
        ),
    ],
)
def test_what_cannot_be_taken_leaves_the_plugin_out(tmp_path: Path, body: str, line: str) -> None:
    settings = plugins(tmp_path, bad=WELL + "\n" + body, well=WELL)
    with running_broker(tmp_path, settings) as broker:
        assert line in broker.log
        assert ("leafcuttr_plugin_service_up", ("bad", "bad")) not in metrics(broker)
        assert metrics(broker)["leafcuttr_plugin_service_up", ("well", "well")] == 1
    (tmp_path / "broker.log").unlink()
    with pytest.raises(RuntimeError, match="status 1"):
        start_broker(tmp_path, {**settings, "lc.plugins.strict": "true"})


def test_a_plugin_whose_services_need_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    """As are those that need that one's in turn, and one of a circle; the others serve."""

    def needing(service: str, need: str) -> str:
        return f"{WELL}\ndef leafcuttr_register_services(): return [ServiceSpec('{service}', Service, ('{need}',))]\n"

    settings = plugins(tmp_path, x=needing("a", "b"), y=needing("c", "a"), z=needing("d", "d"), well=WELL)
    with running_broker(tmp_path, settings) as broker:
        for name, line in {
            "x": "its service a needs the service b, and no plugin that is on has it",
            "y": "its service c needs the service a, and no plugin that is on has it",
            "z": "services need each other in a circle: d -> d",
        }.items():
            (found,) = [each for each in broker.log.splitlines() if f"plugin {name} (" in each]
            assert found.endswith(line)
        assert metrics(broker)["leafcuttr_plugin_service_up", ("well", "well")] == 1
    (tmp_path / "broker.log").unlink()
    with pytest.raises(RuntimeError, match="its service a needs the service b"):
        start_broker(tmp_path, {**settings, "lc.plugins.required": "x"})
