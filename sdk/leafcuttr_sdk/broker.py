"""The broker as a plugin sees it: in process, no socket.

`Broker` composes; each of its parts is one small protocol. Everything that waits is cancellable, and says what
cancellation leaves behind. Errors of the broker are `leafcuttr_sdk.errors.BrokerError` and its family, the same that
clients get as codes. All of it belongs to the loop's thread: from another one use `trio.from_thread`.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from leafcuttr_sdk.records import Appended, Fetched, NewBatch, Produced, RawRead, Record
from leafcuttr_sdk.types import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.cluster import Cluster
    from leafcuttr_sdk.consumer import Consumer
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.groups import Groups
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.metrics import Metrics
    from leafcuttr_sdk.settings import Settings
    from leafcuttr_sdk.topics import Topics

EARLIEST = -2
"""In the place of a time: the log start offset."""
LATEST = -1
"""In the place of a time: the high watermark."""


class Broker(Protocol):
    """One plugin's view of the broker that runs it."""

    @property
    def topics(self) -> "Topics":
        """Create, describe, alter, delete."""
        ...

    @property
    def groups(self) -> "Groups":
        """Consumer groups, their offsets and lag."""
        ...

    @property
    def cluster(self) -> "Cluster":
        """Who this broker is and where it listens."""
        ...

    @property
    def settings(self) -> "Settings":
        """This plugin's settings."""
        ...

    @property
    def metrics(self) -> "Metrics":
        """Counters and gauges that this plugin adds to `/metrics`."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def logger(self) -> logging.Logger:
        """`leafcuttr.plugin.<name>`."""
        ...

    async def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Produced:
        """Append one record, and return once it is where the topic's mode promises: in the log, or in sync mode on the
        disk. A topic that is not there is created if `auto.create.topics.enable` says so. Without a `partition` the key
        decides (Java's murmur2), and without a key the one that the topic's records go to at present.

        Raises BrokerError. Cancelled: the record may have been appended, or not.
        """
        ...

    async def produce_batch(
        self, topic: str, records: Sequence[Record], *, partitions: Sequence[int | None] | None = None
    ) -> "list[Produced | BrokerError]":
        """Append many records, those of each partition as one batch (several where `max.message.bytes` does not allow
        one); an answer for each, in their order. `partitions` has one for each record.

        A record that can never be stored is refused by itself: larger than the topic allows, a time below 0, a header
        that has no UTF-8, a partition that is not there. The others of a batch are stored together, or refused
        together with one error, but for those that `INVALID_RECORD` names (KIP-467): they carry the reason, the others
        say that they were refused because of them.

        Raises BrokerError only where the topic as such is at fault. Cancelled: any of them may have been appended.
        """
        ...

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        """Append prebuilt batches, those of one call with one write for each log; an answer for each. Several calls in
        one turn of the loop share their writes too. Filters and validators of the topics see them. Topics are not
        created, and transactional batches are refused: a transaction has a coordinator.

        Cancelled: any of them may have been appended. What a worker thread is writing already is waited for: the bytes
        are the caller's again when this returns or raises.
        """
        ...

    async def read_batches(
        self, partition: TopicPartition, offset: int, *, max_bytes: int = 1024 * 1024, committed: bool = False
    ) -> RawRead:
        """Batches from an offset on, as they are stored, at least one if there is one. Does not wait for new ones. With
        `committed` what open transactions hold back is not there; records of aborted ones are. Raises BrokerError."""
        ...

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_bytes: int = 1024 * 1024,
        max_records: int | None = None,
        wait_s: float = 0.0,
        committed: bool = False,
    ) -> Fetched:
        """Records from the given offsets on. Where there are none it waits for up to `wait_s` seconds. Raises
        BrokerError, of the first partition at fault. Cancelled: nothing has happened."""
        ...

    async def wait_for_records(self, positions: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """Return as soon as a fetch from one of the positions would find something or fail (the partition is gone, or
        the position is none of its offsets): those where it would. It costs nothing while it waits."""
        ...

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the offset of the first record with that time (ms) or a later one, or `EARLIEST`, or
        `LATEST`; the high watermark where there is none. Raises BrokerError."""
        ...

    def consumer(
        self,
        group: str,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        auto_offset_reset: str = "latest",
        session_timeout_ms: int = 45_000,
        max_poll_interval_ms: int = 300_000,
        client_id: str | None = None,
        instance_id: str | None = None,
        committed: bool = False,
    ) -> "AbstractAsyncContextManager[Consumer]":
        """A member of a consumer group for as long as the context lasts; it leaves the group at its end, unless
        `instance_id` makes it a static one (KIP-345). Beside members in other processes it agrees on the assignors
        `range` and `roundrobin`. Without topics and pattern it is in no group yet: see `Consumer.subscribe` and
        `Consumer.assign`. `committed` leaves out records of aborted transactions. Raises ValueError when the context is
        entered; that the broker does not allow such a session, `poll` says."""
        ...

    def listen(self, prefix: str, *, authenticates: bool = False) -> "AbstractAsyncContextManager[Listening]":
        """Bound sockets of a listener with the settings of `listener_settings(prefix, ...)`, closed at the end. A
        listener that every host can reach without authentication draws one warning, unless `authenticates`. Raises
        PluginError with one line: the address is taken, a certificate cannot be read."""
        ...
