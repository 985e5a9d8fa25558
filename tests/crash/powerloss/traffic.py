"""What clients do while a broker is recorded: one thread each, which marks what it sends before and what it was told
after.

Marks (`Recorder.mark`), each with the fields that `told.Told` reads: sent, acked (records); committing, committed
(offsets of a group); creating, created, deleting, deleted (topics); setting, set (a setting of a topic); trimming,
trimmed (DeleteRecords); ending, ended (transactions).

Record timestamps are made up, a step for each batch, so that segments roll by them at the same places on every machine.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from crash.powerloss.recording import Recorder
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from leafcuttr.wire.records import Record, encode_batch
from support.waiting import until
from support.wire_client import WireClient

GROUP: Final = "readers"
TRANSACTIONAL: Final = "mover"
TRANSACTIONAL_GROUP: Final = "movers"
TRANSACTIONS: Final = "moved"
KEYS: Final = 12

SYNC: Final = {"lc.log.sync.always": "true"}
PLAIN: Final = {"lc.log.sync.always": "false"}
_COMPACT: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "sync": SYNC,
    "plain": PLAIN,
    "flushed": {**PLAIN, "flush.messages": "3"},
    "sync-latest": {**SYNC, **_COMPACT},
    "plain-latest": {**PLAIN, **_COMPACT},
    "sync-trimmed": SYNC,
    "plain-trimmed": PLAIN,
    TRANSACTIONS: SYNC,
}
BROKER: Final[Mapping[str, str]] = {
    "log.roll.ms": "300",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.flush.offset.checkpoint.interval.ms": "400",
    "log.segment.delete.delay.ms": "300",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_STEP_MS: Final = 40


class Refused(Exception):
    """The broker has answered a request with an error."""


_LATER: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # of a Produce request, while the coordinator loads
)


def check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise Refused(ErrorCode(code).name)


def ask(client: WireClient, request: Any, version: int, code: Callable[[Any], int]) -> Any:
    """The answer, after as many tries as the coordinators ask for. `code` finds the error in it. Raises Refused."""

    def once() -> Any:
        answer = client.ask(request, version)
        if code(answer) in _LATER:
            return None
        check(code(answer))
        return answer

    return until(once, type(request).__name__, seconds=60, pause=0.005)


def create_topic(client: WireClient, name: str, partitions: int, config: Mapping[str, str]) -> None:
    """Raises Refused."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    check(client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5).topics[0].error_code)


def init_producer(client: WireClient, transactional_id: str | None = None) -> InitProducerIdResponse:
    """A producer id and epoch; one with a transactional id may have to wait until what was prepared is finished."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=600_000)
    answer = ask(client, request, 5, lambda answer: int(answer.error_code))
    assert isinstance(answer, InitProducerIdResponse)
    return answer


def send(client: WireClient, topic: str, partition: int, batch: bytearray, transactional: str | None) -> int:
    """Produce one batch; returns its base offset. Raises Refused."""
    data = PartitionProduceData(index=partition, records=memoryview(batch))
    request = ProduceRequest(
        transactional_id=transactional, acks=-1, timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )  # fmt: skip
    answer = ask(client, request, 12, lambda answer: int(_of(answer).error_code))
    return int(_of(answer).base_offset)


def _of(answer: ProduceResponse) -> PartitionProduceResponse:
    return answer.responses[0].partition_responses[0]


class Client(ABC):
    """One thread with one connection. `rounds` is how many steps it has done; `failure` what ended it early."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.name = name
        self.rounds = 0
        self.failure: str | None = None
        self.mark = recorder.mark
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.client: WireClient

    def start(self, address: str) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._run, args=(address,), name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(60)
            if self._thread.is_alive():
                self.failure = self.failure or f"{self.name} does not end"

    def _run(self, address: str) -> None:
        try:
            with WireClient(address) as self.client:
                self.begin()
                while not self._over.is_set():
                    self.step(self.rounds)
                    self.rounds += 1
                    self._over.wait(0.01)
        except Exception as error:
            self.failure = f"{self.name}: {error!r}"

    def begin(self) -> None:  # noqa: B027 - most need nothing
        """At every start of a broker."""

    @abstractmethod
    def step(self, number: int) -> None:
        """A short piece of work, the broker's answer awaited."""


class Sender(Client):
    """Sends batches of one to three records to partition 0 of a topic, idempotent or not, with keys or not, compressed
    or not. Two senders of one topic make their requests wait together."""

    def __init__(
        self,
        recorder: Recorder,
        topic: str,
        name: str,
        *,
        idempotent: bool = False,
        keys: bool = False,
        codec: Codec = Codec.NONE,
    ) -> None:
        super().__init__(recorder, f"{topic}/{name}")
        self.topic = topic
        self._idempotent = idempotent
        self._keys = keys
        self._codec = codec
        self._producer = InitProducerIdResponse()
        self._sequence = 0
        self._began_ms = int(time.time() * 1000) - 3_600_000

    def begin(self) -> None:
        if self._idempotent and self._producer.producer_id < 0:
            self._producer = init_producer(self.client)
            self.mark("producer", id=self._producer.producer_id)

    def step(self, number: int) -> None:
        count = number % 3 + 1
        values = [f"{self.name}:{number}:{each}" for each in range(count)]
        key = f"{number * 7 % KEYS}" if self._keys else None
        at = self._began_ms + number * _STEP_MS
        records = [
            Record(each, at, key.encode() if key else None, value.encode().ljust(200, b"."))
            for each, value in enumerate(values)
        ]
        batch = encode_batch(
            records,
            codec=self._codec,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch if self._idempotent else -1,
            base_sequence=self._sequence if self._idempotent else -1,
        )
        again = batch.hex() if self._idempotent else ""
        self.mark(
            "sent", topic=self.topic, partition=0, sender=self.name, values=values, key=key, batch=again
        )
        offset = send(self.client, self.topic, 0, batch, None)
        self.mark("acked", topic=self.topic, partition=0, sender=self.name, offset=offset, values=values)
        self._sequence += count


class Committer(Client):
    """Commits rising offsets for a group."""

    def step(self, number: int) -> None:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        topic = OffsetCommitRequestTopic(name="sync", partitions=[part])
        self.mark("committing", group=GROUP, offset=number)
        request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
        ask(self.client, request, 7, lambda answer: int(answer.topics[0].partitions[0].error_code))
        self.mark("committed", group=GROUP, offset=number)


class Transactor(Client):
    """Each transaction writes its number to both partitions of a topic and commits it as a group's offset; every fourth
    is aborted."""

    producer: InitProducerIdResponse | None = None
    sequences = (0, 0)

    def begin(self) -> None:
        if self.producer is None:
            self.producer = init_producer(self.client, TRANSACTIONAL)
            self.mark("producer", id=self.producer.producer_id)

    def step(self, number: int) -> None:
        self.transaction(number, commit=number % 4 != 3)

    def transaction(self, number: int, *, commit: bool) -> None:
        producer = self.producer
        assert producer is not None
        at = int(time.time() * 1000) - 3_600_000 + number * _STEP_MS
        sequences = list(self.sequences)
        for partition in range(2):
            value = str(number)
            batch = encode_batch(
                [Record(0, at, None, value.encode())], producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch, base_sequence=sequences[partition], transactional=True,
            )  # fmt: skip
            self.mark(
                "sent",
                topic=TRANSACTIONS,
                partition=partition,
                sender=self.name,
                values=[value],
                key=None,
                batch="",
            )
            offset = send(self.client, TRANSACTIONS, partition, batch, TRANSACTIONAL)
            self.mark(
                "acked",
                topic=TRANSACTIONS,
                partition=partition,
                sender=self.name,
                offset=offset,
                values=[value],
            )
            sequences[partition] += 1
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        request = TxnOffsetCommitRequest(
            transactional_id=TRANSACTIONAL, group_id=TRANSACTIONAL_GROUP, producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name="sync", partitions=[part])],
        )  # fmt: skip
        ask(self.client, request, 5, lambda answer: int(answer.topics[0].partitions[0].error_code))
        self.mark("ending", number=number, commit=commit)
        end = EndTxnRequest(
            transactional_id=TRANSACTIONAL, producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch, committed=commit,
        )  # fmt: skip
        answer = ask(self.client, end, 5, lambda answer: int(answer.error_code))
        self.mark("ended", number=number, commit=commit)
        # Version 5 ends each transaction with a new epoch, whose sequences begin again (KIP-890).
        self.producer = InitProducerIdResponse(
            producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
        )
        self.sequences = (0, 0)


class Admin(Client):
    """Creates topics, puts a record into them, changes a setting of theirs, deletes them; deletes records of others."""

    ends: dict[str, int]

    def step(self, number: int) -> None:
        name = f"passing-{number // 4}"
        if number % 4 == 0:
            config = SYNC if number % 8 else PLAIN
            self.mark("creating", topic=name, partitions=2, config=config)
            create_topic(self.client, name, 2, config)
            self.mark("created", topic=name, partitions=2, config=config)
        elif number % 4 == 1:
            value = f"{name}:0"
            self.mark("sent", topic=name, partition=1, sender=self.name, values=[value], key=None, batch="")
            batch = encode_batch([Record(0, 1_000_000, None, value.encode())])
            offset = send(self.client, name, 1, batch, None)
            self.mark("acked", topic=name, partition=1, sender=self.name, offset=offset, values=[value])
        elif number % 4 == 2:
            self._set(name, "retention.ms", str(100_000_000_000_000 + number))  # longer than since 1970
            self._trim()
        elif number // 4 >= 2:
            name = f"passing-{number // 4 - 2}"
            self.mark("deleting", topic=name)
            answer = self.client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
            check(answer.responses[0].error_code)
            self.mark("deleted", topic=name)
            self._again(name, number)

    def _again(self, name: str, number: int) -> None:
        """Now and then a topic of the same name comes back."""
        if number // 4 % 3 == 0:
            self.mark("creating", topic=name, partitions=1, config=PLAIN)
            create_topic(self.client, name, 1, PLAIN)
            self.mark("created", topic=name, partitions=1, config=PLAIN)

    def _set(self, topic: str, setting: str, value: str) -> None:
        self.mark("setting", topic=topic, setting=setting, value=value)
        change = AlterableConfig(name=setting, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
        answer = self.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        check(answer.responses[0].error_code)
        self.mark("set", topic=topic, setting=setting, value=value)

    def _trim(self) -> None:
        for topic in ("sync-trimmed", "plain-trimmed"):
            offset = max(self.client.list_offset(topic, -1).offset - 5, 0)
            self.mark("trimming", topic=topic, offset=offset)
            part = DeleteRecordsPartition(partition_index=0, offset=offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=30_000
            )
            answer = self.client.ask(request, 2).topics[0].partitions[0]
            check(answer.error_code)
            self.mark("trimmed", topic=topic, offset=answer.low_watermark)


class Traffic:
    """All clients together."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.clients: list[Client] = [
            Sender(recorder, "sync", "a", idempotent=True),
            Sender(recorder, "sync", "b", codec=Codec.LZ4),
            Sender(recorder, "plain", "a", idempotent=True),
            Sender(recorder, "flushed", "a", codec=Codec.GZIP),
            Sender(recorder, "sync-latest", "a", keys=True),
            Sender(recorder, "plain-latest", "a", keys=True, codec=Codec.ZSTD),
            Sender(recorder, "sync-trimmed", "a"),
            Sender(recorder, "plain-trimmed", "a", codec=Codec.SNAPPY),
            Committer(recorder, "committer"),
            Transactor(recorder, "transactor"),
            Admin(recorder, "admin"),
        ]

    def make_topics(self, address: str) -> None:
        with WireClient(address) as client:
            for name, config in TOPICS.items():
                partitions = 2 if name == TRANSACTIONS else 1
                fields: dict[str, Any] = {"topic": name, "partitions": partitions, "config": dict(config)}
                self.recorder.mark("creating", **fields)
                create_topic(client, name, partitions, config)
                self.recorder.mark("created", **fields)

    def run(self, address: str, data: Path, rounds: int) -> None:
        """Until every client has done so many rounds more, and compaction and checkpoints have been at it. Raises
        AssertionError."""
        targets = [(client, client.rounds + rounds) for client in self.clients]
        before = {path: path.read_text() for path in _checkpoints(data) if path.exists()}
        for client in self.clients:
            client.start(address)

        def done() -> bool:
            return self.failed() or (
                all(client.rounds >= target for client, target in targets)
                and all(p.exists() and p.read_text() != before.get(p, "") for p in _checkpoints(data))
            )

        until(done, "the traffic", seconds=120)
        for client in self.clients:
            client.stop()
        failures = [client.failure for client in self.clients if client.failure]
        assert not failures, failures

    def failed(self) -> bool:
        return any(client.failure for client in self.clients)


def _checkpoints(data: Path) -> list[Path]:
    return [data / "cleaner-offset-checkpoint", data / "recovery-point-offset-checkpoint"]
