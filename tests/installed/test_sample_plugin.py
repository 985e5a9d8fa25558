"""A plugin that is a distribution of its own, installed beside leafcuttr in a fresh environment, does all that a plugin
can do, as clients see it. It imports `leafcuttr_sdk` and nothing else of ours."""

from __future__ import annotations

import ast
import hmac
import json
import re
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import librdkafka
from support.installed import SAMPLE, Environment
from support.waiting import free_port, until

NOW = 1_700_000_000_000


def reading(sensor: int, celsius: float) -> bytes:
    return struct.pack(">Hf", sensor, celsius)


class Running:
    """The broker of the fresh environment, with the plugin on."""

    def __init__(self, environment: Environment, folder: Path, ready: dict[str, Any], port: int) -> None:
        self.environment = environment
        self.folder = folder
        self.address = next(iter(ready["listeners"].values()))
        self.admin = ready["metrics"]
        self.log: Path = ready["log"]
        self.port = port

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def leafcuttr(self, *words: str, stdin: str = "") -> str:
        return self.environment.run("leafcuttr", *words, cwd=self.folder, stdin=stdin)

    def say(self, *lines: str) -> list[str]:
        """To the plugin's own listener."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as sock,
            sock.makefile("rw") as file,
        ):
            proof = hmac.digest(b"sesame", file.readline().strip().encode(), "sha256").hex()
            file.write(f"bed 7 {proof}\n" + "".join(f"{line}\n" for line in lines))
            file.flush()
            assert file.readline() == "welcome\n"
            return [file.readline().rstrip("\n") for _ in lines]


@pytest.fixture(scope="module")
def running(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder, port = tmp_path_factory.mktemp("greenhouse"), free_port()
    settings = {
        "lc.metrics.port": "0",
        "lc.plugins.strict": "true",
        "lc.plugin.greenhouse.host": "127.0.0.1",
        "lc.plugin.greenhouse.port": str(port),
        "lc.plugin.greenhouse.auth": "sasl",
        "lc.plugin.greenhouse.token": "sesame",
        "lc.plugin.greenhouse.zone.7": "east",
        "lc.plugin.greenhouse.zone.9": "west",
    }
    with installed.broker(folder, **settings) as ready:
        yield Running(installed, folder, ready, port)


def test_it_imports_the_sdk_only() -> None:
    ours = re.compile(r"leafcuttr(_(?!sdk\b|greenhouse\b)\w+)?(\.|$)")
    for source in SAMPLE.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if ours.match(name)], source


def test_the_environment_has_the_wheels_and_not_this_checkout(installed: Environment, tmp_path: Path) -> None:
    program = "import leafcuttr, leafcuttr_sdk, leafcuttr_greenhouse as g; print(leafcuttr_sdk.__file__, g.__file__)"
    for path in installed.run("python", "-c", program, cwd=tmp_path).split():
        assert Path(path).is_relative_to(installed.folder)


def test_it_is_listed_and_described(installed: Environment, tmp_path: Path) -> None:
    listed = json.loads(installed.run("leafcuttr", "plugins", "list", "--json", cwd=tmp_path))
    (found,) = (one for one in listed if one["name"] == "greenhouse")
    assert (found["state"], found["distribution"], found["version"]) == (
        "enabled",
        "leafcuttr-greenhouse",
        "1.2.0",
    )
    described = json.loads(
        installed.run("leafcuttr", "plugins", "describe", "greenhouse", "--json", cwd=tmp_path)
    )
    zones = ("-o", "lc.plugin.greenhouse.zone.7=east", "-o", "lc.plugin.greenhouse.zone.8=east")
    named = json.loads(
        installed.run("leafcuttr", "plugins", "describe", "greenhouse", "--json", *zones, cwd=tmp_path)
    )
    assert [one["name"] for one in named["record_filters"]] == ["plausible", "zone-east"]
    assert [one["name"] for one in described["services"]] == [
        "greenhouse",
        "greenhouse-page",
        "greenhouse-lamp",
    ]
    assert [one["name"] for one in described["record_filters"]] == ["plausible"]
    assert [one["name"] for one in described["produce_validators"]] == ["readings"]
    assert [(one["name"], one["makes_records"]) for one in described["record_formats"]] == [("reading", True)]
    assert [one["name"] for one in described["cli_commands"]] == ["greenhouse"]
    assert "lc.plugin.greenhouse.ssl.keystore.location" in [one["name"] for one in described["settings"]]
    assert "lc.plugin.greenhouse.highest" in [one["name"] for one in described["topic_settings"]]


def test_its_settings_are_the_brokers(installed: Environment, tmp_path: Path) -> None:
    shown = installed.run(
        "leafcuttr",
        *("config", "describe", "lc.plugin.greenhouse.*", "-o", "lc.plugin.greenhouse.token=sesame"),
        cwd=tmp_path,
    )
    assert "lc.plugin.greenhouse.topic" in shown
    assert "sesame" not in shown
    said = installed.run("leafcuttr", "serve", "-o", "lc.plugin.greenhouse.port=many", cwd=tmp_path, status=2)
    assert "lc.plugin.greenhouse.port" in said
    assert "Traceback" not in said


def test_its_filter_and_validator_see_what_clients_send(running: Running) -> None:
    librdkafka.create(
        running.address,
        "beds",
        **{"lc.plugin.greenhouse.highest": "50"},  # which implies the filter
    )
    values = [reading(7, 21.5), reading(8, -50.0), reading(9, 70.0), b"no reading", reading(8, 20.0)]
    answers = librdkafka.send(running.address, "beds", values, timestamp=NOW)
    assert answers == [0, 1, 2, 3, 4]
    kept = librdkafka.read(running.address, "beds", 2)
    assert [record.value() for record in kept] == [values[0], values[4]]
    assert [record.offset() for record in kept] == [0, 4]
    assert dict(kept[0].headers()) == {"zone": b"east"}
    dead = librdkafka.read(running.address, "beds.dlq", 2)
    assert [dict(record.headers()).get("zone") for record in dead] == [b"west", None]
    assert [record.value() for record in dead] == [values[2], values[3]]
    assert [dict(record.headers())["lc.dead.letter.reason"].decode() for record in dead] == [
        "70.0 °C is above 50.0",
        "10 bytes are no reading: it has 6",
    ]

    librdkafka.create(running.address, "checked", **{"lc.validators": "readings"})
    refused = librdkafka.send(running.address, "checked", [b"no reading"], timestamp=NOW)
    assert refused == ["INVALID_RECORD"]
    assert librdkafka.send(running.address, "checked", [reading(1, 1.0)], timestamp=NOW) == [0]


def test_a_change_of_a_topics_setting_reaches_it(running: Running) -> None:
    librdkafka.create(running.address, "changing", **{"lc.filters": "plausible"})
    librdkafka.send(running.address, "changing", [reading(1, 30.0)], timestamp=NOW)
    librdkafka.alter(running.address, "topic", "changing", {"lc.plugin.greenhouse.highest": "25"})
    librdkafka.send(running.address, "changing", [reading(1, 30.0), reading(1, 20.0)], timestamp=NOW)
    assert [r.value() for r in librdkafka.read(running.address, "changing", 2)] == [
        reading(1, 30.0),
        reading(1, 20.0),
    ]
    assert [r.value() for r in librdkafka.read(running.address, "changing.dlq", 1)] == [reading(1, 30.0)]


def test_its_service_listens_produces_and_follows(running: Running) -> None:
    answers = running.say("7 21.5", "nonsense", "8 50")
    assert re.fullmatch(r"0-\d+", answers[0])
    assert answers[1].startswith("error: 'nonsense' is no reading")
    (record, *_) = librdkafka.read(running.address, "greenhouse", 1)
    assert (record.key(), record.value()) == (b"7", reading(7, 21.5))

    def latest() -> bool:
        return json.loads(running.get("/plugins/greenhouse/latest")[1]) == {"7": 21.5, "8": 50.0}

    until(latest, "the service has followed its topic")
    assert json.loads(running.get("/plugins/greenhouse/latest?sensor=8")[1]) == {"8": 50.0}
    assert running.get("/plugins/greenhouse/sensors/8") == (200, "50.0")
    assert running.get("/plugins/greenhouse/sensors/a%2Fb") == (404, "null")
    metrics = running.get("/metrics")[1]
    assert 'leafcuttr_greenhouse_lines_total{answer="stored"} 2' in metrics
    assert 'leafcuttr_greenhouse_lines_total{answer="refused"} 1' in metrics
    assert 'leafcuttr_greenhouse_celsius{sensor="7"} 21.5' in metrics
    health = json.loads(running.get("/health")[1])
    assert health["status"] == "degraded"
    assert "sensor 8 is at 50.0 °C" in str(health)
    assert (
        f"lc.plugin.greenhouse://127.0.0.1:{running.port}" in running.log.read_text()
    )  # the line of the start
    assert "sesame" not in running.log.read_text()


def test_its_command_and_its_format(running: Running) -> None:
    said = running.leafcuttr(
        *("greenhouse", "send", "3 18.5", "4 19"), "--bootstrap-server", running.address, "--topic", "sent"
    )
    assert said == "2 readings stored\n"
    read = ("consume", "sent", "-b", running.address, "--format", "reading")
    assert running.leafcuttr(*read) == "3 18.5\n4 19.0\n"
    assert running.leafcuttr(*read, "--format-option", "unit=F") == "3 65.3\n4 66.2\n"
    running.leafcuttr("produce", "sent", "-b", running.address, "--format", "reading", stdin="5 1.5\n")
    assert running.leafcuttr(*read) == "3 18.5\n4 19.0\n5 1.5\n"
    words = ("--format", "reading", "--num-records", "50", "--seed", "3", "-b", running.address)
    running.leafcuttr("perf", "produce", "--topic", "made", *words)
    made = running.leafcuttr("consume", "made", "-b", running.address, "--format", "reading", "--keys")
    assert len(made.splitlines()) == 50
    assert all(line.split("\t")[0] == line.split("\t")[1].split()[0] for line in made.splitlines())
    assert "greenhouse" in running.leafcuttr("--help")
    latest = ("greenhouse", "latest", "-b", running.address, "--admin-server", running.admin)
    assert running.leafcuttr(*latest).splitlines() == ["SENSOR  CELSIUS", "7       21.5", "8       50.0"]
    assert json.loads(running.leafcuttr(*latest, "8", "--json")) == {"8": 50.0}


def test_nothing_was_amiss(running: Running) -> None:
    log = running.log.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log
