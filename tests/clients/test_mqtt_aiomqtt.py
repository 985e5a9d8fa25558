"""aiomqtt, which is paho-mqtt for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.mqtt_broker import MAPPED, MqttBroker
from support.mqtt_duties import AWAY, MESSAGES, SHARED

T = TypeVar("T")
Fresh = Callable[[str], str]
Client = Callable[..., aiomqtt.Client]
PATIENCE_S = 60
LASTS_S = 300
pytestmark = pytest.mark.client("aiomqtt")


def run(does: Awaitable[T]) -> T:
    return asyncio.run(asyncio.wait_for(does, PATIENCE_S))


@pytest.fixture(params=[aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5], ids=["3.1.1", "5.0"])
def client(request: pytest.FixtureRequest, mqtt_broker: MqttBroker) -> Client:
    five = request.param == aiomqtt.ProtocolVersion.V5

    def make(name: str, *, clean: bool = True, **options: Any) -> aiomqtt.Client:
        if five:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 0 if clean else LASTS_S
            options |= {"clean_start": clean, "properties": properties}
        else:
            options["clean_session"] = clean
        return aiomqtt.Client(
            mqtt_broker.host, mqtt_broker.port, identifier=name, protocol=request.param, **options
        )

    return make


async def take(client: aiomqtt.Client, count: int) -> list[aiomqtt.Message]:
    found: list[aiomqtt.Message] = []
    async for message in client.messages:
        found.append(message)
        if len(found) == count:
            break
    return found


def texts(messages: list[aiomqtt.Message]) -> list[str]:
    return [bytes(one.payload).decode() for one in messages if isinstance(one.payload, bytes | bytearray)]


@pytest.mark.duty("connect", "QoS 0", "QoS 1", "QoS 2")
def test_each_quality_of_service(client: Client, fresh: Fresh) -> None:
    base = f"{MAPPED}/{fresh('qos')}"

    async def all_of_it() -> None:
        async with client(fresh("listener")) as listener, client(fresh("sender")) as sender:
            await listener.subscribe(f"{base}/+", qos=2)
            for qos in range(3):
                for number in range(MESSAGES):
                    await sender.publish(f"{base}/{qos}", str(number), qos=qos)
            got = await take(listener, 3 * MESSAGES)
        for qos in range(3):
            mine = [one for one in got if one.topic.matches(f"{base}/{qos}")]
            assert texts(mine) == [str(number) for number in range(MESSAGES)]
            assert {(one.qos, bool(one.retain)) for one in mine} == {(qos, False)}

    run(all_of_it())


@pytest.mark.duty("retained")
def test_retained(client: Client, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('retained')}"

    async def all_of_it() -> None:
        async with (
            client(fresh("sender")) as sender,
            client(fresh("late")) as late,
            client(fresh("later")) as later,
        ):
            for text in ("first", "last"):
                await sender.publish(topic, text, qos=1, retain=True)
            await late.subscribe(topic, qos=1)
            (message,) = await take(late, 1)
            assert (message.payload, bool(message.retain)) == (b"last", True)
            await sender.publish(topic, b"", qos=1, retain=True)
            await later.subscribe(topic, qos=1)
            await sender.publish(topic, "live", qos=1)
            (message,) = await take(later, 1)
            assert (message.payload, bool(message.retain)) == (b"live", False)

    run(all_of_it())


@pytest.mark.duty("will")
def test_will(client: Client, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('will')}"

    async def all_of_it() -> None:
        async with client(fresh("witness")) as witness:
            await witness.subscribe(topic, qos=1)
            async with client(fresh("polite"), will=aiomqtt.Will(topic, "polite", 1)):
                pass
            name = fresh("broken")
            async with AsyncExitStack() as stack:
                broken = await stack.enter_async_context(client(name, will=aiomqtt.Will(topic, "broken", 1)))
                async with client(
                    name
                ):  # takes it over: that connection ends without a DISCONNECT of its client
                    assert texts(await take(witness, 1)) == ["broken"]
                with pytest.raises(aiomqtt.MqttError):
                    await broken.publish(topic, "too late", qos=1)
                    await broken.publish(topic, "too late", qos=1)
                stack.pop_all()  # there is nothing that could be disconnected

    run(all_of_it())


@pytest.mark.duty("session resume")
def test_a_session_is_resumed(client: Client, fresh: Fresh) -> None:
    topic, name = f"{MAPPED}/{fresh('resumed')}", fresh("lasting")
    sent = [f"{qos}-{number}" for qos in (1, 2) for number in range(AWAY)]

    async def all_of_it() -> None:
        async with client(name, clean=False) as first:
            await first.subscribe(topic, qos=2)
        async with client(fresh("sender")) as sender:
            for text in sent:
                await sender.publish(topic, text, qos=int(text[0]))
        async with client(name, clean=False) as again:
            assert texts(await take(again, len(sent))) == sent
        async with client(name):
            pass

    run(all_of_it())


@pytest.mark.duty("shared subscription")
def test_a_shared_subscription(client: Client, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('shared')}"

    async def all_of_it() -> None:
        got: list[list[str]] = [[], []]
        done = asyncio.Event()

        async def member(number: int, ready: asyncio.Event) -> None:
            async with client(fresh("member")) as one:
                await one.subscribe(f"$share/both/{topic}", qos=1)
                ready.set()
                async for message in one.messages:
                    got[number] += texts([message])
                    if sum(map(len, got)) == SHARED:
                        done.set()

        ready = [asyncio.Event(), asyncio.Event()]
        members = [asyncio.ensure_future(member(number, ready[number])) for number in range(2)]
        for one in ready:
            await one.wait()
        async with client(fresh("sender")) as sender:
            for number in range(SHARED):
                await sender.publish(topic, str(number), qos=1)
        await done.wait()
        for each in members:
            each.cancel()
        await asyncio.gather(*members, return_exceptions=True)
        assert sorted(int(text) for one in got for text in one) == list(range(SHARED))
        assert all(got)

    run(all_of_it())
