"""One connection without I/O: frames, correlation ids, versions; bytes that no broker should send."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.client.errors import ApiNotOffered, NotKafka, UnreadableResponse
from leafcuttr.client.protocol import (
    MAX_FRAME,
    Answered,
    ClientProtocol,
    FrameReader,
    GatheredRecords,
    Ready,
)
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.errors import EncodeError
from leafcuttr.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from leafcuttr.wire.messages.fetch import FetchRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PEER = "hub:9092"


def framed(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def feed(protocol: ClientProtocol, data: bytes) -> list[Ready | Answered]:
    """All events after these bytes, however the buffer cuts them."""
    events: list[Ready | Answered] = []
    while data:
        buffer = protocol.buffer()
        size = min(len(buffer), len(data))
        assert size
        buffer[:size] = data[:size]
        protocol.received(size)
        data = data[size:]
        while (event := protocol.next_event()) is not None:
            events.append(event)
    return events


def sent(protocol: ClientProtocol) -> list[tuple[int, int, int, bytes]]:
    """(key, version, correlation id, body) of the requests that are to be sent; their client id is checked."""
    data = b"".join(protocol.data_to_send())
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        key, version, correlation, length = struct.unpack_from(">hhih", data, 4)
        assert data[14 : 14 + length] == b"leafcuttr"
        begin = 14 + length + (APIS[key].request_header_version(version) > 1)
        found.append((key, version, correlation, data[begin : 4 + size]))
        data = data[4 + size :]
    return found


def ready(*keys: tuple[int, int, int], max_frame: int = MAX_FRAME) -> ClientProtocol:
    """One that knows the versions: (key, lowest, highest)."""
    protocol = ClientProtocol(PEER, max_frame=max_frame)
    protocol.start()
    sent(protocol)
    offered = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in keys]
    [event] = feed(protocol, framed(1, encode(ApiVersionsResponse(api_keys=offered), 4)))
    assert isinstance(event, Ready)
    return protocol


METADATA = (ApiKey.METADATA, 0, 13)
PRODUCE = (ApiKey.PRODUCE, 0, 11)


def answer(topics: int = 0) -> bytes:
    """To Metadata in version 13."""
    made = [MetadataResponseTopic(name=f"topic-{number}") for number in range(topics)]
    return b"\0" + encode(MetadataResponse(cluster_id="c", topics=made), 13)


def test_versions_are_learnt_first() -> None:
    protocol = ClientProtocol(PEER)
    with pytest.raises(ApiNotOffered):
        protocol.send(MetadataRequest(topics=[]))
    protocol.start()
    [(key, version, correlation, body)] = sent(protocol)
    assert (key, version, correlation) == (ApiKey.API_VERSIONS, 4, 1)
    request = decode(ApiVersionsRequest, 4, body)
    assert request.client_software_name == "leafcuttr"
    assert request.client_software_version
    assert protocol.oldest == "ApiVersions"
    about = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=2, max_version=99)])
    assert feed(protocol, framed(1, encode(about, 4))) == [Ready(about)]
    assert protocol.versions == {3: (2, 99)}
    assert protocol.oldest is None
    assert sent(protocol) == []


@pytest.mark.parametrize(("offered", "next_version"), [([(18, 0, 2)], 2), ([(18, 0, 9)], 3), ([], 0)])
def test_a_broker_that_does_not_know_our_version(
    offered: list[tuple[int, int, int]], next_version: int
) -> None:
    """KIP-511: it answers in version 0, since Kafka 2.4 with what it speaks, before with nothing."""
    protocol = ClientProtocol(PEER)
    protocol.start()
    sent(protocol)
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in offered]
    refused = encode(ApiVersionsResponse(error_code=35, api_keys=keys), 0)
    assert feed(protocol, framed(1, refused)) == []
    [(key, version, correlation, _)] = sent(protocol)
    assert (key, version, correlation) == (18, next_version, 2)
    about = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=5)])
    [event] = feed(protocol, framed(2, encode(about, next_version)))
    assert isinstance(event, Ready)


def test_a_broker_that_knows_no_version_of_ours() -> None:
    protocol = ClientProtocol(PEER)
    protocol.start()
    refused = encode(ApiVersionsResponse(error_code=35), 0)
    assert feed(protocol, framed(1, refused)) == []
    with pytest.raises(ApiNotOffered, match=r"hub:9092 refuses ApiVersions: .*\(UNSUPPORTED_VERSION\)"):
        feed(protocol, framed(2, refused))
    other = ClientProtocol(PEER)
    other.start()
    with pytest.raises(ApiNotOffered, match=r"\(CLUSTER_AUTHORIZATION_FAILED\)"):
        feed(other, framed(1, encode(ApiVersionsResponse(error_code=31), 4)))


@pytest.mark.parametrize(
    ("offered", "at_least", "at_most", "version"),
    [
        ((0, 13), 0, None, 13),
        ((0, 99), 0, None, 13),
        ((3, 7), 4, None, 7),
        ((7, 7), 7, None, 7),
        ((0, 13), 0, 9, 9),
        ((0, 5), 0, 9, 5),
    ],
)
def test_the_highest_version_that_both_have(
    offered: tuple[int, int], at_least: int, at_most: int | None, version: int
) -> None:
    protocol = ready((3, *offered))
    protocol.send(MetadataRequest(topics=[]), at_least=at_least, at_most=at_most)
    assert [each[:2] for each in sent(protocol)] == [(3, version)]


@pytest.mark.parametrize(("offered", "at_least"), [((14, 20), 0), ((0, 3), 4)])
def test_versions_that_do_not_meet(offered: tuple[int, int], at_least: int) -> None:
    protocol = ready((3, *offered))
    with pytest.raises(ApiNotOffered) as caught:
        protocol.send(MetadataRequest(topics=[]), at_least=at_least)
    assert str(caught.value) == (
        f"the broker at {PEER} speaks versions {offered[0]} to {offered[1]} of Metadata; this needs {at_least} to 13"
    )
    assert protocol.under_way == 0
    assert sent(protocol) == []
    with pytest.raises(ApiNotOffered, match="the broker at hub:9092 does not offer Fetch"):
        protocol.send(FetchRequest())


def test_several_under_way_are_answered_in_order() -> None:
    protocol = ready(METADATA)
    ids = [protocol.send(MetadataRequest(topics=[])) for _ in range(3)]
    assert ids == [2, 3, 4]
    assert protocol.under_way == 3
    assert [each[2] for each in sent(protocol)] == ids
    events = feed(protocol, b"".join(framed(number, answer(number)) for number in (2, 3, 4)))
    assert [event.correlation_id for event in events if isinstance(event, Answered)] == ids
    assert [len(event.read().topics) for event in events if isinstance(event, Answered)] == ids
    assert protocol.under_way == 0


@pytest.mark.parametrize("correlation", [3, 1, -1, 0])
def test_an_answer_to_another_request(correlation: int) -> None:
    protocol = ready(METADATA)
    protocol.send(MetadataRequest(topics=[]))
    protocol.send(MetadataRequest(topics=[]))
    with pytest.raises(UnreadableResponse) as caught:
        feed(protocol, framed(correlation, answer()))
    assert str(caught.value) == f"{PEER}: its answer to Metadata cannot be read: an answer to another request"


def test_an_answer_to_no_request() -> None:
    with pytest.raises(UnreadableResponse, match="hub:9092: an answer to no request"):
        feed(ready(METADATA), framed(2, answer()))


def test_correlation_ids_begin_again_before_they_are_negative() -> None:
    protocol = ready(METADATA)
    protocol._correlation = 0x7FFFFFFE
    assert [protocol.send(MetadataRequest(topics=[])) for _ in range(3)] == [0x7FFFFFFF, 0, 1]


def produce(records: Any, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data, data])])


def test_records_in_pieces_are_sent_as_they_are() -> None:
    pieces = [b"head", memoryview(bytearray(b"tail" * 50)), b""]
    gathered = GatheredRecords(pieces, 204)
    protocol, joined = ready(PRODUCE), ready(PRODUCE)
    protocol.send(produce(gathered))
    joined.send(produce(b"".join(pieces)))
    out = protocol.data_to_send()
    assert sum(piece is pieces[1] for piece in out) == 2
    assert b"".join(out) == b"".join(joined.data_to_send())


def test_a_request_without_an_answer() -> None:
    protocol = ready(PRODUCE, METADATA)
    assert protocol.send(produce(b"x", acks=0)) is None
    assert protocol.under_way == 0
    assert protocol.send(MetadataRequest(topics=[])) == 3
    assert [each[2] for each in sent(protocol)] == [2, 3]
    assert len(feed(protocol, framed(3, answer()))) == 1


def test_a_request_that_cannot_be_written_sends_nothing() -> None:
    protocol = ready(PRODUCE, METADATA)
    with pytest.raises(EncodeError):
        protocol.send(produce(b"x", acks=1 << 40))
    assert sent(protocol) == []
    assert protocol.under_way == 0
    assert protocol.send(MetadataRequest(topics=[])) == 2


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"\xff" * 40, b"\0" * 3 + b"\x7f\xff\xff\xff" * 3, answer() + b"\0"]
)
def test_an_answer_that_cannot_be_read(body: bytes) -> None:
    protocol = ready(METADATA)
    protocol.send(MetadataRequest(topics=[]))
    with pytest.raises(UnreadableResponse, match=r"^hub:9092: its answer to Metadata cannot be read: "):
        for event in feed(protocol, framed(2, body)):
            assert isinstance(event, Answered)
            event.read()


def test_tagged_fields_of_the_header_are_skipped() -> None:
    protocol = ready(METADATA)
    protocol.send(MetadataRequest(topics=[]))
    [event] = feed(protocol, framed(2, b"\x02\x00\x01x\x05\x03abc" + answer()[1:]))
    assert isinstance(event, Answered)
    assert event.read().cluster_id == "c"


def test_an_answer_of_very_many_elements() -> None:
    protocol = ready(METADATA)
    protocol.send(MetadataRequest(topics=None))
    [event] = feed(protocol, framed(2, answer(30_000)))
    assert isinstance(event, Answered)
    assert event.has_much
    assert len(event.read().topics) == 30_000


@pytest.mark.parametrize("size", [-1, 0, 3, 101, 2**31 - 1])
def test_lengths_that_no_answer_has(size: int) -> None:
    protocol = ready(METADATA, max_frame=100)
    protocol.send(MetadataRequest(topics=[]))
    with pytest.raises(NotKafka) as caught:
        feed(protocol, struct.pack(">i", size) + b"more")
    assert str(caught.value) == f"{PEER} announces an answer of {size} bytes; at most 100 are read"
    assert caught.value.said == struct.pack(">i", size) + b"more"


def test_the_first_bytes_of_another_protocol() -> None:
    protocol = ClientProtocol(PEER)
    protocol.start()
    with pytest.raises(NotKafka) as caught:
        feed(protocol, b"HTTP/1.1 400 Bad Request\r\n")
    assert str(caught.value) == f"{PEER} does not speak Kafka's protocol"
    assert caught.value.said == b"HTTP/1.1 400 Bad Request\r\n"


def test_the_end_of_a_peer_that_had_begun_to_speak() -> None:
    protocol = ClientProtocol(PEER)
    protocol.start()
    assert feed(protocol, b"\0\0\0\x20SSH") == []
    assert protocol.cut_off() == b"\0\0\0\x20SSH"


def test_memory_follows_what_has_come_not_what_is_claimed() -> None:
    frames = FrameReader(PEER, MAX_FRAME)
    tracemalloc.start()
    try:
        buffer = frames.buffer()
        buffer[:104] = struct.pack(">i", MAX_FRAME) + b"x" * 100
        frames.received(104)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@given(
    sizes=st.lists(
        st.sampled_from([4, 5, 100, 65_532, 65_536, 65_537, 200_000, (1 << 20) + 1, 5_000_000]), max_size=6
    ),
    pieces=st.lists(st.sampled_from([1, 3, 4, 1000, 65_535, 65_536, 1 << 20]), min_size=1, max_size=8),
)
def test_frames_of_any_size_in_pieces_of_any_size(sizes: list[int], pieces: list[int]) -> None:
    frames = FrameReader(PEER, MAX_FRAME)
    bodies = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    data = memoryview(b"".join(struct.pack(">i", len(body)) + body for body in bodies))
    found, turn = list[memoryview](), 0
    while data:
        # A byte at a time through megabytes would take too long.
        piece = pieces[turn % len(pieces)] if turn < 300 else 1 << 20
        buffer = frames.buffer()
        size = min(piece, len(buffer), len(data))
        buffer[:size] = data[:size]
        frames.received(size)
        data, turn = data[size:], turn + 1
        while (frame := frames.next_frame()) is not None:
            found.append(frame)
    # Frames are kept by their readers: what comes later does not change them.
    assert found == bodies
