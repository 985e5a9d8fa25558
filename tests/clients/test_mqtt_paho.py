"""paho-mqtt, with both versions of its callbacks, over MQTT 3.1.1 and 5.0."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Any

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from support.mqtt_broker import MAPPED, MqttBroker
from support.mqtt_duties import AWAY, MESSAGES, SHARED
from support.mqtt_records import records
from support.waiting import until

Fresh = Callable[[str], str]
PATIENCE_S = 60
LASTS_S = 300
V311, V5 = MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5
APIS = [CallbackAPIVersion.VERSION1, CallbackAPIVersion.VERSION2]
pytestmark = pytest.mark.client("paho-mqtt")


class Paho:
    """One client, connected, and all that it was sent."""

    def __init__(
        self,
        broker: MqttBroker,
        api: CallbackAPIVersion,
        protocol: MQTTProtocolVersion,
        name: str,
        *,
        clean: bool = True,
        will: tuple[str, str] | None = None,
        transport: str = "tcp",
    ) -> None:
        self.got: list[MQTTMessage] = []
        self.session_present = False
        self._connected, self._subscribed, self._lock = Event(), Event(), Lock()
        self._five = protocol == V5
        made: dict[str, Any] = {"protocol": protocol, "client_id": name, "transport": transport}
        if not self._five:
            made["clean_session"] = clean
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the first version
            self.client = Client(api, **made)
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_message = self._on_message
        if will:
            self.client.will_set(*will, qos=1)
        more: dict[str, Any] = {}
        if self._five:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 0 if clean else LASTS_S
            more = {"clean_start": clean, "properties": properties}
        port = broker.port if transport == "tcp" else broker.web_sockets
        assert port
        if transport == "websockets":
            self.client.ws_set_options(path="/mqtt")
        self.client.connect(broker.host, port, keepalive=20, **more)
        self.client.loop_start()
        assert self._connected.wait(PATIENCE_S)

    def _on_connect(self, client: Client, userdata: object, flags: Any, reason: Any, *_: object) -> None:
        """Both versions: flags are a dictionary in the first one."""
        assert reason == 0
        present = flags["session present"] if isinstance(flags, dict) else flags.session_present
        self.session_present = bool(present)
        self._connected.set()

    def _on_message(self, client: Client, userdata: object, message: MQTTMessage) -> None:
        with self._lock:
            self.got.append(message)

    @property
    def texts(self) -> list[str]:
        with self._lock:
            return [message.payload.decode() for message in self.got]

    def subscribe(self, filter: str, qos: int, **options: Any) -> None:
        self._subscribed.clear()
        if self._five:
            self.client.subscribe(filter, options=SubscribeOptions(qos, **options))
        else:
            self.client.subscribe(filter, qos)
        assert self._subscribed.wait(PATIENCE_S)

    def publish(self, topic: str, text: str, qos: int, **more: Any) -> None:
        sent = self.client.publish(topic, text, qos, **more)
        sent.wait_for_publish(PATIENCE_S)
        assert sent.is_published()

    def wait(self, count: int) -> list[str]:
        return until(lambda: self.texts if len(self.got) >= count else None, f"{count} messages")

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def cut(self) -> None:
        """Without a DISCONNECT."""
        self.client.loop_stop()
        socket = self.client.socket()
        assert socket is not None
        socket.close()


Connect = Callable[..., Paho]


@pytest.fixture(
    params=[(api, protocol) for api in APIS for protocol in (V311, V5)],
    ids=lambda pair: f"callbacks {pair[0].value}, MQTT {'5.0' if pair[1] == V5 else '3.1.1'}",
)
def connect(request: pytest.FixtureRequest, mqtt_broker: MqttBroker) -> Iterator[Connect]:
    """Connects clients of both versions, and disconnects them at the end."""
    made: list[Paho] = []

    def one(name: str, **options: Any) -> Paho:
        api, protocol = request.param
        made.append(Paho(mqtt_broker, api, protocol, name, **options))
        return made[-1]

    yield one
    for each in made:
        each.end()


@pytest.mark.duty("connect", "QoS 0", "QoS 1", "QoS 2")
def test_each_quality_of_service(connect: Connect, fresh: Fresh, mqtt_broker: MqttBroker) -> None:
    base = f"{MAPPED}/{fresh('qos')}"
    listener, sender = connect(fresh("listener")), connect(fresh("sender"))
    listener.subscribe(f"{base}/+", 2)
    for qos in range(3):
        sent = [sender.client.publish(f"{base}/{qos}", str(number), qos) for number in range(MESSAGES)]
        for one in sent:
            one.wait_for_publish(PATIENCE_S)
    listener.wait(3 * MESSAGES)
    for qos in range(3):
        mine = [one for one in listener.got if one.topic == f"{base}/{qos}"]
        assert [one.payload for one in mine] == [b"%d" % number for number in range(MESSAGES)]
        assert {(one.qos, one.retain) for one in mine} == {(qos, False)}
    if mqtt_broker.kafka:
        stored = records(mqtt_broker.kafka, MAPPED)
        for qos in range(3):
            mine = [one for one in stored if one.headers["mqtt.topic"].decode() == f"{base}/{qos}"]
            assert [one.value for one in mine] == [b"%d" % number for number in range(MESSAGES)]
            assert {one.key for one in mine} == {f"{base}/{qos}".encode()}
            assert {one.headers["mqtt.qos"] for one in mine} == {b"%d" % qos}
            assert len({one.partition for one in mine}) == 1


@pytest.mark.duty("retained")
def test_retained(connect: Connect, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('retained')}"
    sender, late, later = (connect(fresh("client")) for _ in range(3))
    for text in ("first", "last"):
        sender.publish(topic, text, 1, retain=True)
    late.subscribe(topic, 1)
    assert late.wait(1) == ["last"]
    assert late.got[0].retain
    sender.publish(topic, "", 1, retain=True)
    later.subscribe(topic, 1)
    sender.publish(topic, "live", 1)
    assert later.wait(1) == ["live"]
    assert not later.got[0].retain


@pytest.mark.duty("will")
def test_will(connect: Connect, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('will')}"
    witness = connect(fresh("witness"))
    witness.subscribe(topic, 1)
    connect(fresh("polite"), will=(topic, "polite")).end()
    connect(fresh("broken"), will=(topic, "broken")).cut()
    assert witness.wait(1) == ["broken"]


@pytest.mark.duty("session resume")
def test_a_session_is_resumed(connect: Connect, fresh: Fresh) -> None:
    topic, name = f"{MAPPED}/{fresh('resumed')}", fresh("lasting")
    first = connect(name, clean=False)
    assert not first.session_present
    first.subscribe(topic, 2)
    first.end()
    sender = connect(fresh("sender"))
    sent = [f"{qos}-{number}" for qos in (1, 2) for number in range(AWAY)]
    for text in sent:
        sender.publish(topic, text, int(text[0]))
    again = connect(name, clean=False)
    assert again.session_present
    assert again.wait(len(sent)) == sent
    again.end()
    assert not connect(name).session_present


@pytest.mark.duty("shared subscription")
def test_a_shared_subscription(connect: Connect, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('shared')}"
    members = [connect(fresh("member")) for _ in range(2)]
    for one in members:
        one.subscribe(f"$share/both/{topic}", 1)
    sender = connect(fresh("sender"))
    for number in range(SHARED):
        sender.publish(topic, str(number), 1)
    until(lambda: sum(len(one.got) for one in members) >= SHARED, "the shared messages")
    found = sorted(int(text) for one in members for text in one.texts)
    assert found == list(range(SHARED))
    assert all(one.got for one in members)


@pytest.mark.parametrize("api", APIS, ids=["callbacks 1", "callbacks 2"])
@pytest.mark.duty("properties")
def test_properties(mqtt_broker: MqttBroker, fresh: Fresh, api: CallbackAPIVersion) -> None:
    """They come to the subscriber, and to the record: content type, correlation data and the user's are headers."""
    topic = f"{MAPPED}/{fresh('properties')}"
    listener, sender = (Paho(mqtt_broker, api, V5, fresh("client")) for _ in range(2))
    listener.subscribe(topic, 1, noLocal=True)
    given = Properties(PacketTypes.PUBLISH)
    given.PayloadFormatIndicator, given.ContentType, given.ResponseTopic = 1, "application/json", "answers"
    given.CorrelationData, given.MessageExpiryInterval = b"\0\1\xff", LASTS_S
    given.UserProperty = [("unit", "celsius"), ("unit", "kelvin")]
    sender.publish(topic, "{}", 1, properties=given)
    assert listener.wait(1) == ["{}"]
    found: Any = listener.got[0].properties
    assert found is not None
    for name in ("PayloadFormatIndicator", "ContentType", "ResponseTopic", "CorrelationData", "UserProperty"):
        assert getattr(found, name) == getattr(given, name)
    assert LASTS_S - 100 < found.MessageExpiryInterval <= LASTS_S
    for one in (listener, sender):
        one.end()
    if mqtt_broker.kafka:
        (record,) = (
            one for one in records(mqtt_broker.kafka, MAPPED) if one.headers["mqtt.topic"].decode() == topic
        )
        assert [value for name, value in record.all_headers if name == "unit"] == [b"celsius", b"kelvin"]
        assert b"application/json" in record.headers.values()
        assert b"\0\1\xff" in record.headers.values()


@pytest.mark.duty("connect")
def test_over_websockets(mqtt_broker: MqttBroker, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('web')}"
    one = Paho(mqtt_broker, APIS[1], V5, fresh("client"), transport="websockets")
    one.subscribe(topic, 2)
    for qos in range(3):
        one.publish(topic, str(qos) * 1000, qos)
    assert one.wait(3) == [str(qos) * 1000 for qos in range(3)]
    one.end()
