"""Clients of the crash suite that speak the protocol over a socket of their own: no library retries for them, and what
each single answer said is known.

`RawSender` pipelines Produce requests with sequence numbers and sends again, on the next connection, what has no
answer. `Members` joins groups, commits, leaves and deletes them. `Topics` creates, fills, reconfigures and deletes
topics, `Trimmer` deletes records. Their `check` compares what the broker has with what it has answered; no step is
under way then. One module, because the four build on the same `RawWorker` and the same helpers.
"""

from __future__ import annotations

import random
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from crash.acknowledged import Due
from crash.workload import VALUE_BYTES, Worker
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.delete_groups import DeleteGroupsRequest
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from leafcuttr.wire.messages.leave_group import LeaveGroupRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from leafcuttr.wire.messages.produce import ProduceRequest
from leafcuttr.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from leafcuttr.wire.records import Record, decode_records, encode_batch
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient, produce_request

EARLIEST, LATEST = -2, -1


class RawWorker(Worker):
    """A worker with a connection, made anew when it is lost. `still` is held while a step is under way."""

    RATE_S = 0.02

    def __init__(self, name: str, address: str) -> None:
        super().__init__(name)
        self.address = address
        self.still = threading.Lock()
        self.client: WireClient | None = None

    def step(self) -> None:
        with self.still:
            try:
                if self.client is None:
                    self.client = WireClient(self.address)
                    self.connected(self.client)
                self.work(self.client)
            except OSError:
                self._disconnect()
        # Without the lock: who waits for it has to get it some time.
        self.pause(0.02 if self.client is None else self.RATE_S)

    def connected(self, client: WireClient) -> None:
        """On a new connection."""

    @abstractmethod
    def work(self, client: WireClient) -> None:
        """A step. What it does not hear an answer to (OSError) may have happened or not."""

    def check(self) -> None:
        """Compare with the broker, which runs. Raises AssertionError."""
        with self.still, WireClient(self.address) as client:
            self.compare(client)

    @abstractmethod
    def compare(self, client: WireClient) -> None:
        """See `check`."""

    def finish(self) -> None:
        self._disconnect()

    def _disconnect(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            client.__exit__()


class _Unanswered(NamedTuple):
    first: int
    request: ProduceRequest


class RawSender(RawWorker):
    """Up to five requests in flight, each one batch of a few numbered records. `places` says at which offset the batch
    that begins with a number is, by the broker's word."""

    IN_FLIGHT, BATCH = 5, 4

    def __init__(self, address: str, number: int, topic: str, partition: int) -> None:
        super().__init__(f"raw sender {number}", address)
        self.number = number
        self.topic = topic
        self.partition = partition
        self.idempotent = True
        self.acknowledged = 0
        self.places: dict[int, int] = {}
        self._next = 0
        self._producer_id = -1
        self._waiting: deque[_Unanswered] = deque()

    def connected(self, client: WireClient) -> None:
        if self._producer_id < 0:
            answer = client.ask(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4
            )
            if answer.error_code:
                raise ConnectionError(f"InitProducerId: {ErrorCode(answer.error_code).name}")
            self._producer_id = answer.producer_id
        for each in self._waiting:
            client.send(each.request, 11)

    def work(self, client: WireClient) -> None:
        while len(self._waiting) < self.IN_FLIGHT and not self.over:
            self._waiting.append(self._new())
            client.send(self._waiting[-1].request, 11)
        self._take(client)

    def finish(self) -> None:
        if self.client is not None:
            while self._waiting:
                self._take(self.client)
        super().finish()

    def compare(self, client: WireClient) -> None:
        """The reader does."""

    @property
    def sent(self) -> int:
        return self._next

    def value_of(self, number: int) -> bytes:
        return f"{self.number}:{number}:".encode().ljust(VALUE_BYTES, b"r")

    def due(self) -> Iterator[Due]:
        """What was acknowledged, in order."""
        for first, offset in self.places.copy().items():
            for i in range(self.BATCH):
                yield Due(offset + i, None, self.value_of(first + i))

    def _new(self) -> _Unanswered:
        first, self._next = self._next, self._next + self.BATCH
        timestamp = now_ms()
        values = [self.value_of(first + i) for i in range(self.BATCH)]
        data = encode_batch(
            [Record(i, timestamp, None, value) for i, value in enumerate(values)],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=first,
        )
        return _Unanswered(first, produce_request(self.topic, data, self.partition, -1))

    def _take(self, client: WireClient) -> None:
        first, request = self._waiting[0]
        answer = client.take(request, 11).responses[0].partition_responses[0]
        if answer.error_code:
            raise AssertionError(f"{first}: {ErrorCode(answer.error_code).name} {answer.error_message}")
        self._waiting.popleft()
        self.places[first] = answer.base_offset
        self.acknowledged = first + self.BATCH


class Members(RawWorker):
    """A member comes, commits an offset in its generation and goes, in one group; every third time a group of its own
    is made by a commit and deleted."""

    GROUP = "members"

    def __init__(self, address: str, topic: str) -> None:
        super().__init__("members", address)
        self._topic = topic
        self._tried = 0
        self._committed = 0
        self._made: dict[str, int] = {}  # acknowledged and not asked to go
        self._gone: deque[str] = deque(maxlen=5)

    def work(self, client: WireClient) -> None:
        self._tried += 1
        if self._tried % 3 == 0:
            self._come_and_go(client, f"passing-{self._tried}")
        else:
            self._member(client)

    def _member(self, client: WireClient) -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"what it subscribes to")
        join = JoinGroupRequest(
            group_id=self.GROUP, session_timeout_ms=300, rebalance_timeout_ms=300, member_id="",
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        joined = client.ask(join, 2)
        if joined.error_code or joined.leader != joined.member_id:
            self.pause(
                0.05
            )  # the coordinator is loading, or a member that was killed here is not yet forgotten
            return
        who, generation = joined.member_id, joined.generation_id
        assignment = SyncGroupRequestAssignment(member_id=who, assignment=b"all of it")
        sync = SyncGroupRequest(
            group_id=self.GROUP, generation_id=generation, member_id=who, assignments=[assignment]
        )
        if client.ask(sync, 2).error_code == ErrorCode.NONE and not self._commit(
            client, self.GROUP, self._tried, generation, who
        ):
            self._committed = self._tried
        client.ask(LeaveGroupRequest(group_id=self.GROUP, member_id=who), 2)

    def _come_and_go(self, client: WireClient, group: str) -> None:
        if self._commit(client, group, self._tried, -1, ""):
            return
        self._made[group] = self._tried
        if len(self._made) <= 3:
            return
        oldest = next(iter(self._made))
        del self._made[oldest]
        answer = client.ask(DeleteGroupsRequest(groups_names=[oldest]), 1)
        if not answer.results[0].error_code:
            self._gone.append(oldest)

    def _commit(self, client: WireClient, group: str, offset: int, generation: int, member: str) -> int:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topic = OffsetCommitRequestTopic(name=self._topic, partitions=[part])
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
        )
        return int(client.ask(request, 5).topics[0].partitions[0].error_code)

    def compare(self, client: WireClient) -> None:
        offset = committed(client, self.GROUP, self._topic)
        assert self._committed <= offset <= self._tried, (
            f"the group is at {offset}, {self._committed} was acknowledged, {self._tried} tried"
        )
        for group, due in self._made.items():
            assert committed(client, group, self._topic) == due, f"{group} is not at {due}"
        for group in self._gone:
            assert committed(client, group, self._topic) == 0, f"{group} was deleted and is back"


class Topics(RawWorker):
    """Creates topics, puts records into them, turns topic sync mode on and off, deletes them, and takes their names
    again: what is in one is what was put into it since it was made last."""

    NAMES = tuple(f"chore-{number}" for number in range(5))
    BATCH, PARTITION = 3, 1

    def __init__(self, address: str, seed: int) -> None:
        super().__init__("topics", address)
        self._random = random.Random(seed)
        self._there: dict[str, tuple[int, int]] = {}  # records acknowledged, and records tried
        self._places: dict[str, list[int]] = {}  # base offsets of acknowledged batches
        self._gone: set[str] = set(self.NAMES)

    def work(self, client: WireClient) -> None:
        name = self._random.choice(self.NAMES)
        if name in self._gone:
            self._create(client, name)
        elif name not in self._there or self._random.random() < 0.4:
            self._delete(client, name)
        elif self._random.random() < 0.3:
            set_config(client, name, "lc.log.sync.always", self._random.choice(("true", "false")))
        else:
            self._fill(client, name)

    def _create(self, client: WireClient, name: str) -> None:
        self._gone.discard(name)
        topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1)
        answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5).topics[0]
        assert not answer.error_code, f"{name}: {ErrorCode(answer.error_code).name} {answer.error_message}"
        self._places[name] = []
        self._there[name] = (0, 0)

    def due(self) -> dict[str, list[Due]]:
        """What was acknowledged in partition 1 of the topics that are there."""
        return {name: records_of(self._places[name].copy(), batch(self.BATCH)) for name in self._there.copy()}

    def _delete(self, client: WireClient, name: str) -> None:
        self._there.pop(name, None)
        answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 4).responses[0]
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), answer
        self._gone.add(name)

    def _fill(self, client: WireClient, name: str) -> None:
        acknowledged, tried = self._there[name]
        self._there[name] = (acknowledged, tried + self.BATCH)
        answer = client.produce(name, batch(self.BATCH, timestamp=now_ms()), partition=1)
        assert not answer.error_code, f"{name}: {ErrorCode(answer.error_code).name} {answer.error_message}"
        self._places[name].append(answer.base_offset)
        self._there[name] = (acknowledged + self.BATCH, tried + self.BATCH)

    def compare(self, client: WireClient) -> None:
        answer = client.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 9)
        there = {topic.name for topic in answer.topics}
        assert not self._gone & there, f"deleted and back: {sorted(self._gone & there)}"
        for name, (acknowledged, tried) in self._there.items():
            assert name in there, f"{name} was created and is missing"
            end = client.list_offset(name, LATEST, partition=1)
            assert not end.error_code, f"{name}: {ErrorCode(end.error_code).name}"
            assert acknowledged <= end.offset <= tried, (
                f"{name} holds {end.offset} records, {acknowledged} were acknowledged, {tried} tried"
            )
            assert client.list_offset(name, EARLIEST, partition=1).offset == 0
            self._there[name] = (end.offset, end.offset)


class Trimmer(RawWorker):
    """Writes to a topic of small segments and deletes its records up to somewhere in the middle."""

    TOPIC = "trimmed"
    BATCH, SIZE = 8, 1000

    def __init__(self, address: str, seed: int) -> None:
        super().__init__("trimmer", address)
        self._random = random.Random(seed)
        self._start = (0, 0)  # acknowledged and tried
        self._end = (0, 0)
        self._places: list[int] = []  # base offsets of acknowledged batches

    def due(self) -> list[Due]:
        """What was acknowledged, and not asked to go."""
        records = records_of(self._places, batch(self.BATCH, size=self.SIZE))
        return [one for one in records if one.offset >= self._start[1]]

    def work(self, client: WireClient) -> None:
        for _ in range(4):
            self._end = (self._end[0], self._end[1] + self.BATCH)
            answer = client.produce(self.TOPIC, batch(self.BATCH, size=self.SIZE, timestamp=now_ms()))
            assert not answer.error_code, f"{ErrorCode(answer.error_code).name} {answer.error_message}"
            self._places.append(answer.base_offset)
            self._end = (answer.base_offset + self.BATCH, answer.base_offset + self.BATCH)
        self._places = [offset for offset in self._places if offset + self.BATCH > self._start[1]]
        offset = self._random.randint(self._start[1], self._end[0])
        self._start = (self._start[0], offset)
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name=self.TOPIC, partitions=[part])
        answer = (
            client.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=30_000), 2).topics[0].partitions[0]
        )
        assert not answer.error_code, f"DeleteRecords: {ErrorCode(answer.error_code).name}"
        self._start = (offset, offset)

    def compare(self, client: WireClient) -> None:
        start, end = (client.list_offset(self.TOPIC, which).offset for which in (EARLIEST, LATEST))
        assert self._start[0] <= start <= self._start[1], f"{self.TOPIC} begins at {start}, not {self._start}"
        assert self._end[0] <= end <= self._end[1], f"{self.TOPIC} ends at {end}, not {self._end}"
        if start < end:
            answer = client.fetch(self.TOPIC, start)
            assert not answer.error_code, f"{self.TOPIC} at {start}: {ErrorCode(answer.error_code).name}"
            assert answer.records, f"{self.TOPIC}: nothing at {start}"


def records_of(places: list[int], data: bytearray) -> list[Due]:
    """The records of a batch that was sent again and again, with the base offsets that it got."""
    records = decode_records(data)
    return [Due(base + record.offset, record.key, record.value) for base in places for record in records]


def now_ms() -> int:
    """The time of day: old records would go by their age."""
    return int(time.time() * 1000)


def committed(client: WireClient, group: str, topic: str) -> int:
    """The offset of a group in partition 0; 0 if it has none. The coordinator may still be loading."""
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])

    def ask() -> Any:
        answer = client.ask(OffsetFetchRequest(group_id=group, topics=[asked]), 5)
        return None if answer.error_code in loading else answer

    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    answer = until(ask, f"the offset of {group}", seconds=60)
    assert not answer.error_code, f"{group}: {ErrorCode(answer.error_code).name}"
    found = answer.topics[0].partitions[0]
    assert not found.error_code, f"{group}: {ErrorCode(found.error_code).name}"
    return max(int(found.committed_offset), 0)


def create_topic(client: WireClient, name: str, partitions: int, **settings: str) -> None:
    """Create a topic that stays; `_` for `.` in the settings' names."""
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5).topics[0]
    assert not answer.error_code, f"{name}: {answer.error_message}"


def set_config(client: WireClient, topic: str, name: str, value: str) -> None:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 0).responses[0]
    assert not answer.error_code, f"{topic}: {answer.error_message}"
