"""All that runs against the broker of `test_crash.py` while it is killed, and what it is told, seen through sockets."""

from __future__ import annotations

from typing import Any, Final

from crash import java_clients, keyed
from crash.broker_run import BrokerRun
from crash.foreign import Record
from crash.raw_workers import Members, RawSender, Topics, Trimmer, create_topic
from crash.readback import Readback
from crash.workload import DATA, PARTITIONS, TRANSACTIONS, Committer, Sender, Transactor
from support import jars
from support.wire_client import WireClient

SYNCED: Final = "synced"
PACE: Final = 3.0
"""Of a run that is not thorough. `killing.kill_at` divides by it how often a point is passed before the kill."""
INTERNAL: Final = 2  # partitions of each internal topic
SETTINGS: Final = {
    # A segment of any topic, internal ones too, is full after forty batches or fewer.
    "log.index.size.max.bytes": "480",
    "log.index.interval.bytes": "1024",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "log.flush.start.offset.checkpoint.interval.ms": "700",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "0",
    "log.cleaner.backoff.ms": "300",
    "offsets.topic.num.partitions": str(INTERNAL),
    "transaction.state.log.num.partitions": str(INTERNAL),
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}


class Load:
    """All that runs against the broker, and the comparison of what it was told with what there is."""

    def __init__(self, run: BrokerRun, seed: int, *, thorough: bool) -> None:
        """`thorough`: a Java consumer group too, more records in a batch, and shorter pauses between batches."""
        at, burst = run.address, 10 if thorough else 2
        numbered: list[Any] = [
            Sender(at, 0, idempotent=True, codec="none", burst=burst, partition=0),
            Sender(at, 1, idempotent=True, codec="lz4", burst=burst, partition=1),
            Sender(at, 2, idempotent=False, codec="none", burst=burst, partition=0),
            Sender(at, 3, idempotent=True, codec="none", burst=burst, topic=SYNCED, partition=0),
            RawSender(at, 4, DATA, 1),
            RawSender(at, 5, SYNCED, 1),
        ]
        self.numbered = numbered
        self.keyed = keyed.KeyedSender(at, burst=2 * burst)
        self.committer = Committer(at)
        self.transactor = Transactor(at)
        self.topics, self.trimmer = Topics(at, seed), Trimmer(at, seed)
        self.raw = [Members(at, DATA), self.topics, self.trimmer]
        self.workers: list[Any] = [*numbered, self.keyed, self.committer, self.transactor, *self.raw]
        if not thorough:
            for worker in self.workers:
                worker.pace = PACE
        self.java: java_clients.JavaConsumer | None = None
        if jars.missing() is None:
            numbered.append(java_clients.JavaProducer(run.folder, at, a_second=20 * burst))
            self.workers.append(numbered[-1])
            if thorough:
                self.java = java_clients.JavaConsumer(run.folder, at)
                self.workers.append(self.java)
        else:
            run.notes.append(f"no Java clients: {jars.missing()}")
        self.readback = Readback(at, numbered, self.keyed, self.transactor)
        self._by_number = {sender.number: sender for sender in numbered}
        self.run = run

    def start(self) -> None:
        for worker in self.workers:
            worker.start()

    def has_sent(self, record: Record) -> bool:
        """Whether one of the senders of numbered records has made this one."""
        value = record.value or b""
        sender, _, rest = value.partition(b":")
        number = rest.partition(b":")[0] if rest else sender
        which = self._by_number.get(int(sender) if rest else java_clients.NUMBER)
        return which is not None and record.key is None and which.value_of(int(number)) == value

    def stop(self) -> None:
        for worker in reversed(self.workers):
            worker.stop()

    def abandon(self) -> None:
        for worker in self.workers:
            worker.abandon()

    def check(self) -> None:
        """What was acknowledged is there, nobody has met an error, the broker lives."""
        timed = self.run.timed
        with timed("read records"):
            self.readback.check()
        with timed("read state"):
            self.readback.check_commits(self.committer)
            for worker in self.raw:
                worker.check()
            if self.java is not None:
                self.java.check(self.run.address)
        for worker in self.workers:
            assert worker.failure is None, worker.failure
        broker = self.run.broker
        assert broker is not None
        assert broker.alive(), broker.log[-3000:]


def create_topics(address: str) -> None:
    with WireClient(address) as client:
        create_topic(client, DATA, PARTITIONS)
        create_topic(client, SYNCED, PARTITIONS, lc_log_sync_always="true")
        create_topic(client, TRANSACTIONS, PARTITIONS)
        create_topic(client, Trimmer.TOPIC, 1)
        create_topic(client, java_clients.TOPIC, 1)
        create_topic(client, keyed.TOPIC, 1, **keyed.SETTINGS)
