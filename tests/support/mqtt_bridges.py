"""What tests of bridges share: Debian's mosquitto as the other broker, and settings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.packets.types import ConnAck, Connect, Properties, Version
from support.mqtt import V5, MqttClient, RunningMqtt
from support.waiting import free_port

MOSQUITTO = shutil.which("mosquitto") or (
    "/usr/sbin/mosquitto" if Path("/usr/sbin/mosquitto").exists() else None
)
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="no mosquitto")
_VERSIONS = ("3.1", "3.1.1", "5.0")
PROTOCOLS = pytest.mark.parametrize("protocol", _VERSIONS)


def each_with_each(*gate: tuple[str, int], levels: tuple[int, ...] = (0, 1, 2)) -> pytest.MarkDecorator:
    """Each version of the protocol with each QoS of `levels`; the pairs of `gate` are in the gate."""
    pairs = [(version, level) for level in levels for version in _VERSIONS]
    cases = [pytest.param(*pair, marks=() if pair in gate else pytest.mark.long) for pair in pairs]
    return pytest.mark.parametrize(("protocol", "qos"), cases)


class Mosquitto:
    """mosquitto on a port of its own; its sessions are kept in `folder` over a restart."""

    def __init__(self, folder: Path, *more: str) -> None:
        """`more`: lines of its configuration."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nlog_dest file {folder}/log\nlog_type all\nuser root\n"
            + "".join(f"{line}\n" for line in more)
        )
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with trio.fail_after(20):
            while True:
                try:
                    stream = await trio.open_tcp_stream("127.0.0.1", self.port)
                except OSError:
                    await trio.sleep(0.01)
                    continue
                await stream.aclose()
                return

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait(20)
            self._process = None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")


@asynccontextmanager
async def mosquitto(folder: Path, *more: str) -> AsyncIterator[Mosquitto]:
    found = Mosquitto(folder, *more)
    await found.start()
    try:
        yield found
    finally:
        found.stop()


async def client_of(port: int, client_id: str, version: Version = V5, *, clean: bool = True) -> MqttClient:
    client = MqttClient(await trio.open_tcp_stream("127.0.0.1", port), version)
    properties = Properties(session_expiry_interval=None if clean else 3600)
    await client.send(Connect(version, client_id, clean, 0, properties=properties))
    assert (await client.expect(ConnAck)).reason == 0
    return client


def bridge(port: int, topics: str, **more: str) -> dict[str, str]:
    given = {
        "address": f"127.0.0.1:{port}",
        "topics": topics,
        "reconnect.backoff.ms": "20",
        "reconnect.backoff.max.ms": "50",
    }
    given.update({name.replace("_", "."): value for name, value in more.items()})
    return {f"mqtt.bridge.cloud.{name}": value for name, value in given.items()}


async def is_up(mqtt: RunningMqtt, state: bytes = b"1") -> None:
    """Wait for the notification at this broker."""
    client = await mqtt.connect("watcher")
    await client.subscribe("$SYS/broker/connection/+/state")
    with trio.fail_after(20):
        while True:
            message = await client.message()
            own = [each.notification_topic for each in mqtt.running.bridges]
            if message.topic in own and message.payload == state:
                break
    await client.vanish()  # the states of other bridges may be on their way
