"""Users, ACLs and quotas of the broker for clients of MQTT: each way by which a message gets to a client is looked
at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.acls import Acls
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    Properties,
    PubAck,
    Publish,
    ReasonCode,
    SubscriptionRequest,
    Version,
    Will,
)
from leafcuttr_mqtt.server.reading import _hold_back
from leafcuttr_mqtt.server.states import Life
from leafcuttr_mqtt.session.types import DropReason
from support.mqtt import V3, V5, MqttClient, RunningMqtt, running_mqtt

SHA_256 = ScramMechanism.SCRAM_SHA_256
READ, WRITE = AclOperation.READ, AclOperation.WRITE
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
OUTLIVES = Properties(session_expiry_interval=1000)
NOT_AUTHORIZED = ReasonCode.NOT_AUTHORIZED
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "mqtt.auth": "basic",
    "mqtt.authenticators": "broker",
    "mqtt.topic.mapping.devices/#": "from-devices",
    "mqtt.topic.mapping.both/#": "one",
    "mqtt.topic.mapping.both/+": "two",
    "mqtt.topic.egress.down": "down/{key}",
    "mqtt.replay.enable": "true",
}


class Secured:
    """A broker with users whose password is that of their name."""

    def __init__(self, mqtt: RunningMqtt) -> None:
        self.mqtt = mqtt
        self.core = mqtt.broker._core

    @property
    def acls(self) -> Acls:
        assert self.core.authorizer is not None
        return self.core.authorizer.acls  # type: ignore[attr-defined,no-any-return]

    async def user(self, *names: str) -> None:
        made = [
            CredentialUpsertion(name, SHA_256, new_credential(SHA_256, name.encode(), 4096)) for name in names
        ]
        await self.core.users.alter(made, [])

    async def allow(
        self,
        user: str,
        operation: AclOperation,
        topic: str,
        pattern: PatternType = LITERAL,
        permission: AclPermission = AclPermission.ALLOW,
    ) -> None:
        await self.acls.create(
            [Acl(AclResourceType.TOPIC, topic, pattern, f"User:{user}", "*", operation, permission)]
        )

    async def forbid(self, user: str) -> None:
        """Nothing more is allowed."""
        await self.acls.delete([AclFilter(principal=f"User:{user}")])

    async def connect(self, user: str, client_id: str = "", version: Version = V5, **more: Any) -> MqttClient:
        return await self.mqtt.connect(
            client_id, version, user_name=user, password=user.encode(), **{"present": None, **more}
        )

    async def refused(self, user: str, password: bytes, will: Will | None = None) -> int:
        client = await self.mqtt.dial()
        await client.send(Connect(V5, "", True, 0, user, password, will, Properties()))
        reason = (await client.expect(ConnAck)).reason
        await client.closed()
        return reason


@asynccontextmanager
async def secured(folder: Path, **more: str) -> AsyncIterator[Secured]:
    async with running_mqtt(folder, {**SETTINGS, **more}) as mqtt:
        found = Secured(mqtt)
        await found.user("admin", "alice", "bob")
        yield found


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Secured]:
    async with secured(tmp_path / "data") as found:
        yield found


async def test_users_of_the_broker(broker: Secured) -> None:
    client = await broker.connect("alice", "a")
    assert await broker.refused("alice", b"wrong") == ReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert await broker.refused("nobody", b"alice") == ReasonCode.BAD_USER_NAME_OR_PASSWORD
    await broker.user("bob")
    await client.nothing()
    await broker.core.users.alter([], [CredentialDeletion("alice", SHA_256)])
    assert (await client.expect(Disconnect)).reason == NOT_AUTHORIZED
    await client.closed()


async def test_the_pair_is_asked_before(tmp_path: Path) -> None:
    pair = {"mqtt.auth.username": "pair", "mqtt.auth.password": "of the settings"}
    async with secured(tmp_path, **pair) as broker:
        await broker.mqtt.connect("a", user_name="pair", password=b"of the settings")
        await broker.connect("alice")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [V3, V5])
async def test_publishing_takes_write_on_what_the_topic_is_mapped_to(
    broker: Secured, qos: int, version: Version
) -> None:
    admin = await broker.connect("admin")
    await admin.subscribe("#", qos=0)
    alice = await broker.connect("alice", "a", version)
    await broker.allow("alice", WRITE, "mqtt/free")
    await broker.allow("alice", WRITE, "from-devices")
    await broker.allow("alice", WRITE, "one")
    for topic, allowed in (
        ("free", True),
        ("other", False),
        ("devices/1", True),
        ("both/1", False),
        ("both/1/2", True),
    ):
        answer = await alice.publish(topic, topic.encode(), qos)
        if qos and version is V5:
            assert (answer.reason == NOT_AUTHORIZED) is not allowed  # type: ignore[union-attr]
        await alice.nothing()
        if allowed:
            assert (await admin.message()).topic == topic
        await admin.nothing()
    await broker.forbid("alice")
    await alice.publish("free", b"x", qos)
    await admin.nothing()
    assert broker.mqtt.running.refused == 3


async def test_why_is_told(broker: Secured) -> None:
    alice = await broker.connect("alice")
    answer = await alice.publish("devices/1", b"x", 1)
    assert isinstance(answer, PubAck)
    assert answer.properties.reason_string == "User:alice may not WRITE topic from-devices"
    subscribed = await alice.subscribe("a/b")
    assert subscribed.properties.reason_string == "User:alice may not READ topic mqtt/a/b"


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_filter_without_wildcards_is_refused(broker: Secured, version: Version) -> None:
    alice = await broker.connect("alice", "a", version)
    await broker.allow("alice", READ, "mqtt/mine")
    refused = NOT_AUTHORIZED if version is V5 else 0x80
    answer = await alice.subscribe("mine", "other", "devices/1", "$SYS/broker/uptime", "#", "$SYS/#", qos=1)
    assert answer.reasons == (1, refused, refused, refused, 1, 1)
    admin = await broker.connect("admin")
    for topic in ("other", "devices/1", "mine"):
        await admin.publish(topic, topic.encode(), 1)
    assert (await alice.message()).topic == "mine"
    await alice.nothing()


async def test_each_message_of_a_wildcard_is_checked(broker: Secured) -> None:
    alice, admin = await broker.connect("alice"), await broker.connect("admin")
    await alice.subscribe("#", qos=0)
    await admin.publish("x", b"before")
    await admin.nothing()
    await broker.allow("alice", READ, "mqtt/x")
    await admin.publish("x", b"allowed")
    assert (await alice.message()).payload == b"allowed"
    await broker.allow("alice", READ, "mqtt/x", permission=AclPermission.DENY)
    await admin.publish("x", b"denied")
    await admin.nothing()
    await alice.nothing()
    await broker.allow("alice", READ, "two")
    await admin.publish("both/1", b"one of its Kafka topics suffices", 1)
    await admin.publish("both/1/2", b"this one is in another", 1)
    assert (await alice.message()).topic == "both/1"
    await alice.nothing()


async def test_retained_messages(broker: Secured) -> None:
    admin, alice = await broker.connect("admin"), await broker.connect("alice")
    for topic in ("r/1", "r/2", "devices/1"):
        await admin.publish(topic, topic.encode(), 1, retain=True)
    await broker.allow("alice", READ, "mqtt/r/2")
    await alice.subscribe("#", qos=1)
    assert (await alice.message()).topic == "r/2"
    await alice.nothing()
    assert (await alice.subscribe("devices/1")).reasons == (NOT_AUTHORIZED,)


async def test_what_waits_is_checked_when_it_is_sent(broker: Secured) -> None:
    """Its rights may have gone meanwhile."""
    await broker.allow("alice", READ, "mqtt/w", PREFIXED)
    alice = await broker.connect("alice", "a", clean=False, properties=OUTLIVES)
    await alice.subscribe("#", qos=1)
    await alice.leave()
    admin = await broker.connect("admin")
    await admin.publish("v", b"it does not even wait", 1)
    await admin.publish("w/1", b"1", 1)
    await admin.publish("w/2", b"2", 1)
    client = broker.mqtt.running.hub.clients["a"]
    assert client.session.outbound.messages == 2
    await broker.forbid("alice")
    await broker.allow("alice", READ, "mqtt/w/2")
    alice = await broker.connect("alice", "a", clean=False, properties=OUTLIVES)
    assert (await alice.message()).topic == "w/2"
    await alice.nothing()
    assert broker.mqtt.running.hub.drops[DropReason.NOT_ALLOWED] == 1


async def test_a_session_that_another_user_goes_on_with(broker: Secured) -> None:
    """It gets what that one may have, of what waits and of what comes."""
    await broker.allow("alice", READ, "mqtt/of-alice")
    await broker.allow("bob", READ, "mqtt/of-bob")
    alice = await broker.connect("alice", "a", clean=False, properties=OUTLIVES)
    await alice.subscribe("#", qos=1)
    admin = await broker.connect("admin")
    await admin.publish("of-alice", b"", 1)
    assert (await alice.message()).topic == "of-alice"
    await alice.leave()
    await admin.publish("of-alice", b"", 1)
    bob = await broker.connect("bob", "a", clean=False, properties=OUTLIVES)
    await bob.nothing()
    await admin.publish("of-alice", b"", 1)
    await admin.publish("of-bob", b"", 1)
    assert (await bob.message()).topic == "of-bob"
    await bob.nothing()


async def test_after_a_restart(tmp_path: Path) -> None:
    """Whose session it is has been kept."""
    async with secured(tmp_path) as broker:
        await broker.allow("alice", READ, "mqtt/w")
        alice = await broker.connect("alice", "a", clean=False, properties=OUTLIVES)
        await alice.subscribe("#", qos=1)
        await alice.leave()
        admin = await broker.connect("admin")
        await admin.publish("w", b"kept", 1)
        await admin.publish("v", b"not for it", 1)
    async with secured(tmp_path) as broker:
        admin = await broker.connect("admin")
        await admin.publish("v", b"not for it", 1)
        assert broker.mqtt.running.hub.clients["a"].session.outbound.messages == 1
        await broker.user("alice")
        alice = await broker.connect("alice", "a", clean=False, properties=OUTLIVES)
        assert (await alice.message()).payload == b"kept"
        await alice.nothing()


async def test_shared_subscriptions(broker: Secured) -> None:
    """A member that may not have a message is passed over; without another nobody gets it."""
    await broker.allow("bob", READ, "mqtt/s")
    alice, bob, admin = [await broker.connect(name) for name in ("alice", "bob", "admin")]
    for client in (alice, bob):
        assert (await client.subscribe("$share/g/#", qos=1)).reasons == (1,)
    for _ in range(4):
        await admin.publish("s", b"", 1)
        assert (await bob.message()).topic == "s"
    answer = await admin.publish("t", b"", 1)
    assert answer.reason == ReasonCode.NO_MATCHING_SUBSCRIBERS  # type: ignore[union-attr]
    await alice.nothing()
    await bob.nothing()
    assert (await alice.subscribe("$share/g/s")).reasons == (NOT_AUTHORIZED,)


async def test_wills(broker: Secured) -> None:
    admin = await broker.connect("admin")
    await admin.subscribe("will/#", qos=1)
    assert (
        await broker.refused("alice", b"alice", Will("will/1", b"", 1, False, Properties())) == NOT_AUTHORIZED
    )
    await broker.allow("alice", WRITE, "mqtt/will/1")
    for allowed in (True, False):
        alice = await broker.connect("alice", will=Will("will/1", b"gone", 1, False, Properties()))
        if not allowed:
            await broker.forbid("alice")
        await alice.vanish()
        if allowed:
            assert (await admin.message()).payload == b"gone"
    await wait_all_tasks_blocked(0.05)
    await admin.nothing()


async def test_histories_and_what_comes_down(broker: Secured) -> None:
    """`$replay` and the records of Kafka topics."""
    await broker.mqtt.broker.topics.create("down", partitions=1)
    admin = await broker.connect("admin")
    await admin.publish("devices/1", b"1", 1)
    await admin.publish("both/1", b"2", 1)
    alice = await broker.connect("alice")
    await broker.allow("alice", READ, "from-devices")
    await alice.subscribe(SubscriptionRequest("$replay/offset/0/#", 1))
    assert (await alice.message()).topic == "devices/1"
    answer = await alice.subscribe("$replay/offset/0/both/1", "$replay/offset/0/both/+", qos=1)
    assert answer.reasons == (NOT_AUTHORIZED, 1)
    assert answer.properties.reason_string == "User:alice may not READ topic one"
    await alice.subscribe("down/+", qos=1)
    await broker.allow("alice", READ, "mqtt/down/b")
    for key in (b"a", b"b"):
        await broker.mqtt.broker.produce("down", b"v", key=key)
    assert (await alice.message()).topic == "down/b"
    await alice.nothing()


async def test_without_a_log_in_a_client_is_anonymous(tmp_path: Path) -> None:
    async with secured(tmp_path, **{"mqtt.auth": "none", "mqtt.authenticators": ""}) as broker:
        client = await broker.mqtt.connect()
        assert (await client.subscribe("a")).reasons == (NOT_AUTHORIZED,)
        assert (await client.publish("a", b"", 1)).reason == NOT_AUTHORIZED  # type: ignore[union-attr]
        await broker.allow("ANONYMOUS", WRITE, "mqtt/a")
        await broker.allow("ANONYMOUS", READ, "mqtt/a")
        assert (await client.subscribe("a", qos=0)).reasons == (0,)
        await client.publish("a", b"x")
        assert (await client.expect(Publish)).payload == b"x"


async def test_a_quota_holds_reading_back(broker: Secured) -> None:
    """From when on it is there, and until it has gone."""
    alice = await broker.connect("alice")
    await broker.allow("alice", WRITE, "mqtt/q")
    quota = entity_of({"user": "alice"})
    await broker.core.quotas.alter({quota: {"producer_byte_rate": 1000.0}})
    await alice.publish("q", bytes(50_000), 1)
    running = broker.mqtt.running
    (connection,) = running.connections
    assert connection.quota is not None and connection.quota.wait_s() > 30  # type: ignore[attr-defined]
    before = running.counts.packets_received
    await alice.send(Publish("q", b"", 1, packet_id=2))
    await wait_all_tasks_blocked(0.05)
    assert running.counts.packets_received == before
    await broker.core.quotas.alter({quota: {"producer_byte_rate": None}})
    assert (await alice.expect(PubAck)).packet_id == 2
    assert connection.quota is None  # type: ignore[attr-defined]


async def test_what_a_client_is_sent_counts_too(broker: Secured) -> None:
    await broker.allow("alice", READ, "mqtt/q")
    await broker.core.quotas.alter({entity_of({"client-id": "sub"}): {"consumer_byte_rate": 1000.0}})
    alice = await broker.connect("alice", "sub")
    other = await broker.connect("alice", "other")
    for client in (alice, other):
        await client.subscribe("q", qos=0)
    admin = await broker.connect("admin")
    await admin.publish("q", bytes(50_000), 1)
    assert len((await alice.message()).payload) == len((await other.message()).payload) == 50_000
    await other.nothing()
    await alice.send(PingReq(), PingReq())
    await wait_all_tasks_blocked(0.05)
    hub = broker.mqtt.running.hub
    quota = hub.clients["sub"].connection.quota  # type: ignore[union-attr,attr-defined]
    assert quota.wait_s() > 30
    assert hub.clients["other"].connection.quota is None  # type: ignore[union-attr,attr-defined]


async def test_a_client_that_is_held_back_is_not_taken_for_gone(autojump_clock: MockClock) -> None:
    """What it has sent is not heard; and when the quota changes it is read at once."""
    waits = [100.0]
    connection: Any = SimpleNamespace(
        quota=SimpleNamespace(wait_s=lambda: waits[0]),
        state=Life.OPEN,
        heard=0.0,
        running=SimpleNamespace(quotas_changed=trio.Event()),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_hold_back, connection)
        await trio.sleep(10.5)
        assert connection.heard == pytest.approx(trio.current_time() - 0.5)
        before, connection.running.quotas_changed = connection.running.quotas_changed, trio.Event()
        waits[0] = 0.0
        before.set()
    assert trio.current_time() == connection.heard + 0.5
