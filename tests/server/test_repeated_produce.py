"""The short way of a repeated Produce and the general way: the same answers, and the same bytes in the logs.

Two brokers with the same clock get the same requests and the same changes of their topics in the same order. One
gets all over one connection, so that it may take the short way; the other each over a new connection, where nothing
can be a repetition.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext, context_of
from leafcuttr.log.append.chain.chain import Chain
from leafcuttr.log.append.pending_write import DONE, PendingWrite, failed
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.log import Log
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import Failures
from leafcuttr.server import listener
from leafcuttr.server.repeated_produce import LARGEST, RepeatedProduce, _Learned, write_repeated
from leafcuttr.state.identity import Principal
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.state.security.acls import stored
from leafcuttr.wire.batch import CONTROL, TRANSACTIONAL
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.gates_slice import sampled
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, HandClock, batch, patched
from support.topics import alter_config

PARTITIONS = 2


class Pair(NamedTuple):
    """The broker that may take the short way, the one that cannot, and how often the first did."""

    short: LiveBroker
    general: LiveBroker
    taken: list[int]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    clock, taken = HandClock(), [0]
    answer = RepeatedProduce.answer

    def counted(repeat: RepeatedProduce) -> bytes:
        taken[0] += repeat.count
        return answer(repeat)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RepeatedProduce, "answer", counted)
        with (
            live_broker(tmp_path_factory.mktemp("short"), clock=clock) as short,
            live_broker(tmp_path_factory.mktemp("general"), clock=clock) as general,
        ):
            yield Pair(short, general, taken)


_numbers = count(1)


class Both:
    """What is done to both brokers, and compared."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.topic, self.id, self.creations = f"topic-{next(_numbers)}", b"", 0
        self.socket = connect(pair.short)
        self.create()

    def create(self) -> None:
        self.creations += 1
        self.id = f"{self.topic}/{self.creations}".encode().ljust(16, b"\0")[:16]
        for live in self.pair[:2]:
            live.run(partial(live.broker.topics.create, self.topic, PARTITIONS, {}, topic_id=self.id))

    def delete(self) -> None:
        for live in self.pair[:2]:
            live.run(live.broker.topics.delete, self.topic)

    def configure(self, name: str, value: str | None) -> None:
        for live in self.pair[:2]:
            live.run(alter_config, live.broker.topics, self.topic, {name: value})

    def send(self, frame: bytes | bytearray) -> bytes:
        """The answer of both; empty if the connection was closed."""
        got = exchange(self.socket, frame)
        if not got:
            self.socket = connect(self.pair.short)
        with connect(self.pair.general) as alone:
            expected = exchange(alone, frame)
        assert got == expected
        return got

    def send_together(self, frames: list[bytes]) -> list[bytes]:
        """The answers of both to frames of which the short way gets as many at once as arrive at once; those after
        which the connection was closed are not sent to the other."""
        if len(frames) == 1:
            return [self.send(frames[0])]
        self.socket.sendall(b"".join(frames))
        answers = []
        for frame in frames:
            with connect(self.pair.general) as alone:
                expected = exchange(alone, frame)
            got = exchange(self.socket, b"")
            assert got == expected
            answers.append(got)
            if not got:
                self.socket = connect(self.pair.short)
                break
        return answers

    def logs_are_equal(self) -> None:
        for index in range(PARTITIONS):
            of_short, of_general = (
                [path.read_bytes() for path in live.files(self.topic, partition=index)]
                for live in self.pair[:2]
            )
            assert of_short == of_general

    def request(
        self,
        version: int,
        records: bytes | bytearray | None,
        *,
        index: int = 0,
        acks: int = -1,
        copies: int = 1,
    ) -> ProduceRequest:
        view = None if records is None else memoryview(bytes(records))
        items = [PartitionProduceData(index=index + n, records=view) for n in range(copies)]
        topic = TopicProduceData(name=self.topic, topic_id=self.id, partition_data=items)
        return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def connect(live: LiveBroker) -> socket.socket:
    host, _, port = live.address.rpartition(":")
    return socket.create_connection((host, int(port)), 30)


def exchange(sock: socket.socket, frame: bytes | bytearray) -> bytes:
    """The answer with its size; nothing if the connection is closed, or if there is no answer within what follows."""
    sock.sendall(frame)
    head = exactly(sock, 4)
    return head + exactly(sock, int.from_bytes(head, "big")) if head else b""


def exactly(sock: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            return b""
        got += chunk
    return got


def framed(request: ProduceRequest, version: int, correlation: int, *, client: bytes = b"test") -> bytes:
    head = struct.pack(">hhih", 0, version, correlation, len(client)) + client
    body = head + (b"\0" if version >= 9 else b"") + encode(request, version)
    return struct.pack(">i", len(body)) + body


def record_sets() -> st.SearchStrategy[bytes | bytearray | None]:
    """What producers send: mostly sound batches, and every kind of one that is not."""
    sound = st.builds(
        batch,
        st.integers(1, 4),
        size=st.sampled_from([0, 1, 10, 50, 60, 200, 5000, 16_000]),
        timestamp=st.sampled_from([NOW, NOW - 1000, NOW + 7_200_000]),
    )
    idempotent = st.builds(
        batch,
        producer_id=st.sampled_from([7, 8]),
        producer_epoch=st.integers(0, 1),
        base_sequence=st.integers(0, 3),
    )
    marked = st.builds(
        lambda data, bits: patched(data, ">h", 21, bits),
        sound,
        st.sampled_from([TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL, 8, 5, 7]),
    )
    damaged = st.builds(
        lambda data, at, value: patched(data, ">b", at, value, crc=at % 2 == 0),
        sound,
        st.integers(0, 60),
        st.integers(-128, 127),
    )
    cut = st.builds(lambda data, n: data[:n], sound, st.integers(0, 70))
    large = st.just(batch(1, size=LARGEST))
    inside = st.builds(
        lambda data, at, value: patched(data, ">b", 61 + at % (len(data) - 61), value),
        sound,
        st.integers(0, 300),
        st.integers(-128, 127),
    )
    return st.one_of(sound, sound, sound, idempotent, marked, damaged, inside, cut, large, st.none(),
                     st.builds(lambda a, b: a + b, sound, sound))  # fmt: skip


CHANGES = (
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", None),
    ("compression.type", "gzip"),
    ("compression.type", None),
    ("max.message.bytes", "150"),
    ("max.message.bytes", None),
    ("message.timestamp.after.max.ms", "1000"),
    ("cleanup.policy", "compact"),
    ("segment.bytes", "1048576"),
    ("lc.log.sync.always", "true"),
    ("lc.log.sync.always", None),
    ("flush.messages", "1"),
    ("flush.messages", None),
    ("lc.records.check", "full"),
    ("lc.records.check", "off"),
    ("lc.records.check", None),
)

shapes = st.tuples(
    st.sampled_from([3, 6, 7, 8, 9, 11, 12, 13]),  # version
    st.sampled_from([0, 0, 0, 1, 2, -1]),  # partition
    st.sampled_from([-1, -1, 1, 2]),  # acks
    st.sampled_from([1, 1, 1, 2]),  # how many partitions
    st.sampled_from([b"test", b"", b"another"]),  # client id
)
# A producer of one shape sends some record sets; before it, something may happen to the topic.
stretches = st.tuples(
    st.one_of(st.none(), st.none(), st.just("again"), st.sampled_from(CHANGES)),
    shapes,
    st.lists(record_sets(), min_size=2, max_size=6),
    st.sampled_from([1, 1, 2, 3, 6]),  # how many of them are sent together
)


@settings(
    max_examples=sampled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(stretches, min_size=1, max_size=4))
def test_both_ways_answer_and_store_the_same(pair: Pair, plan: list[object]) -> None:
    both, correlation = Both(pair), count(-2)
    with both.socket:
        for before, (version, index, acks, copies, client), sets, together in plan:  # type: ignore[misc]
            if before == "again":
                both.delete()
                both.create()
            elif before is not None:
                both.configure(*before)
            frames = [
                framed(
                    both.request(version, records, index=index, acks=acks, copies=copies),
                    version,
                    next(correlation),
                    client=client,
                )
                for records in sets
            ]
            for at in range(0, len(frames), together):
                both.send_together(frames[at : at + together])
        both.logs_are_equal()


@pytest.mark.parametrize("version", range(3, 14))
def test_the_short_way_is_taken_from_version_7_on(pair: Pair, version: int) -> None:
    both, before = Both(pair), pair.taken[0]
    with both.socket:
        # The records' length has one byte more, or less, than when it was learned: a varint since version 9.
        for size in (100, 100, 100, 105, 99, 1000, 10, 100):
            both.send(framed(both.request(version, batch(size=size)), version, size))
    both.logs_are_equal()
    assert pair.taken[0] - before == (0 if version < 7 else 5 if version >= 9 else 6)


@pytest.mark.parametrize("limit", ["-1", "1000000"])
def test_what_queued_max_request_bytes_counts_goes_the_general_way(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    answer = RepeatedProduce.answer
    monkeypatch.setattr(RepeatedProduce, "answer", lambda it: taken.append(1) or answer(it))
    with live_broker(tmp_path, {"queued.max.request.bytes": limit}) as live:
        live.run(partial(live.broker.topics.create, "t", 1, {}))
        with connect(live) as sock:
            for number, size in enumerate((100, 100, 100, 16_000, 16_000, 16_000, 100, 21_000, 21_000, 100)):
                item = PartitionProduceData(index=0, records=memoryview(batch(size=size)))
                request = ProduceRequest(
                    acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[item])]
                )
                answered = decode(ProduceResponse, 11, exchange(sock, framed(request, 11, number))[9:])
                assert answered.responses[0].partition_responses[0].base_offset == number
    # All but the first two, of which it is learned, and the largest.
    assert len(taken) == (6 if limit == "-1" else 3)


def test_a_deleted_topic_is_not_served_from_memory(pair: Pair) -> None:
    both = Both(pair)
    frames = {version: framed(both.request(version, batch()), version, 1) for version in (12, 13)}
    with both.socket:
        for version, error in ((12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)):
            taken = pair.taken[0]
            for _ in range(70):
                both.send(frames[version])
            assert pair.taken[0] > taken
            both.delete()
            answer = decode(ProduceResponse, version, both.send(frames[version])[9:])
            assert answer.responses[0].partition_responses[0].error_code == error
            both.create()
            if version == 12:
                frames[13] = framed(both.request(13, batch()), 13, 1)
    both.logs_are_equal()


def another_principal(both: Both, context: RequestContext) -> None:
    context.client = context.client._replace(principal=Principal("User", "alice"))


def another_setting(both: Both, _: RequestContext) -> None:
    both.configure("retention.ms", "100000")


def another_topic(both: Both, _: RequestContext) -> None:
    for live in both.pair[:2]:
        live.run(partial(live.broker.topics.create, f"beside-{both.topic}", 1, {}))


@pytest.mark.parametrize("change", [another_principal, another_setting, another_topic])
def test_what_a_request_was_judged_by_changes(
    pair: Pair, change: Callable[[Both, RequestContext], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the general way sees the next request, and it is learned anew."""
    contexts: list[RequestContext] = []

    def noted(*arguments: Any) -> RequestContext:
        contexts.append(context_of(*arguments))
        return contexts[-1]

    monkeypatch.setattr(listener, "context_of", noted)
    both, version = Both(pair), 11
    with both.socket:
        frame = framed(both.request(version, batch()), version, 1)
        for _ in range(3):
            both.send(frame)
        taken = pair.taken[0]
        change(both, contexts[0])
        for expected in (0, 0, 1, 2):
            both.send(frame)
            assert pair.taken[0] - taken == expected
    both.logs_are_equal()


def without_topic(both: Both, live: LiveBroker) -> None:
    del live.broker.topics.by_name[both.topic]


def with_chain(both: Both, live: LiveBroker) -> None:
    live.log(both.topic).use_chain(
        Chain(
            both.topic,
            post=lambda _: None,
            complain=Complaints(logging.getLogger("test")),
            failures=Failures(),
            refusal="none",
        )
    )


@pytest.mark.parametrize("change", [without_topic, with_chain])
def test_a_change_that_is_counted_before_it_is_there(
    pair: Pair, change: Callable[[Both, LiveBroker], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata is written by a worker thread: what is learned after that must go when the loop has the change."""
    both, version, staged = Both(pair), 11, []
    stage = _Learned.stage
    monkeypatch.setattr(
        _Learned, "stage", lambda learned, *rest: staged.append(rest) or stage(learned, *rest)
    )
    with both.socket:
        frame = framed(both.request(version, batch()), version, 1)
        for _ in range(3):
            both.send(frame)
        assert len(staged) == 1
        for live in pair[:2]:
            live.call(change, both, live)
        for _ in range(4):
            assert (
                decode(ProduceResponse, version, both.send(frame)[9:])
                .responses[0]
                .partition_responses[0]
                .error_code
            )
    assert len(staged) == 1


@pytest.mark.parametrize("version", [8, 11])
def test_bytes_behind_the_request_and_requests_that_arrive_in_parts(pair: Pair, version: int) -> None:
    both = Both(pair)
    with both.socket:
        frame = framed(both.request(version, batch()), version, 5)
        longer = struct.pack(">i", len(frame)) + frame[4:] + b"\0\0\0\0"
        for sent in (frame, frame, longer, frame):
            both.send(sent)
        taken = pair.taken[0]
        for cut in (1, 4, 11, 40, len(frame) - 1):
            both.socket.sendall(frame[:cut])
            with connect(pair.general) as alone:
                assert exchange(both.socket, frame[cut:]) == exchange(alone, frame)
        both.socket.sendall(frame + frame)
        for _ in range(2):
            with connect(pair.general) as alone:
                assert exchange(both.socket, b"") == exchange(alone, frame)
        # The second is cut off: it is staged once its last byte is there.
        for cut in (1, 4, 11, 40, len(frame) - 1):
            for sent in (frame + frame[:cut], frame[cut:]):
                with connect(pair.general) as alone:
                    assert exchange(both.socket, sent) == exchange(alone, frame)
                both.logs_are_equal()
        assert pair.taken[0] - taken == 17


@pytest.mark.parametrize("at", [-3, -2, -1])
def test_tags_behind_the_records_are_compared(pair: Pair, at: int) -> None:
    """Those that a request has been learned with are none; here one is said to follow."""
    both, version = Both(pair), 11
    frame = bytearray(framed(both.request(version, batch()), version, 1))
    for _ in range(3):
        both.send(frame)
    taken = pair.taken[0]
    frame[at] = 1
    both.send(frame)
    both.socket.close()
    assert pair.taken[0] == taken
    both.logs_are_equal()


def test_a_request_that_is_too_large_to_be_taken_is_not_learned(pair: Pair) -> None:
    both, version = Both(pair), 11
    taken = pair.taken[0]
    with both.socket:
        for size in (LARGEST, LARGEST, LARGEST, 100):
            both.send(framed(both.request(version, batch(size=size)), version, 1))
        assert pair.taken[0] == taken
        both.send(framed(both.request(version, batch(size=100)), version, 1))
        assert pair.taken[0] == taken + 1, "the one before it was learned"
    both.logs_are_equal()


def test_the_answer_has_the_log_start_offset_of_its_time(pair: Pair) -> None:
    both, version = Both(pair), 11
    with both.socket:
        frame = framed(both.request(version, batch()), version, 1)
        for start in (0, 0, 0, 2):
            for live in pair[:2]:
                live.call(live.log(both.topic).delete_records_before, start)
            taken = pair.taken[0]
            answer = decode(ProduceResponse, version, both.send(frame)[9:])
            assert answer.responses[0].partition_responses[0].log_start_offset == start
        assert pair.taken[0] == taken + 1
    both.logs_are_equal()


def test_a_write_that_fails_fails_the_repeated_request_too(pair: Pair) -> None:
    both, version = Both(pair), 11
    with both.socket:
        frame = framed(both.request(version, batch()), version, 1)
        taken = pair.taken[0]
        for _ in range(3):
            both.send(frame)
        assert pair.taken[0] == taken + 1
        for live in pair[:2]:
            live.call(make_read_only, live.log(both.topic))
        for _ in range(2):
            answer = decode(ProduceResponse, version, both.send(frame)[9:])
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    both.logs_are_equal()


def test_requests_that_arrive_together_are_written_together(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are taken at once, and one cut off at the end: all are answered in order, with few writes."""
    both, version, writes = Both(pair), 11, []
    write = Log.write
    monkeypatch.setattr(Log, "write", lambda log: writes.append(log) or write(log))
    with both.socket:
        for number in range(2):
            both.send(framed(both.request(version, batch()), version, number))
        frames = [framed(both.request(version, batch()), version, number) for number in range(300)]
        taken, log = pair.taken[0], pair.short.log(both.topic)
        writes.clear()
        # Received in one piece: the buffer has grown by then, and the loop reads nothing while this is sent.
        data = b"".join(frames)
        pair.short.call(both.socket.sendall, data[: 1 << 12])
        pair.short.call(both.socket.sendall, data[1 << 12 :])
        for number in range(300):
            answered = exactly(both.socket, int.from_bytes(exactly(both.socket, 4), "big"))
            assert int.from_bytes(answered[:4], "big") == number
            part = decode(ProduceResponse, version, answered[5:]).responses[0].partition_responses[0]
            assert (part.error_code, part.base_offset) == (0, number + 2)
        assert len([log for one in writes if one is log]) < 60
        assert pair.taken[0] - taken > 100


@pytest.mark.parametrize("behind", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_what_cannot_be_a_request_behind_repeated_ones(pair: Pair, behind: bytes) -> None:
    """Those before it are answered, then the connection is closed."""
    both, version = Both(pair), 11
    frame = framed(both.request(version, batch()), version, 1)
    for _ in range(3):
        both.send(frame)
    taken = pair.taken[0]
    both.socket.sendall(frame + frame + behind)
    for _ in range(2):
        with connect(pair.general) as alone:
            assert exchange(both.socket, b"") == exchange(alone, frame)
    assert both.socket.recv(1) == b""
    assert pair.taken[0] == taken + 2
    both.socket.close()
    both.logs_are_equal()


def test_another_request_between_repeated_ones(pair: Pair) -> None:
    both, version = Both(pair), 11
    with both.socket:
        frame = framed(both.request(version, batch()), version, 1)
        other = framed(both.request(version, batch(), index=1), version, 2)
        for _ in range(3):
            both.send(frame)
        taken = pair.taken[0]
        both.send_together([frame, frame, other, frame])
        both.send_together([other, frame, frame])
        # Those in front; what is behind another request goes the way of that one.
        assert pair.taken[0] - taken == 2
    both.logs_are_equal()


def test_a_repeated_request_with_a_wrong_sequence_and_log_append_time(pair: Pair) -> None:
    both, version = Both(pair), 11
    both.configure("message.timestamp.type", "LogAppendTime")
    with both.socket:
        frames = [
            framed(
                both.request(version, batch(producer_id=7, producer_epoch=0, base_sequence=sequence)),
                version,
                sequence,
            )
            for sequence in (0, 1, 2, 3, 9, 4)
        ]
        taken = pair.taken[0]
        codes = []
        for frame in frames:
            answer = decode(ProduceResponse, version, both.send(frame)[9:])
            codes.append(answer.responses[0].partition_responses[0].error_code)
        wrong = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert codes == [0, 0, 0, 0, wrong, 0]
        assert pair.taken[0] - taken == 3
    both.logs_are_equal()


@pytest.mark.parametrize("together", [1, 5])
def test_what_a_worker_writes_is_answered_in_order(pair: Pair, together: int) -> None:
    both, version = Both(pair), 11
    both.configure("lc.log.sync.always", "true")
    with both.socket:
        for _ in range(3):
            both.send(framed(both.request(version, batch()), version, 1))
        taken = pair.taken[0]
        for begin in range(0, 20, together):
            numbers = range(begin, begin + together)
            both.send_together([framed(both.request(version, batch()), version, n) for n in numbers])
        assert pair.taken[0] - taken > 0
    both.logs_are_equal()


def test_a_write_that_fails_fails_all_that_were_written_together(pair: Pair) -> None:
    both, version = Both(pair), 11
    with both.socket:
        frames = [framed(both.request(version, batch()), version, number) for number in range(5)]
        for frame in frames[:3]:
            both.send(frame)
        for live in pair[:2]:
            live.call(make_read_only, live.log(both.topic))
        for got in both.send_together(frames):
            answer = decode(ProduceResponse, version, got[9:])
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    both.logs_are_equal()


def make_read_only(log: Log) -> None:
    """Let writes to the log's descriptor fail from now on."""
    file = log.segments[-1].open_file()
    other = os.open(file.path, os.O_RDONLY)
    os.dup2(other, file.fd)
    os.close(other)


def test_answers_that_the_peer_does_not_take_wait_in_order(tmp_path: Path) -> None:
    """The socket's buffers fill up in the middle of an answer, which then leaves the other way."""
    version, sent = 11, 0
    with live_broker(tmp_path, {"socket.send.buffer.bytes": "4608"}) as live, socket.socket() as sock:
        live.run(partial(live.broker.topics.create, "slow", 1, {}))
        log = live.log("slow")
        item = PartitionProduceData(index=0, records=memoryview(bytes(batch())))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="slow", partition_data=[item])])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4608)
        sock.settimeout(30)
        host, _, port = live.address.rpartition(":")
        sock.connect((host, int(port)))
        # One request at a time, so that each may be a repetition, until the broker takes no more.
        while sent < 10_000 and any(live.call(lambda: log.log_end_offset) == sent for _ in range(100)):
            sock.sendall(framed(request, version, sent))
            sent += 1
        for number in range(sent):
            answer = exactly(sock, int.from_bytes(exactly(sock, 4), "big"))
            assert int.from_bytes(answer[:4], "big") == number
            part = decode(ProduceResponse, version, answer[5:]).responses[0].partition_responses[0]
            assert (part.error_code, part.base_offset) == (0, number)
    assert 10 < sent < 10_000


def test_so_many_are_taken_together(pair: Pair) -> None:
    """A millisecond of work; what is left is taken in the next round."""
    both, version = Both(pair), 11
    with both.socket, pytest.MonkeyPatch.context() as patch:
        found: list[RepeatedProduce] = []
        stage = RepeatedProduce.stage
        patch.setattr(
            RepeatedProduce, "stage", lambda self, *arguments: found.append(self) or stage(self, *arguments)
        )
        frame = framed(both.request(version, batch()), version, 1)
        for _ in range(3):
            both.send(frame)
        log, many = pair.short.log(both.topic), memoryview(bytearray(frame * 300))

        def staged(at: int, end: int) -> int:
            """How many of these, on the loop; by the connection that has sent first."""
            stop = found[0].stage(many, at * len(frame), end * len(frame), NOW)
            log.write()
            return stop // len(frame) - at

        assert pair.short.call(staged, 0, 300) == 128
        assert found[0].count == 128
        assert pair.short.call(staged, 128, 300) == 128
        assert pair.short.call(staged, 256, 300) == 44
        assert found[0].count == 44


def test_what_several_connections_repeat_for_one_log_is_one_write() -> None:
    """So each of them hears of its failure."""

    class Written:
        def __init__(self) -> None:
            self.writes: list[PendingWrite] = []

        def write(self) -> PendingWrite:
            """With nothing left to write after the first, as `Log.write`."""
            self.writes.append(DONE if self.writes else failed(WriteError("no space", 0)))
            return self.writes[-1]

    one, other = Written(), Written()
    heard: list[PendingWrite] = []

    def connection(log: Written) -> Any:
        return SimpleNamespace(repeated=SimpleNamespace(log=log, written=heard.append))

    write_repeated([connection(one), connection(other), connection(one)])
    assert (len(one.writes), len(other.writes)) == (1, 1)
    assert heard == [one.writes[0], other.writes[0], one.writes[0]]


def test_a_repetition_after_its_right_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is counted before the loop knows of it, so what is learned in between has the new count in it."""
    right = Acl(
        AclResourceType.TOPIC,
        "t",
        PatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.WRITE,
        AclPermission.ALLOW,
    )
    taken = 0
    answer = RepeatedProduce.answer

    def counted(repeat: RepeatedProduce) -> bytes:
        nonlocal taken
        taken += repeat.count
        return answer(repeat)

    monkeypatch.setattr(RepeatedProduce, "answer", counted)
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    correlation = count(1)
    topic = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=0, records=memoryview(batch(1)))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])

    def codes(sock: socket.socket, times: int) -> list[int]:
        found = []
        for _ in range(times):
            reply = exchange(sock, framed(request, 9, next(correlation)))
            answered = decode(ProduceResponse, 9, reply[9:])
            found.append(answered.responses[0].partition_responses[0].error_code)
        return found

    async def published(new: list[Acl], gone: list[Acl]) -> None:
        authorizer._changed(new, gone)

    with live_broker(tmp_path, {"authorizer.class.name": standard}) as live:
        authorizer, metadata = live.broker.authorizer, live.broker.metadata
        assert authorizer is not None
        live.run(partial(live.broker.topics.create, "t", 1, {}))
        live.run(partial(authorizer.acls.create, [right]))
        with connect(live) as own:
            assert codes(own, 5) == [ErrorCode.NONE] * 5
            assert taken
            metadata.change_acls([], [stored(right)])
            before = taken
            assert codes(own, 5) == [ErrorCode.NONE] * 5
            assert taken > before, "it has been learned anew"
            live.run(partial(published, [], [right]))  # and now the loop knows of it
            assert codes(own, 4) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 4
            live.run(partial(published, [right], []))
            assert codes(own, 1) == [ErrorCode.NONE]


def test_nothing_is_learned_where_all_is_in_the_audit_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RepeatedProduce, "answer", lambda _: pytest.fail("it was learned"))
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "lc.audit.log": "all",
    }
    topic = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=0, records=memoryview(batch(1)))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    with live_broker(tmp_path, settings) as live:
        live.run(partial(live.broker.topics.create, "t", 1, {}))
        with connect(live) as own:
            assert all(exchange(own, framed(request, 9, number)) for number in range(1, 8))
