"""What tests of what people see share: the commands, run against the broker of the test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest
import trio

import leafcuttr_mqtt
from leafcuttr_mqtt.people import current
from leafcuttr_mqtt.server.running import Running
from leafcuttr_sdk.testing import CommandResult, run_command
from support.mqtt import RunningMqtt

Command = Callable[..., Awaitable[CommandResult]]
Ask = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
def running(mqtt: RunningMqtt) -> Running:
    """What is behind the hooks."""
    (found,) = current._RUNNING.values()
    return found


@pytest.fixture
def command(mqtt: RunningMqtt) -> Command:
    """`leafcuttr mqtt WORDS...`, beside the broker, whose admin port it asks."""

    async def run(*words: str, stdin: str = "") -> CommandResult:
        (declared,) = leafcuttr_mqtt.leafcuttr_register_cli_commands()
        given = (*words, "--admin-server", mqtt.broker.metrics_address or "")
        return await trio.to_thread.run_sync(
            lambda: run_command(declared, *given, plugin=leafcuttr_mqtt, stdin=stdin)
        )

    return run


@pytest.fixture
def ask(mqtt: RunningMqtt) -> Ask:
    """A request to the admin port, below `/plugins/mqtt`."""

    async def request(path: str, method: str = "GET", **query: str) -> httpx.Response:
        url = f"http://{mqtt.broker.metrics_address}/plugins/mqtt{path}"
        async with httpx.AsyncClient() as client:
            return await client.request(method, url, params=query or None)

    return request
