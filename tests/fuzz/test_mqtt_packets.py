"""Hostile bytes at the reader of MQTT packets: no exception leaves it, and what it takes for a packet is one.

The slice of the gate is some thousand streams of damaged packets, `--long` ten minutes of them
(`LEAFCUTTR_FUZZ_SECONDS` overrides both). The seed is printed; `LEAFCUTTR_FUZZ_SEED` repeats a run. Damaged bytes at a
running broker: test_live and its like.
"""

from __future__ import annotations

import os
import random
import time
from typing import Final

import pytest

from fuzz.mutate import mutate
from leafcuttr_mqtt.packets.bodies import Sender
from leafcuttr_mqtt.packets.encoding import varint
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.refusals import refusal
from leafcuttr_mqtt.packets.types import (
    Auth,
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
from support.mqtt_packets import SENDERS, VERSIONS, as_read

LEAST: Final = 10_000
LARGEST: Final = 5000
PAIRS: Final = (("k", "1"), ("é", ""))
RICH: Final = Properties(
    payload_format_indicator=1,
    message_expiry_interval=70,
    content_type="text/plain",
    response_topic="answers",
    correlation_data=b"\x00\xff",
    topic_alias=3,
    user_properties=PAIRS,
)
TOLD: Final = Properties(reason_string="why", user_properties=PAIRS)
AUTH: Final = Properties(authentication_method="m", authentication_data=b"d", reason_string="why")
CONNECT: Final = Properties(
    session_expiry_interval=1,
    receive_maximum=2,
    maximum_packet_size=300,
    topic_alias_maximum=4,
    request_problem_information=0,
    request_response_information=1,
    authentication_method="m",
    authentication_data=b"d",
    user_properties=PAIRS,
)
CONNACK: Final = Properties(
    session_expiry_interval=1,
    receive_maximum=2,
    maximum_qos=1,
    retain_available=1,
    maximum_packet_size=300,
    assigned_client_identifier="a",
    topic_alias_maximum=4,
    wildcard_subscription_available=1,
    subscription_identifier_available=1,
    shared_subscription_available=1,
    server_keep_alive=5,
    response_information="r",
    server_reference="s",
)


def connects(version: Version) -> list[Packet]:
    will = Will("w", b"gone", 1, True, Properties(will_delay_interval=5, content_type="x"))
    return [
        Connect(version, "client", True, 60),
        Connect(version, "client", False, 0, "user", b"secret", will, CONNECT),
        Connect(version, "client", False, 0, "user", b"secret", will, bridge=True),
    ]


def good(version: Version, sender: Sender) -> list[Packet]:
    """Each packet that the sender may send, poor and rich; the writer leaves out what the version has not."""
    both: list[Packet] = [
        Publish("a/b", b"payload"),
        Publish("a/b", b"p" * 200, 1, True, 7, True),
        Publish("é", b"", 2, False, 8, properties=RICH),
        *(kind(9) for kind in (PubAck, PubRec, PubRel, PubComp)),
        *(kind(9, 0x92, TOLD) for kind in (PubRel, PubComp)),
        *(kind(9, 0x87, TOLD) for kind in (PubAck, PubRec)),
        Auth(0x18, AUTH),
    ]
    if sender == "client":
        return [
            *both,
            Subscribe(1, (SubscriptionRequest("a/+", 1), SubscriptionRequest("$share/g/#", 2)), TOLD),
            Subscribe(
                1, (SubscriptionRequest("b", 0, True, True, 2),), Properties(subscription_identifiers=(300,))
            ),
            Unsubscribe(2, ("a/+", "b"), TOLD),
            PingReq(),
            Disconnect(),
            Disconnect(4, Properties(session_expiry_interval=9, reason_string="why")),
        ]
    return [
        *both,
        Publish("a", b"x", 1, False, 5, False, Properties(subscription_identifiers=(1, 300))),
        ConnAck(True, 0, CONNACK),
        SubAck(1, (0, 1, 0x80), TOLD),
        UnsubAck(2, (0, 0x11), TOLD),
        PingResp(),
        Disconnect(0x8E, Properties(server_reference="s", reason_string="why")),
    ]


def bodies(packets: list[Packet], version: Version) -> list[bytes]:
    """The first byte and what follows the remaining length: where damage does most."""
    raw = [encode(packet, version) for packet in packets]
    return [each[:1] + each[2 if each[1] < 128 else 3 :] for each in raw]


def framed(rng: random.Random, damaged: bytes) -> bytes:
    """With a remaining length that fits; once in a while one that lies."""
    if not damaged:
        return b""
    size = len(damaged) - 1
    if rng.random() < 0.1:
        size = rng.choice([0, 1, size + 1, max(0, size - 1), 127, 128, 268_435_455])
    length = varint(size)
    if rng.random() < 0.02:
        length = rng.choice([b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x01", length[:-1] + b"\x80\x00"])
    return damaged[:1] + length + damaged[1:]


def fed(reader: PacketReader, data: bytes, cuts: list[int]) -> list[Packet]:
    got: list[Packet] = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        got += reader.feed(data[start:end])
        assert len(reader._pending) <= LARGEST
    return got


def attack(rng: random.Random, corpus: dict[tuple[Version, Sender], list[bytes]]) -> int:
    """One stream of some packets, most of them damaged. How many were read."""
    version, sender = rng.choice(list(corpus))
    knows = sender == "server" or rng.random() < 0.7
    stream = b""
    if not knows:
        hello = bodies(connects(version), version)
        stream = framed(rng, mutate(rng, hello) if rng.random() < 0.7 else rng.choice(hello))
    for _ in range(rng.randint(1, 8)):
        whole = corpus[version, sender]
        stream += framed(rng, mutate(rng, whole) if rng.random() < 0.4 else rng.choice(whole))

    def made() -> PacketReader:
        return PacketReader(LARGEST, version if knows else None, sender=sender)

    reader, again = made(), made()
    got = fed(reader, stream, [])
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randint(1, 6)))
    assert fed(again, stream, cuts) == got, "how the bytes are cut makes a difference"
    ends = [each.error and (each.error.reason, each.error.text) for each in (reader, again)]
    assert ends[0] == ends[1]
    if reader.error is not None:
        look_at_the_end(reader, bool(got) or knows)
    bridge = bool(got) and isinstance(got[0], Connect) and got[0].bridge
    for packet in got:
        assert reader.version is not None
        raw = encode(packet, reader.version)
        check = PacketReader(
            1 << 20, None if isinstance(packet, Connect) else reader.version, sender=sender, bridge=bridge
        )
        assert check.feed(raw) == [as_read(packet, bridge=bridge)], check.error
    return len(got)


def look_at_the_end(reader: PacketReader, connected: bool) -> None:
    """What is logged is one short line; what is sent is a packet; nothing is read after it."""
    error = reader.error
    assert error is not None
    assert error.text.isprintable()
    assert 5 < len(error.text) < 120
    said = refusal(error, reader.version, connected=connected)
    if said:
        assert reader.version is not None
        assert len(PacketReader.of_server(1000, reader.version).feed(said)) == 1
    assert reader.feed(b"\xc0\0") == []


@pytest.mark.long
@pytest.mark.timeout(0)  # its own clock ends it
def test_damaged_packets(request: pytest.FixtureRequest) -> None:
    long = request.config.getoption("--long")
    seconds = float(os.environ.get("LEAFCUTTR_FUZZ_SECONDS", "600" if long else "0"))
    seed = int(os.environ.get("LEAFCUTTR_FUZZ_SEED", str(random.randrange(1 << 32))))
    print(f"LEAFCUTTR_FUZZ_SEED={seed}")
    rng = random.Random(seed)
    corpus: dict[tuple[Version, Sender], list[bytes]] = {
        (version, sender): bodies(good(version, sender), version)
        for version in VERSIONS
        for sender in SENDERS
    }
    streams = read = 0
    end = time.monotonic() + seconds
    while streams < LEAST or time.monotonic() < end:
        read += attack(rng, corpus)
        streams += 1
    print(f"{streams} streams, {read} packets read")
    # Not all are refused at once: the damage reaches what is behind the first packet.
    assert read > streams / 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sender", SENDERS)
def test_the_packets_to_begin_with_are_good(version: Version, sender: Sender) -> None:
    packets = [
        packet for packet in good(version, sender) if version == Version.V5 or not isinstance(packet, Auth)
    ]
    if version != Version.V5 and sender == "server":
        packets = [packet for packet in packets if not isinstance(packet, Disconnect)]
    reader = PacketReader(LARGEST, version, sender=sender)
    assert len(reader.feed(b"".join(encode(packet, version) for packet in packets))) == len(packets)
    if sender == "client":
        for packet in connects(version):
            assert len(PacketReader(LARGEST).feed(encode(packet, version))) == 1
