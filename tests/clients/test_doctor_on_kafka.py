"""`leafcuttr doctor` against a real Apache Kafka: its plain listener, its SASL listener, its controller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr.cli.doctor.findings import examine
from leafcuttr.cli.doctor.remote.checks import CHECKS
from leafcuttr.cli.doctor.remote.remote_broker import RemoteBroker
from support import jars
from support.real_kafka import Address, real_kafka
from support.waiting import free_port

pytestmark = pytest.mark.long
SASL = """
listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_PLAINTEXT://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{{controller}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_PLAINTEXT://127.0.0.1:{sasl}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
required username="admin" password="secret" user_admin="secret";
"""


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="module")
def kafka(folder: Path, sasl_port: int) -> Iterator[Address]:
    if (reason := jars.missing()) is not None:
        pytest.skip(reason)
    with real_kafka(folder, SASL.format(sasl=sasl_port)) as address:
        yield address


def look(port: int, *, writes: bool = False, **properties: str) -> dict[str, tuple[set[str], str]]:
    """By check: the severities, and all that was seen."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    found: dict[str, tuple[set[str], str]] = {}
    for one in examine(CHECKS, RemoteBroker("127.0.0.1", port, 30, properties=given, writes=writes)):
        severities, seen = found.get(one.check, (set(), ""))
        found[one.check] = severities | {one.finding.severity.value}, f"{seen}{one.finding.seen}\n"
    return found


def test_a_healthy_kafka(kafka: Address) -> None:
    found = look(kafka.port, writes=True)
    assert {name: severities for name, (severities, _) in found.items() if name != "disk"} == {
        check.name: {"fine"} for check in CHECKS if check.name != "disk"
    }
    assert re.search(r"broker 1: the disk of /.* is \d+% full", found["disk"][1])
    # One machine, one clock: what is left is the time that a first request and its answer took.
    assert re.search(r"the clocks of the broker and of this machine agree to \d\.\d s", found["clock"][1])


def test_its_sasl_listener(kafka: Address, sasl_port: int) -> None:
    severities, seen = look(sasl_port)["log-in"]
    assert severities == {"problem"}
    assert "closes the connection at the first request that needs authentication" in seen
    given = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanisms": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": "secret",
    }
    found = look(sasl_port, writes=True, **given)
    assert {name for name, (severities, _) in found.items() if severities != {"fine"}} == {"disk"}
    assert found["access"][1] == "the listener requires authentication\n"
    severities, seen = look(sasl_port, **given | {"sasl_password": "guess"})["log-in"]
    assert severities == {"problem"}
    assert "authentication fails" in seen


def test_its_controller(kafka: Address, folder: Path) -> None:
    controller = re.search(r"voters=1@127\.0\.0\.1:(\d+)", (folder / "server.properties").read_text())
    assert controller is not None
    severities, seen = look(int(controller[1]))["protocol"]
    assert severities == {"problem"}
    assert "the KRaft controller of a Kafka" in seen
