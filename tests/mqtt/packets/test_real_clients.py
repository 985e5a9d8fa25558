"""Reader and writer between real clients and a few lines of a server: what paho and mosquitto's programs send is read
as what they were told to send, and they read what is written here."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode

LIMIT_S: Final = 20
RICH: Final = Properties(
    payload_format_indicator=1,
    message_expiry_interval=70,
    content_type="text/plain",
    response_topic="answers/é",
    correlation_data=b"\x00\xff",
    user_properties=(("k", "1"), ("k", "2")),
)
TO_CLIENT: Final = Properties(
    payload_format_indicator=1,
    message_expiry_interval=70,
    content_type="text/plain",
    response_topic="answers/é",
    correlation_data=b"\x00\xff",
    subscription_identifiers=(5, 300),
    user_properties=(("k", "1"), ("k", "2")),
)


class Server:
    """Answers each packet with the one that ends its flow, sends `on_subscribe` after a SUBACK; keeps what it read."""

    def __init__(self, on_subscribe: tuple[Publish, ...] = ()) -> None:
        self.got: list[Packet] = []
        self.on_subscribe = on_subscribe
        self.ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()
        assert self.ended.wait(LIMIT_S)

    def _serve(self) -> None:
        try:
            peer, _ = self._listener.accept()
            with peer, suppress(ConnectionResetError):
                reader = PacketReader(100_000)
                while data := peer.recv(65_536):
                    for packet in reader.feed(data):
                        self.got.append(packet)
                        version = reader.version
                        assert version is not None
                        answers = self._answers(packet, version)
                        if answers:
                            peer.sendall(b"".join(encode(each, version) for each in answers))
                    assert reader.error is None, reader.error
        finally:
            self.ended.set()

    def _answers(self, packet: Packet, version: Version) -> list[Packet]:
        match packet:
            case Connect():
                maximum = Properties(topic_alias_maximum=10, receive_maximum=7)
                return [ConnAck(False, 0, maximum)]
            case Publish(qos=1):
                return [PubAck(packet.packet_id, 0x10 if version == Version.V5 else 0)]
            case Publish(qos=2):
                return [PubRec(packet.packet_id)]
            case PubRec():
                return [PubRel(packet.packet_id)]
            case PubRel():
                return [PubComp(packet.packet_id)]
            case Subscribe():
                granted = tuple(each.qos for each in packet.requests)
                return [SubAck(packet.packet_id, granted), *self.on_subscribe]
            case Unsubscribe():
                return [UnsubAck(packet.packet_id, (0x11,) * len(packet.filters))]
            case PingReq():
                return [PingResp()]
        return []


@contextmanager
def serving(*on_subscribe: Publish) -> Iterator[Server]:
    server = Server(on_subscribe)
    try:
        yield server
    finally:
        server.close()


def paho_properties(kind: int, **given: Any) -> PahoProperties:
    made = PahoProperties(kind)
    for name, value in given.items():
        setattr(made, name, value)
    return made


class Paho:
    """paho's client, with an event for each of its callbacks."""

    def __init__(self, protocol: MQTTProtocolVersion, **arguments: Any) -> None:
        self.client = Client(CallbackAPIVersion.VERSION2, "paho", protocol=protocol, **arguments)
        self.told: dict[str, tuple[Any, ...]] = {}
        self.messages: list[MQTTMessage] = []
        self._changed = threading.Condition()
        for name in ("connect", "publish", "subscribe", "unsubscribe", "disconnect"):
            setattr(self.client, f"on_{name}", lambda *given, name=name: self._note(name, given))
        self.client.on_message = lambda _, __, message: self._note_message(message)

    def _note(self, name: str, given: tuple[Any, ...]) -> None:
        with self._changed:
            self.told[name] = given
            self._changed.notify_all()

    def _note_message(self, message: MQTTMessage) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def wait(self, name: str) -> tuple[Any, ...]:
        with self._changed:
            assert self._changed.wait_for(lambda: name in self.told, LIMIT_S), name
            return self.told.pop(name)

    def wait_for_messages(self, number: int) -> list[MQTTMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= number, LIMIT_S)
            return self.messages


def of(server: Server, kind: type[Packet]) -> list[Packet]:
    return [packet for packet in server.got if isinstance(packet, kind)]


@pytest.mark.parametrize("version", [Version.V3_1, Version.V3_1_1])
def test_paho_before_5(version: Version) -> None:
    incoming = tuple(Publish("in/é", b"%d" % qos, qos, qos == 1, qos and 40 + qos) for qos in (0, 1, 2))
    with serving(*incoming) as server:
        paho = Paho(MQTTProtocolVersion(int(version)), clean_session=True)
        paho.client.username_pw_set("user", "secret")
        paho.client.will_set("will/é", b"gone", 2, True)
        paho.client.connect("127.0.0.1", server.port, 60)
        paho.client.loop_start()
        paho.wait("connect")
        for qos in (0, 1, 2):
            paho.client.publish("out/é", b"x" * (100 << 4 * qos), qos, qos == 2).wait_for_publish(LIMIT_S)
        paho.client.subscribe([("a/#", 1), ("b", 2)])
        paho.wait("subscribe")
        got = paho.wait_for_messages(3)
        paho.client.unsubscribe(["a/#", "b"])
        paho.wait("unsubscribe")
        paho.client.disconnect()
        paho.client.loop_stop()
    will = Will("will/é", b"gone", 2, True)
    assert server.got[0] == Connect(version, "paho", True, 60, "user", b"secret", will)
    assert of(server, Publish) == [
        Publish("out/é", b"x" * 100),
        Publish("out/é", b"x" * 1600, 1, False, 2),
        Publish("out/é", b"x" * 25_600, 2, True, 3),
    ]
    assert of(server, Subscribe) == [
        Subscribe(4, (SubscriptionRequest("a/#", 1), SubscriptionRequest("b", 2)))
    ]
    assert of(server, Unsubscribe) == [Unsubscribe(5, ("a/#", "b"))]
    assert server.got[-1] == Disconnect()
    assert [(each.topic, each.payload, each.qos, each.retain) for each in got] == [
        ("in/é", b"0", 0, False),
        ("in/é", b"1", 1, True),
        ("in/é", b"2", 2, False),
    ]
    assert of(server, PubAck) == [PubAck(41)]
    assert of(server, PubRec) == [PubRec(42)]
    assert of(server, PubComp) == [PubComp(42)]


def test_paho_5() -> None:
    incoming = Publish("in", b"x", 1, True, 9, False, TO_CLIENT)
    with serving(incoming) as server:
        paho = Paho(MQTTProtocolVersion.MQTTv5)
        paho.client.will_set(
            "will", b"gone", 1, properties=paho_properties(PacketTypes.WILLMESSAGE, WillDelayInterval=9)
        )
        paho.client.connect(
            "127.0.0.1",
            server.port,
            60,
            properties=paho_properties(
                PacketTypes.CONNECT,
                SessionExpiryInterval=2**32 - 1,
                ReceiveMaximum=3,
                MaximumPacketSize=100_000,
                TopicAliasMaximum=5,
                RequestProblemInformation=0,
                RequestResponseInformation=1,
                UserProperty=("k", "v"),
            ),
        )
        paho.client.loop_start()
        _, _, _, reason, properties = paho.wait("connect")
        assert (reason.value, properties.TopicAliasMaximum, properties.ReceiveMaximum) == (0, 10, 7)
        paho.client.publish(
            "out",
            b"x",
            1,
            properties=paho_properties(
                PacketTypes.PUBLISH,
                PayloadFormatIndicator=1,
                MessageExpiryInterval=70,
                ContentType="text/plain",
                ResponseTopic="answers/é",
                CorrelationData=b"\x00\xff",
                UserProperty=[("k", "1"), ("k", "2")],
                TopicAlias=4,
            ),
        ).wait_for_publish(LIMIT_S)
        assert paho.wait("publish")[3].value == 0x10
        paho.client.subscribe(
            [("a", SubscribeOptions(2, True, True, 1)), ("b", SubscribeOptions(0))],
            properties=paho_properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=300),
        )
        assert [each.value for each in paho.wait("subscribe")[3]] == [2, 0]
        (message,) = paho.wait_for_messages(1)
        paho.client.unsubscribe(["a"])
        assert [each.value for each in paho.wait("unsubscribe")[3]] == [0x11]
        paho.client.disconnect(properties=paho_properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0))
        paho.client.loop_stop()
    assert server.got[0] == Connect(
        Version.V5,
        "paho",
        True,
        60,
        will=Will("will", b"gone", 1, False, Properties(will_delay_interval=9)),
        properties=Properties(
            session_expiry_interval=2**32 - 1,
            receive_maximum=3,
            maximum_packet_size=100_000,
            topic_alias_maximum=5,
            request_problem_information=0,
            request_response_information=1,
            user_properties=(("k", "v"),),
        ),
    )
    (sent,) = of(server, Publish)
    assert isinstance(sent, Publish)
    assert sent.properties.topic_alias == 4
    sent.properties = Properties(
        **{name: getattr(sent.properties, name) for name in Properties.__slots__ if name != "topic_alias"}
    )
    assert sent == Publish("out", b"x", 1, False, 1, False, RICH)
    assert of(server, Subscribe) == [
        Subscribe(
            2,
            (SubscriptionRequest("a", 2, True, True, 1), SubscriptionRequest("b", 0)),
            Properties(subscription_identifiers=(300,)),
        )
    ]
    assert server.got[-1] == Disconnect(0, Properties(session_expiry_interval=0))
    found = message.properties
    assert (message.topic, message.payload, message.qos, message.retain) == ("in", b"x", 1, True)
    assert found is not None
    assert found.SubscriptionIdentifier == [5, 300]
    assert found.UserProperty == [("k", "1"), ("k", "2")]
    assert (found.PayloadFormatIndicator, found.MessageExpiryInterval) == (1, 70)
    assert (found.ContentType, found.ResponseTopic) == ("text/plain", "answers/é")
    assert found.CorrelationData == b"\x00\xff"


MOSQUITTO: Final = shutil.which("mosquitto_pub") is not None


@pytest.mark.skipif(not MOSQUITTO, reason="no mosquitto-clients")
@pytest.mark.parametrize("version", list(Version))
def test_mosquitto_pub(version: Version) -> None:
    name = {3: "mqttv31", 4: "mqttv311", 5: "mqttv5"}[version]
    more = "-D publish content-type text/plain -D publish user-property k v"
    with serving() as server:
        subprocess.run(
            f"mosquitto_pub -h 127.0.0.1 -p {server.port} -V {name} -i m -q 2 -t a/b -m hello -r -u user -P secret "
            f"-k 30 --will-topic w --will-payload gone --will-qos 1 {more if version == Version.V5 else ''}".split(),
            check=True,
            timeout=LIMIT_S,
        )
    connect, publish, release, *rest = server.got
    assert isinstance(connect, Connect)
    assert connect.properties == Properties(receive_maximum=20 if version == Version.V5 else None)
    assert (connect.version, connect.client_id, connect.keep_alive) == (version, "m", 30)
    assert (connect.user_name, connect.password) == ("user", b"secret")
    assert connect.will == Will("w", b"gone", 1, False)
    five = Properties(content_type="text/plain", user_properties=(("k", "v"),))
    expected = five if version == Version.V5 else Properties()
    assert publish == Publish("a/b", b"hello", 2, True, 1, False, expected)
    assert release == PubRel(1)
    assert rest == [Disconnect()]


@pytest.mark.skipif(not MOSQUITTO, reason="no mosquitto-clients")
@pytest.mark.parametrize("version", list(Version))
def test_mosquitto_sub(version: Version) -> None:
    name = {3: "mqttv31", 4: "mqttv311", 5: "mqttv5"}[version]
    # libmosquitto 2.0 takes a second subscription identifier for a protocol error, which it is in SUBSCRIBE only.
    properties = replace(TO_CLIENT, subscription_identifiers=(300,))
    incoming = [
        Publish("in/é", b"%d" % qos, qos, False, qos and 70 + qos, False, properties) for qos in (0, 1, 2)
    ]
    with serving(*incoming) as server:
        done = subprocess.run(
            f"mosquitto_sub -h 127.0.0.1 -p {server.port} -V {name} -i m -q 2 -t in/# -t $share/g/x -C 3 "
            "-F %t/%p/%q/%R".split(),
            check=True,
            capture_output=True,
            timeout=LIMIT_S,
        )
    response = "answers/é" if version == Version.V5 else ""
    assert done.stdout.decode().splitlines() == [f"in/é/{qos}/{qos}/{response}" for qos in (0, 1, 2)]
    (subscribe,) = of(server, Subscribe)
    assert isinstance(subscribe, Subscribe)
    assert subscribe.requests == (SubscriptionRequest("in/#", 2), SubscriptionRequest("$share/g/x", 2))
    assert of(server, PubAck) == [PubAck(71)]
    assert of(server, PubRec) == [PubRec(72)]
