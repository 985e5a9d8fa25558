"""Reader and writer together: every packet of every version, from both senders, however its bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_mqtt.packets.bodies import Sender
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import Connect, PacketType, Version
from leafcuttr_mqtt.packets.writer import encode
from support.gates_slice import sampled
from support.mqtt_packets import SENDERS, VERSIONS, as_read, kinds, packets

LARGE = 1 << 20
EVERY = [
    (version, sender, kind) for version in VERSIONS for sender in SENDERS for kind in kinds(version, sender)
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("version", "sender", "kind"), EVERY)
@settings(max_examples=sampled(60))
@given(data=st.data())
def test_a_packet_comes_back(version: Version, sender: Sender, kind: PacketType, data: st.DataObject) -> None:
    packet = data.draw(packets(version, sender, kind))
    reader = PacketReader(LARGE, version, sender=sender)
    raw = encode(packet, version)
    assert reader.feed(raw) == [packet]
    assert reader.error is None
    # A packet of exactly `max_bytes` is not too large.
    assert PacketReader(len(raw), version, sender=sender).feed(raw) == [packet]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_connect_comes_back(version: Version, data: st.DataObject) -> None:
    packet = data.draw(packets(version, kind=PacketType.CONNECT))
    reader = PacketReader(LARGE)
    assert reader.feed(encode(packet, version)) == [packet]
    assert (reader.version, reader.error) == (version, None)


@given(data=st.data(), version=st.sampled_from(VERSIONS), sizes=st.lists(st.integers(1, 40), min_size=1))
def test_bytes_may_be_cut_anywhere(data: st.DataObject, version: Version, sizes: list[int]) -> None:
    connect = data.draw(packets(version, kind=PacketType.CONNECT))
    assert isinstance(connect, Connect)
    more = data.draw(st.lists(packets(version), max_size=6))
    raw = b"".join(encode(each, version) for each in (connect, *more))
    reader = PacketReader(LARGE)
    got = []
    at, turn = 0, 0
    while at < len(raw):
        size = sizes[turn % len(sizes)]
        got += reader.feed(raw[at : at + size])
        at, turn = at + size, turn + 1
    assert reader.error is None
    assert got == [connect, *(as_read(each, bridge=connect.bridge) for each in more)]


@given(data=st.data(), version=st.sampled_from(VERSIONS))
def test_one_byte_at_a_time(data: st.DataObject, version: Version) -> None:
    sent = data.draw(st.lists(packets(version, "server"), min_size=1, max_size=4))
    reader = PacketReader.of_server(LARGE, version)
    raw = b"".join(encode(each, version) for each in sent)
    assert [each for at in range(len(raw)) for each in reader.feed(raw[at : at + 1])] == sent


@given(data=st.data(), version=st.sampled_from(VERSIONS), sender=st.sampled_from(SENDERS))
def test_a_packet_that_ends_early_is_no_packet(data: st.DataObject, version: Version, sender: Sender) -> None:
    """A shorter remaining length: the packet is refused or is another one that is allowed, and nothing is raised."""
    packet = data.draw(packets(version, sender))
    raw = encode(packet, version)
    body = raw[2:] if raw[1] < 128 else raw[3:]
    cut = body[: data.draw(st.integers(0, max(0, min(len(body), 127) - 1)))]
    reader = PacketReader(LARGE, version, sender=sender)
    got = reader.feed(bytes((raw[0], len(cut))) + cut)
    assert (len(got), reader.error is None) in ((1, True), (0, False))
