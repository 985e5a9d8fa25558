"""Clients and the broker itself are stopped and continued (SIGSTOP, SIGCONT): real processes.

A member that is stopped past its session is fenced and comes back; who does not read costs nobody else anything; time
in which the broker itself stood still is nobody's silence.
"""

from __future__ import annotations

import signal
import socket
import struct
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.codec import encode
from leafcuttr.wire.messages.describe_groups import DescribeGroupsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.heartbeat import HeartbeatRequest
from leafcuttr.wire.messages.join_group import JoinGroupResponse
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.child_client import Child, child_client
from support.groups import join_request
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient

SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


def stop(child: Child) -> None:
    child.process.send_signal(signal.SIGSTOP)


def go_on(child: Child) -> None:
    child.process.send_signal(signal.SIGCONT)


def assigned(child: Child) -> list[str]:
    return [line for line in child.said if line.startswith("assigned")]


def got(child: Child) -> set[tuple[int, int]]:
    lines = (line.split() for line in child.said if line.startswith("got"))
    return {(int(partition), int(offset)) for _, partition, offset in lines}


def test_a_member_that_is_stopped_past_its_session_is_fenced_and_comes_back(tmp_path: Path) -> None:
    with running_broker(tmp_path / "home", SETTINGS) as broker:
        librdkafka.create(broker.address, "t", 2)
        sent = [0, 0]

        def send() -> None:
            for partition in (0, 1):
                librdkafka.send(broker.address, "t", [b"one"], timestamp=1, partition=partition)
                sent[partition] += 1

        with (
            child_client(tmp_path, "member", broker.address, "g", "t") as one,
            child_client(tmp_path, "member", broker.address, "g", "t") as two,
        ):
            both = (one, two)
            until(
                lambda: all(assigned(each)[-1:] == ["assigned 1"] for each in both),
                "a member each",
                seconds=60,
            )
            send()
            until(lambda: {p for p, _ in got(one) | got(two)} == {0, 1}, "a record each", seconds=60)
            stop(one)
            send()
            until(lambda: assigned(two)[-1] == "assigned 2", "the other to take over", seconds=60)
            until(lambda: got(one) | got(two) >= {(0, 1), (1, 1)}, "all of it to go to the other", seconds=60)
            times = len(assigned(one))
            go_on(one)
            until(lambda: len(assigned(one)) > times, "the stopped member to come back", seconds=60)
            assert "lost" in one.said
            until(
                lambda: all(assigned(each)[-1] == "assigned 1" for each in both), "a member each", seconds=60
            )
            send()
            last = {(partition, count - 1) for partition, count in enumerate(sent)}
            until(lambda: got(one) | got(two) >= last, "records to come to both", seconds=60)
        assert "Traceback" not in broker.log


def has_said(child: Child, lines: int) -> bool:
    return len(child.said) >= lines or child.said[-1:] == ["sent"]


@pytest.mark.long
def test_a_producer_that_is_stopped_again_and_again_sends_everything_once(tmp_path: Path) -> None:
    count = 20_000
    with running_broker(tmp_path / "home", SETTINGS) as broker:
        librdkafka.create(broker.address, "t")
        with (
            child_client(tmp_path, "producer", broker.address, "t", str(count)) as child,
            WireClient(broker.address) as neighbour,
        ):
            seen = 0
            while child.said[-1:] != ["sent"] and seen < count // 100:
                seen += 5
                until(partial(has_said, child, seen), "it to go on", seconds=60)
                stop(child)
                for _ in range(20):  # the neighbour's life goes on
                    assert neighbour.ask(MetadataRequest(topics=None), 12).topics
                go_on(child)
            until(lambda: child.said[-1:] == ["sent"], "all to be acknowledged", seconds=120)
        messages = librdkafka.read(broker.address, "t", count)
        assert [int(message.value()) for message in messages] == list(range(count))
        assert librdkafka.watermarks(broker.address, "t") == (0, count)


def half_sent(broker: BrokerProcess) -> socket.socket:
    """A connection on which a Produce request stops in its middle."""
    sock = socket.create_connection((broker.host, broker.port))
    sock.sendall(struct.pack(">ihhi", 5_000_000, 0, 9, 1) + bytes(100_000))
    return sock


def unread(broker: BrokerProcess, requests: int) -> socket.socket:
    """A connection whose peer has asked for 100 MB and more, and reads nothing of it."""
    sock = socket.create_connection((broker.host, broker.port))
    sock.settimeout(0.5)
    item = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
    fetch = FetchRequest(max_bytes=1 << 24, topics=[FetchTopic(topic="t", partitions=[item])])
    frames = b""
    for key, version, flexible, body in (
        (1, 11, b"", encode(fetch, 11)),
        (3, 12, b"\0", encode(MetadataRequest(topics=None), 12)),
    ):
        head = struct.pack(">hhih", key, version, 1, -1) + flexible
        frames += struct.pack(">i", len(head) + len(body)) + head + body
    try:
        for _ in range(requests // 100):
            sock.sendall(100 * frames)
    except TimeoutError:
        pass  # the broker has stopped reading from who does not read
    return sock


@pytest.mark.alone
def test_clients_that_stop_in_the_middle_cost_bounded_memory_and_nobody_else_anything(tmp_path: Path) -> None:
    with running_broker(tmp_path / "home", SETTINGS) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")
        librdkafka.create(broker.address, "wide", 200)
        for _ in range(50):
            assert client.produce("t", batch(size=9_000)).error_code == 0
        client.ask(MetadataRequest(topics=None), 12)
        client.fetch("t", 0)
        before = broker.resident_mb()
        stopped = [half_sent(broker) for _ in range(20)] + [unread(broker, 2_000) for _ in range(20)]
        for number in range(50, 100):
            assert client.produce("t", batch(size=9_000)).base_offset == number
            assert client.fetch("t", number).error_code == 0
        grown = broker.resident_mb() - before
        assert grown < 60, f"{grown} MB for {len(stopped)} clients who do not read"
        for sock in stopped:
            sock.close()
        assert "Traceback" not in broker.log


def joined(client: WireClient, group: str, session_ms: int) -> JoinGroupResponse:
    """The only member of a stable group."""
    until(
        lambda: not client.ask(FindCoordinatorRequest(key=group, key_type=0), 2).error_code, "a coordinator"
    )
    first = client.ask(join_request(group, "", "t", session_timeout_ms=session_ms), 9)
    answer = client.ask(join_request(group, first.member_id, "t", session_timeout_ms=session_ms), 9)
    assert answer.error_code == 0
    mine = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"mine")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[mine],
    )
    assert client.ask(request, 5).error_code == 0
    assert isinstance(answer, JoinGroupResponse)
    return answer


def test_a_broker_that_is_stopped_past_the_sessions_hears_its_members_before_it_judges_them(
    tmp_path: Path,
) -> None:
    with (
        running_broker(tmp_path / "home", SETTINGS) as broker,
        WireClient(broker.address) as alive,
        WireClient(broker.address) as dead,
        WireClient(broker.address) as client,
    ):
        librdkafka.create(broker.address, "t")
        for number in range(10):
            assert client.produce("t", batch()).base_offset == number
        consumer = librdkafka.Group(broker.address, "clients", ["t"], session_timeout_ms=30_000)
        consumer.take(10)
        joined(dead, "dead", 2000)
        member = joined(alive, "alive", 2000)
        beat = HeartbeatRequest(
            group_id="alive", generation_id=member.generation_id, member_id=member.member_id
        )
        assert alive.ask(beat, 4).error_code == 0
        broker.process.send_signal(signal.SIGSTOP)
        alive.send(beat, 4)
        client.send_produce("t", batch())
        Event().wait(5)  # the time that the test is about: several sessions long
        broker.process.send_signal(signal.SIGCONT)
        assert alive.take(beat, 4).error_code == 0

        silent = Event()

        def go_on_beating() -> None:
            while not silent.wait(0.05):
                if alive.ask(beat, 4).error_code:
                    return

        beating = Thread(target=go_on_beating)
        beating.start()
        try:
            # Who says nothing after it is judged as ever, and who does stays.
            until(lambda: state_of(broker, "dead") == "Empty", "the silent member to be given up")
            assert state_of(broker, "alive") == "Stable"
            assert beating.is_alive()
        finally:
            silent.set()
            beating.join()
        assert librdkafka.watermarks(broker.address, "t") == (0, 11)  # what was sent meanwhile has arrived
        assert len(consumer.take(1)) == 1
        consumer.commit()
        assert (consumer.assigned, consumer.lost) == (1, 0)
        consumer.close()
        assert "Traceback" not in broker.log


def state_of(broker: BrokerProcess, group: str) -> str:
    with WireClient(broker.address) as client:
        answer = client.ask(DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert answer.error_code == ErrorCode.NONE
    return str(answer.group_state)
