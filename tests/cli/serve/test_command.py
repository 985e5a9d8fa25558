"""`leafcuttr serve` as a user starts it: ready line and file, signals, exit statuses, one line for each failure."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.broker_process import clean_environ, running_broker, start_broker
from support.forked_start import run_leafcuttr
from support.waiting import free_port

PORT_0 = ("-o", "listeners=PLAINTEXT://127.0.0.1:0")


def refused(folder: Path, *words: str, before: tuple[str, ...] = (), **environ: str) -> tuple[int, str]:
    """Exit status and standard error of a `serve` that must not start."""
    done = (
        subprocess.run(
            [*before, sys.executable, "-m", "leafcuttr", "serve", *words],
            cwd=folder,
            env=clean_environ(environ),
            capture_output=True,
            text=True,
            timeout=120,
        )
        if before
        else run_leafcuttr(("serve", *words), cwd=folder, environ=clean_environ(environ))
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def one_line(text: str) -> str:
    assert text.endswith("\n") and text.count("\n") == 1, text
    assert text.startswith("leafcuttr: ")
    return text.removeprefix("leafcuttr: ").rstrip()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(tmp_path: Path, how: signal.Signals) -> None:
    broker = start_broker(tmp_path, fresh=True)
    assert (tmp_path / "ready.json").exists()
    assert broker.stop(how) == 0
    assert not (tmp_path / "ready.json").exists()


def test_signals_while_it_stops_change_nothing(tmp_path: Path) -> None:
    broker = start_broker(tmp_path)
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        broker.process.send_signal(how)
    assert broker.process.wait(120) == 0
    assert "Traceback" not in broker.log


def test_the_ready_line_and_the_ready_file(tmp_path: Path) -> None:
    with running_broker(tmp_path, fresh=True) as broker:
        about = json.loads((tmp_path / "ready.json").read_text())
        assert about["pid"] == broker.process.pid
        assert about["data"] == str(broker.data.resolve())
        address = about["listeners"]["PLAINTEXT"]
    assert re.fullmatch(
        rf"LeafCuttr \S+ is ready on PLAINTEXT://{address}, data in {broker.data}\n", broker.log
    )


@pytest.mark.long
def test_a_start_does_not_look_for_garbage_among_all_that_stays(tmp_path: Path) -> None:
    """It took 20 ms of 250. With Python's own threshold there are hundreds of small collections."""
    with running_broker(tmp_path, fresh=True):
        about = json.loads((tmp_path / "ready.json").read_text())
        with urlopen(f"http://{about['metrics']}/metrics") as answer:
            text = answer.read().decode()
    made = {
        generation: int(
            float(re.findall(rf'python_gc_collections_total{{generation="{generation}"}} (.*)', text)[0])
        )
        for generation in (0, 1, 2)
    }
    assert made[2] == 0
    assert made[0] < 30


def test_the_defaults_are_said(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"log.dirs": "leafcuttr-data"}) as broker:
        pass
    assert "data in ./leafcuttr-data" in broker.log
    assert (tmp_path / "leafcuttr-data" / "meta.properties").exists()


def test_a_ready_file_that_cannot_be_written(tmp_path: Path) -> None:
    status, text = refused(tmp_path, *PORT_0, "--ready-file", str(tmp_path / "no" / "ready.json"))
    assert status == 1
    assert "ready file" in one_line(text)


def test_a_busy_port(tmp_path: Path) -> None:
    with running_broker(tmp_path / "first") as broker:
        status, text = refused(tmp_path, "-o", f"listeners=PLAINTEXT://127.0.0.1:{broker.port}")
        assert status == 1
        assert f"127.0.0.1 port {broker.port}" in one_line(text)


def test_a_second_process_on_the_same_directory(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        ready = tmp_path / "ready.json"
        status, text = refused(tmp_path, *PORT_0, "-o", f"log.dirs={broker.data}", "--ready-file", str(ready))
        assert status == 1
        assert f"in use by another broker (process {broker.process.pid})" in one_line(text)
        assert ready.exists(), "the ready file belongs to the broker that runs"


def test_an_unusable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, text = refused(tmp_path, *PORT_0, "-o", "log.dirs=file")
    assert status == 1
    assert f"data directory {tmp_path / 'file'} cannot be used" in one_line(text)


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root may read every directory")
def test_an_unreadable_directory(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o000)
    meek = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.getuid() == 0 else ()
    status, text = refused(tmp_path, *PORT_0, "-o", "log.dirs=data", before=meek)
    assert status == 1
    assert "Permission denied" in one_line(text)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("log.retention.hours=abc", ("log.retention.hours=abc", "-o", "a whole number")),
        ("nonsense", ("nonsense", "key=value")),
        ("log.dirs=a,b", ("log.dirs=a,b", "one directory")),
        ("listeners=PLAINTEXT//x", ("listeners",)),
    ],
)
def test_a_bad_setting(tmp_path: Path, setting: str, words: tuple[str, ...]) -> None:
    status, text = refused(tmp_path, *PORT_0, "-o", setting)
    assert status == 2
    for word in words:
        assert word in one_line(text)
    assert list(tmp_path.iterdir()) == [], "a start that is refused leaves nothing behind"


def test_a_bad_setting_in_the_environment_and_in_a_file(tmp_path: Path) -> None:
    status, text = refused(tmp_path, KAFKA_NUM_PARTITIONS="none")
    assert (status, "KAFKA_NUM_PARTITIONS" in one_line(text)) == (2, True)
    (tmp_path / "server.properties").write_text("# a comment\nnum.partitions=none\n")
    status, text = refused(tmp_path, "-c", "server.properties")
    assert (status, "server.properties" in one_line(text)) == (2, True)
    status, text = refused(tmp_path, "-c", "missing.properties")
    assert (status, one_line(text)) == (2, "missing.properties: No such file or directory")


def test_failures_and_events_as_json(tmp_path: Path) -> None:
    status, text = refused(tmp_path, *PORT_0, "-o", "num.partitions=none", "--log-format", "json")
    assert status == 2
    event = json.loads(text)
    assert event["level"] == "critical"
    assert "num.partitions=none" in event["message"]
    options = ("--log-format", "json", "--log-level", "info")
    with running_broker(tmp_path / "b", {"no.such.setting": "1"}, options=options) as broker:
        pass
    events = [json.loads(line) for line in broker.log.splitlines() if not line.startswith("LeafCuttr")]
    warning = next(event for event in events if event["level"] == "warning")
    assert "no.such.setting" in warning["message"]
    assert {"time", "level", "logger", "message"} <= set(warning)


def test_warnings_that_do_not_stop_it(tmp_path: Path) -> None:
    settings = {"default.replication.factor": "3", "lc.isolated": "false", "log.retention.hour": "4"}
    with running_broker(tmp_path, settings) as broker:
        pass
    assert "did you mean log.retention.hours?" in broker.log
    assert "there is no replication, 1 is used" in broker.log
    assert "lc.isolated=false" in broker.log
    assert broker.log.count("\n") == 4


def test_quiet_by_default(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        pass
    assert broker.log.count("\n") == 1


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_listener_on_ipv6(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    with running_broker(tmp_path, {"listeners": "PLAINTEXT://[::1]:0"}) as broker:
        assert broker.host == "[::1]"
        brokers = AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=60).brokers
        assert [about.port for about in brokers.values()] == [broker.port]


def test_the_environment_of_the_manuals_compose_file(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    host, docker, controller = free_port(), free_port(), free_port()
    environ = {
        "KAFKA_LISTENERS": f"CONTROLLER://localhost:{controller},HOST://0.0.0.0:{host},DOCKER://0.0.0.0:{docker}",
        "KAFKA_ADVERTISED_LISTENERS": f"HOST://localhost:{host},DOCKER://kafka:{docker}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@localhost:{controller}",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    }
    config = tmp_path / "empty.properties"
    config.touch()
    with running_broker(tmp_path, config=config, environ=environ) as broker:
        assert broker.listeners == {"HOST": f"0.0.0.0:{host}", "DOCKER": f"0.0.0.0:{docker}"}
        brokers = AdminClient({"bootstrap.servers": f"127.0.0.1:{host}"}).list_topics(timeout=60).brokers
        assert {(about.id, about.host, about.port) for about in brokers.values()} == {(1, "localhost", host)}
        with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
            probe.connect(("127.0.0.1", controller))
    warned = re.findall(r"WARNING (.*)", broker.log)
    assert warned == [
        f"every host that reaches 0.0.0.0 port {port} may use the listener {name} without authentication (listeners)"
        for name, port in (("HOST", host), ("DOCKER", docker))
    ]
    assert broker.log.count("\n") == 1 + len(warned), "nothing else to warn of"


def test_serving_imports_nothing_heavy(tmp_path: Path) -> None:
    """What the start costs: no client library, no terminal decoration, no codec before somebody needs it."""
    environ = clean_environ({"PYTHONPROFILEIMPORTTIME": "1"})
    done = subprocess.run(
        [sys.executable, "-m", "leafcuttr", "serve", *PORT_0, "--ready-file", str(tmp_path / "no" / "way")],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    imported = {
        line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line
    }
    assert "leafcuttr.server.run" in imported
    assert imported.isdisjoint(
        {"rich", "confluent_kafka", "cramjam", "prometheus_client", "h11", "asyncio", "pydoc_data"}
    )
