"""What one peer does to the others and to the memory of a real broker: nothing, whatever it sends or leaves out.

Every test ends with another client that is served, in a process that has hardly grown.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.codec import decode
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.join_group import JoinGroupResponse
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from support.broker_process import BrokerProcess, running_broker
from support.logs import batch
from support.peer import framed, join_request, metadata_request, produce_request, request_bytes
from support.waiting import until

# What a process has in memory is looked at.
pytestmark = pytest.mark.alone

MB = 1 << 20
PRODUCE, METADATA, FETCH, JOIN, COMMIT, LIST_OFFSETS = 9, 12, 12, 5, 8, 7
# What the allocator and lazily imported code may take on the side, whatever a test does.
SLACK_MB = 12
HUGE = "h" * 32_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"max.incremental.fetch.session.cache.slots": "100", "auto.create.topics.enable": "true"}
    with running_broker(tmp_path_factory.mktemp("hostile"), settings) as made:
        with connected(made) as sock:  # what these tests need is imported at its first use
            ask(sock, metadata_request("t"), METADATA)
            ask(sock, produce_request("t", batch()), PRODUCE)
            ask(sock, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            ask(sock, join_request("warm"), JOIN)
            ask(sock, about_many(2000), METADATA)
            ask(sock, fetch_of(range(2000)), FETCH)
        yield made
        assert "Traceback" not in made.log, made.log[-5000:]


@contextmanager
def connected(broker: BrokerProcess) -> Iterator[socket.socket]:
    with socket.create_connection((broker.host, broker.port), 30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock


def receive(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return bytes(data)


def ask(sock: socket.socket, request: Any, version: int, client_id: bytes = b"peer") -> bytes:
    """The answer's bytes, without size and correlation id."""
    sock.sendall(framed(request_bytes(request, version, client_id=client_id)))
    return receive(sock, int.from_bytes(receive(sock, 4), "big"))[4:]


def open_files(broker: BrokerProcess) -> int:
    return sum(1 for _ in Path(f"/proc/{broker.process.pid}/fd").iterdir())


@contextmanager
def bounded(broker: BrokerProcess, megabytes: float = 0) -> Iterator[Callable[[], None]]:
    """A neighbour that is served during, as often as the test looks, and after; the process grows by no more."""
    with connected(broker) as neighbour:
        offset = log_end(broker, neighbour)
        before = broker.resident_mb()

        def look() -> None:
            nonlocal offset
            assert log_end(broker, neighbour) == offset + 1, "somebody else's records are there"
            offset += 1
            grown = broker.resident_mb() - before
            assert grown < megabytes + SLACK_MB, f"{grown:.0f} MB more"

        yield look
        look()


def log_end(broker: BrokerProcess, sock: socket.socket) -> int:
    """Produce one record; the offset behind it."""
    from leafcuttr.wire.messages.produce import ProduceResponse

    answer = decode(ProduceResponse, PRODUCE, ask(sock, produce_request("t", batch()), PRODUCE)[1:])
    part = answer.responses[0].partition_responses[0]
    assert part.error_code == 0
    return part.base_offset + 1


def about_many(count: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"n{number}") for number in range(count)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def fetch_of(partitions: range) -> FetchRequest:
    """A full fetch that opens a session."""
    parts = [FetchPartition(partition=each, partition_max_bytes=1) for each in partitions]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        session_epoch=0,
        topics=[FetchTopic(topic="t", partitions=parts)],
    )


def test_a_large_frame_takes_memory_as_it_arrives(broker: BrokerProcess) -> None:
    arrived = 8
    with bounded(broker, 2 * arrived) as look, ExitStack() as peers:
        before = broker.resident_mb()
        for _ in range(20):
            peers.enter_context(connected(broker)).sendall((100 * MB).to_bytes(4, "big") + b"\0\0\0\x09")
        look()
        assert broker.resident_mb() - before < SLACK_MB
        slow = peers.enter_context(connected(broker))
        slow.sendall((100 * MB).to_bytes(4, "big") + b"\0\0\0\x09\0\0\0\1\xff\xff")
        for _ in range(arrived * 16):
            slow.sendall(bytes(MB // 16))
        look()
    with bounded(broker):
        pass


def test_a_close_at_any_byte_of_a_request_leaves_nothing_behind(broker: BrokerProcess) -> None:
    request = framed(request_bytes(produce_request("t", batch(2)), PRODUCE))
    before = open_files(broker)
    with bounded(broker) as look:
        for position in range(len(request)):
            with connected(broker) as rude:
                rude.sendall(request[:position])
            if not position % 16:
                look()
    until(lambda: open_files(broker) <= before, "the descriptors of the closed connections")


def test_a_peer_that_reads_no_long_answers_meets_back_pressure(broker: BrokerProcess) -> None:
    request = framed(request_bytes(about_many(2000), METADATA))
    with bounded(broker, 8) as look, connected(broker) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(1.0)
        sent = 0
        with suppress(TimeoutError):
            while sent < 200 * MB:
                sent += deaf.send(request)
        assert sent < 200 * MB, "the broker stopped reading"
        look()


def test_a_storm_of_connections_leaves_the_listener_and_no_descriptors(broker: BrokerProcess) -> None:
    before = open_files(broker)
    with bounded(broker, 10) as look:
        for _ in range(5):
            with ExitStack() as together:
                for number in range(400):
                    sock = together.enter_context(connected(broker))
                    if number % 3 == 1:
                        sock.sendall(b"\0\0\1\0\0\x12")
                    elif number % 3 == 2:
                        sock.sendall(framed(request_bytes(ApiVersionsRequest(), 0)))
            look()
    until(lambda: open_files(broker) <= before, "the descriptors of the storm's connections")


def test_ten_thousand_fetch_sessions_of_one_client(
    broker: BrokerProcess, pytestconfig: pytest.Config
) -> None:
    """The slots are a hundred, and what they remember is bounded too."""
    opened = 0
    with bounded(broker, 10) as look, connected(broker) as greedy:
        for number in range(10_000 if pytestconfig.getoption("--long") else 300):
            answer = decode(
                FetchResponse, FETCH, ask(greedy, fetch_of(range(number, number + 10)), FETCH)[1:]
            )
            opened += answer.session_id != 0
        look()
        assert opened <= 100
    with bounded(broker, 70) as look, connected(broker) as greedy:
        data = framed(request_bytes(fetch_of(range(20_000)), FETCH))
        for _ in range(14):
            greedy.sendall(data)
            receive(greedy, int.from_bytes(receive(greedy, 4), "big"))
            look()


def test_thousands_of_groups_and_members_of_one_client(
    broker: BrokerProcess, pytestconfig: pytest.Config
) -> None:
    """Each is some kilobytes: a member id begins with the client id, and a group is kept until nobody expects it."""
    count = 10_000 if pytestconfig.getoption("--long") else 1000
    with bounded(broker, count * 12e3 / 1e6) as look, connected(broker) as busy:
        for number in range(count):
            for group in ("crowd", f"group-{number}"):
                answer = decode(
                    JoinGroupResponse, JOIN, ask(busy, join_request(group), JOIN, client_id=HUGE.encode())
                )
                assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            if not number % 100:
                look()


def test_huge_strings_are_answered_or_refused(broker: BrokerProcess) -> None:
    with bounded(broker, 10) as look, connected(broker) as verbose:
        huge = HUGE.encode()
        for request, version in (
            (ApiVersionsRequest(), 0),
            (metadata_request(HUGE), METADATA),
            (produce_request(HUGE, batch()), PRODUCE),
            (join_request(HUGE), JOIN),
            (join_request("g", HUGE), JOIN),
            (replace(join_request("g"), group_instance_id=HUGE), JOIN),
            (FindCoordinatorRequest(key_type=0, coordinator_keys=[HUGE] * 100), 4),
            (FindCoordinatorRequest(key_type=1, coordinator_keys=[HUGE] * 100), 4),
        ):
            assert ask(verbose, request, version, client_id=huge)
            look()
        commit = OffsetCommitRequest(
            group_id=HUGE,
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=1, committed_metadata=text
                        )
                        for text in (HUGE, "m" * 4097, "m" * 4096)
                    ],
                )
            ],
        )
        answer = decode(OffsetCommitResponse, COMMIT, ask(verbose, commit, COMMIT)[1:])
        codes = [part.error_code for part in answer.topics[0].partitions]
        too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert codes == [too_large, too_large, 0]


def test_bombs_are_searched_by_time_one_or_two_at_once(broker: BrokerProcess) -> None:
    """Stored as they came, they are taken apart only for whoever asks for a time, in bounded memory."""
    from leafcuttr.wire.compression import Codec
    from leafcuttr.wire.records import Record, encode_batch

    now = 1_700_000_000_000
    bomb = encode_batch([Record(0, now, None, bytes(60 * MB))], codec=Codec.ZSTD, level=1)
    over = encode_batch([Record(0, now, None, bytes(110 * MB))], codec=Codec.ZSTD, level=1)
    with bounded(broker, 2 * 130) as look, ExitStack() as peers:
        with connected(broker) as hostile:
            for topic, made in (("bombs", bomb), ("over", over)):
                ask(hostile, metadata_request(topic), METADATA)
                ask(hostile, produce_request(topic, made), PRODUCE)
        for topic, expected in (("bombs", 0), ("over", ErrorCode.KAFKA_STORAGE_ERROR)):
            part = ListOffsetsPartition(partition_index=0, timestamp=now)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[part])])
            socks = [peers.enter_context(connected(broker)) for _ in range(8)]
            for sock in socks:
                sock.sendall(framed(request_bytes(request, LIST_OFFSETS)))
            for sock in socks:
                look()
                frame = receive(sock, int.from_bytes(receive(sock, 4), "big"))
                answer = decode(ListOffsetsResponse, LIST_OFFSETS, frame[5:])
                assert answer.topics[0].partitions[0].error_code == expected
    until(lambda: broker.resident_mb() < 150, "the memory of the bombs")
