"""The broker as a plugin sees it: in process, no socket.

`Broker` composes; each of its parts is one small protocol. Everything that waits is cancellable, and says what
cancellation leaves behind. Errors of the broker are `leafcuttr_sdk.errors.BrokerError` and its family, the same that
clients get as codes. All of it belongs to the loop's thread: from another one use `trio.from_thread`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, TypeVarTuple

from leafcuttr_sdk.children import Restart
from leafcuttr_sdk.producer import DEFAULT_MAX_BYTES
from leafcuttr_sdk.records import Appended, Fetched, NewBatch, Produced, RawRead, Record
from leafcuttr_sdk.types import Clock, TopicPartition

if TYPE_CHECKING:
    import os

    import trio

    from leafcuttr_sdk.authentication import Authentication
    from leafcuttr_sdk.children import Child
    from leafcuttr_sdk.cluster import Cluster
    from leafcuttr_sdk.consumer import Consumer
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.filters import FilterChain
    from leafcuttr_sdk.groups import Groups
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.metrics import Metrics
    from leafcuttr_sdk.peers import Peer
    from leafcuttr_sdk.producer import Producer
    from leafcuttr_sdk.schemas import SchemaFormat, SchemaProvider
    from leafcuttr_sdk.security import Security
    from leafcuttr_sdk.serving import Handler
    from leafcuttr_sdk.settings import Settings
    from leafcuttr_sdk.topics import Topics
    from leafcuttr_sdk.transactions import TransactionalProducer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EARLIEST = -2
"""In the place of a time: the log start offset."""
LATEST = -1
"""In the place of a time: the high watermark."""


class Broker(Protocol):
    """One plugin's view of the broker that runs it: the same object for all hooks and services of the plugin, and
    another one in every other broker of the process. It may be the key of a `WeakKeyDictionary`."""

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
        """This broker's id, and where it listens."""
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
    def schema_formats(self) -> "Mapping[str, SchemaFormat]":
        """The formats of schemas that all plugins bring which are on, by name. They are there once services run."""
        ...

    @property
    def schemas(self) -> "SchemaProvider | None":
        """The schema registry that a plugin brings; None without one. It is there once services run."""
        ...

    @property
    def security(self) -> "Security[Broker]":
        """Principals and rights of clients. What is done without it is done as the broker."""
        ...

    @property
    def clock(self) -> Clock:
        """The time of day and the monotonic one. Tests move them by hand."""
        ...

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
        disk. A topic that does not exist is created if `auto.create.topics.enable` allows it. Without a `partition` the
        key decides (Java's murmur2), and without a key the one that the topic's records go to at present.

        Raises BrokerError. Cancelled: the record may have been appended, or not.
        """
        ...

    async def produce_batch(
        self, topic: str, records: Sequence[Record], *, partitions: Sequence[int | None] | None = None
    ) -> "list[Produced | BrokerError]":
        """Append many records, those of each partition as one batch (several where `max.message.bytes` does not allow
        one); an answer for each, in their order. `partitions` has one for each record.

        A record that can never be stored is refused by itself: larger than the topic allows (MessageTooLarge), a time
        outside of its limits (InvalidTimestamp), no key in a compacted topic, a header that has no UTF-8
        (InvalidRecord), a partition that does not exist (UnknownTopicOrPartition). The others of a batch are stored
        together, or refused together with one error, but for those that a validator names (KIP-467): they carry its
        reason, the others say that they were refused because of them. Where the topic has record filters, which may
        change times and keys, these are checked behind them, and named in the same way.

        Raises BrokerError only for an error of the whole topic. Cancelled: any of them may have been appended.
        """
        ...

    def producer(
        self, *, max_bytes: int = DEFAULT_MAX_BYTES, linger_s: float = 0.0
    ) -> "AbstractAsyncContextManager[Producer]":
        """A producer for as long as the context lasts: `send` takes a record without waiting, and what is sent in one
        turn of the loop, or within `linger_s` seconds, is written together. It holds about `max_bytes` of what was sent
        and is not written. Raises ValueError when the context is entered.

        At its end everything that was sent is written, and every receipt is done. So it is when the context is
        cancelled, but within 3 seconds; what could not be written by then may be stored or not, and its receipts raise
        RequestTimedOut.
        """
        ...

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        """Append prebuilt batches, those of one call with one write for each log; an answer for each. Several calls in
        one turn of the loop share their writes too. Filters and validators of the topics see them. Topics are not
        created, and transactional batches are refused: those are for `transaction`.

        Cancelled: any of them may have been appended. What a worker thread is writing already is waited for: the bytes
        are the caller's again when this returns or raises.
        """
        ...

    def transaction(
        self, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> "AbstractAsyncContextManager[TransactionalProducer]":
        """A transactional producer for as long as the context lasts. Its begin fences every producer, plugin or client,
        that has the id, and aborts the transaction of that one; it waits until that is completed. A transaction that
        takes longer than `timeout_ms` is aborted.

        Raises, when it is entered: InvalidRequest for an id that is empty, above 32767 bytes, or none
        that UTF-8 can write; InvalidTransactionTimeout below 1 ms or above
        `transaction.max.timeout.ms`, CoordinatorNotAvailable, StorageError."""
        ...

    async def read_batches(
        self, partition: TopicPartition, offset: int, *, max_bytes: int = 1024 * 1024, committed: bool = False
    ) -> RawRead:
        """Batches from an offset on, as they are stored, at least one if there is one. Does not wait for new ones. With
        `committed` it ends at the last stable offset, and `aborted` names the transactions whose records in it are to
        be skipped (`leafcuttr_sdk.batches.Batch.is_aborted`). Raises BrokerError."""
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

    async def wait_for_records(
        self, positions: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> set[TopicPartition]:
        """Wait until a read from one of the positions would find something or fail (the partition was deleted, or the
        position is none of its offsets), and return those partitions. With `committed`, what an open transaction holds
        back does not count. It costs nothing while it waits."""
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

    def peer(
        self, properties: Mapping[str, str] | None = None, *, strict: bool = False
    ) -> "AbstractAsyncContextManager[Peer]":
        """A cluster of Kafka as one end of a flow, for as long as the context lasts: without properties this broker, in
        process; else the cluster that `bootstrap.servers` leads to, with the properties of Kafka's clients in Java
        (`security.protocol`, `ssl.*`, `sasl.*`, `client.id`...). An address of this broker is a connection to it: see
        `Peer.cluster_id`. Nothing is connected before the first call.

        Raises PluginError, when it is entered, with one line that names the property which cannot be used. One that no
        client of Kafka has draws a line in the log, and is such an error if this is `strict`."""
        ...

    async def serve(
        self,
        prefix: str,
        handler: "Handler",
        *,
        authenticates: bool = False,
        alpn_protocols: Sequence[str] = (),
        refusal: bytes = b"",
        task_status: "trio.TaskStatus[Any]" = ...,
    ) -> None:
        """Serve a listener with the settings of `serving_settings(prefix, ...)` until cancelled: accept connections, do
        their TLS, and call `handler` for each with a `ByteStream`, in a task of its own. What a connection or its
        handler does wrong ends that connection only. `task_status.started()` is called with the `Listening` once the
        listener is open; with a port of -1 and no Unix socket there is nothing to open, and it waits.

        At the end it takes no more connections, and lets handlers finish what they have begun: see
        `leafcuttr_sdk.Handler`. `authenticates` as for `listen`. `alpn_protocols` are what TLS offers clients, the
        preferred one first. `refusal` is sent before a connection above `<prefix>.max.connections` is closed, unless it
        is to speak TLS. Raises PluginError as `listen`, and KeyError for a setting that was not declared.
        """
        ...

    def listen(self, prefix: str, *, authenticates: bool = False) -> "AbstractAsyncContextManager[Listening]":
        """Bound sockets of a listener with the settings of `listener_settings(prefix, ...)`, closed at the end: for a
        server that accepts connections itself. `serve` does that, and takes care of what clients do wrong. A
        listener that every host can reach without authentication draws one warning, unless `authenticates`. Raises
        AddressTakenError, and PluginError for what else is wrong (a certificate cannot be read), with one line."""
        ...

    async def run_in_worker(
        self, function: Callable[[*Ts], T], *arguments: *Ts, deadline_s: float, memory_bytes: int
    ) -> T:
        """Run `function(*arguments)` in another process, and return what it returns: for what may take long, need much
        memory, hold the interpreter or crash. The function is one that a module defines at its top level, and is sent
        as its name; arguments and result are pickled. The process imports that module, and has nothing of the broker.

        There are a few such processes for all plugins of a broker (as many as processors, 2 to 4), started at the first
        calls and kept for the next ones: a call in one that knows the function costs 0.1 ms. Calls that find no free
        one wait in the order in which they came. `deadline_s` counts from when a process takes the call; its start and
        the first import of the module (a minute at most) do not count, neither does waiting. `memory_bytes` is by how
        much the address space of the process may grow for the call, its arguments and its result: stacks of threads
        and mapped files count. Over one of the two the process ends before the error is raised, with those that the
        function has started, and the next call finds another one. The broker's end, also by SIGKILL, ends them all.

        Raises what the function raises, with its traceback as a note; WorkerRaisedError if that cannot be pickled;
        WorkerDeadlineError, WorkerMemoryError; WorkerDiedError for a process that ended by itself; WorkerTransferError
        for a function, argument or result that cannot be sent; ValueError for a limit that is not above 0. Arguments
        must not be changed until it returns. Cancelled: the process is ended, so what the function has done by then
        is done.
        """
        ...

    def child(
        self,
        name: str,
        command: "Sequence[str | os.PathLike[str]]",
        *,
        environment: Mapping[str, str | None] | None = None,
        folder: "str | os.PathLike[str] | None" = None,
        stop_s: float = 10.0,
        memory_bytes: int | None = None,
        restart: Restart = Restart.ALWAYS,
        final_statuses: Collection[int] = (),
    ) -> "AbstractAsyncContextManager[Child]":
        """Run a program beside the broker for as long as the context lasts. `name` is for the log, `/health`
        (`child:<plugin>:<name>`) and metrics; no two children of a plugin have one at a time.

        It has the broker's environment but for `KAFKA_*`, and what `environment` sets or, by None, takes out; it runs
        in `folder`, and reads nothing (`/dev/null`). What it prints goes into the log of the plugin line by line: a
        longer line is cut at 2000 characters, and of more than 1000 at once, or 100 a second for longer, the rest is
        left out and counted. One that prints more than the broker reads waits.

        It is started again when it ends (`restart`), after the pauses that failing services have: half a second at
        first, a minute at most; but not with one of `final_statuses`, by which a program says that it would end in the
        same way again. Once it ends, what it has started ends too, also what has left its process group; as it
        does when all of them together have more than `memory_bytes`, of which they share is counted once. That is
        checked twice a second, and for short of memory the kernel ends them before the broker.

        At the end of the context it gets SIGTERM, it alone, and after `stop_s` seconds it and all that it has started
        are killed. A broker that stops waits for that, beyond what its services may take. A broker that ends in any
        other way, by SIGKILL too, takes all of them with it at once.

        Raises, when it is entered: ChildError where the program cannot be started, ValueError for a name that is taken,
        an empty command, or a limit that is not above 0."""
        ...

    async def record_filters(self, names: Sequence[str], topic: str) -> "FilterChain":
        """The record filters of these names, whatever plugins they are of, in this order, for records of a topic that
        need not be one of this broker. They are instances of their own, outside of the topic's chain; those that route
        are allowed (`TopicContext.routes`). They have the settings of the topic of this name, or of one that sets
        nothing. They are made by a worker thread, as some import what is heavy.

        Raises PluginError with one line: there is no filter of a name, or it cannot be made. Cancelled: nothing of them
        is left."""
        ...

    def authentication(self, prefix: str, *, listeners: Sequence[str] = ()) -> "Authentication":
        """How clients of a service authenticate, from the settings of `authentication_settings(prefix, ...)`. Call it
        when the service is made. `listeners` are the prefixes of its listeners; of none it has the one of `prefix`.
        Raises PluginError with one line: there is no such authenticator, or none for one of
        the ways, or no listener that requests certificates although these are one."""
        ...
