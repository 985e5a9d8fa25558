"""One plugin's view of the broker: composed of parts that know nothing of each other."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import trio

from leafcuttr.plugins.facade.cluster import ClusterView
from leafcuttr.plugins.facade.groups import GroupsView
from leafcuttr.plugins.facade.producing import Producing
from leafcuttr.plugins.facade.reading import Reading
from leafcuttr.plugins.facade.topics import TopicsView
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.identity import of_plugin
from leafcuttr_sdk import Clock
from leafcuttr_sdk.children import Restart
from leafcuttr_sdk.producer import DEFAULT_MAX_BYTES

if TYPE_CHECKING:
    import os

    from leafcuttr.plugins.facade.producer.unread import UnreadFailures
    from leafcuttr_sdk import (
        Authentication,
        Broker,
        Child,
        Cluster,
        Consumer,
        FilterChain,
        Groups,
        Handler,
        Listening,
        Metrics,
        Producer,
        SchemaFormat,
        SchemaProvider,
        Security,
        Settings,
        Topics,
        TransactionalProducer,
    )
    from leafcuttr_sdk.peers import Peer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Listen = Callable[..., "AbstractAsyncContextManager[Listening]"]
"""Of the parameters of `leafcuttr_sdk.Broker.listen`."""
Serve = Callable[..., Awaitable[None]]
"""Of the parameters of `leafcuttr_sdk.Broker.serve`."""
MakeSecurity = Callable[["BrokerView"], "Security[Broker]"]
"""Of a view: its part `security`."""


class BrokerView:
    """See `leafcuttr_sdk.Broker`."""

    def __init__(
        self,
        core: Core,
        name: str,
        settings: "Settings | None",
        metrics: "Metrics | None",
        listen: Listen | None,
        serve: Serve | None,
        secure: "MakeSecurity",
    ) -> None:
        self._core = core
        self._name = name
        self._client = of_plugin(name)
        self._settings = settings
        self._metrics = metrics
        self.logger = logging.getLogger(f"leafcuttr.plugin.{name}")
        self.topics: Topics = TopicsView(core, name)
        self.groups: Groups = GroupsView(core)
        self.cluster: Cluster = ClusterView(core)
        self._unread: UnreadFailures | None = None
        self._security: Security[Broker] | None = None
        self._sees: Callable[[str], bool] | None = None
        self._with(Producing(core, name), Reading(core))
        self._listen = listen
        self._serve = serve
        self._secure = secure

    def _with(self, producing: Producing, reading: Reading) -> None:
        self._producing, self._reading = producing, reading
        self.produce = producing.produce
        self.produce_batch = producing.produce_batch
        self.append = producing.append
        self.read_batches = reading.read_batches
        self.fetch = reading.fetch
        self.wait_for_records = reading.wait_for_records
        self.offsets = reading.offsets

    @property
    def security(self) -> "Security[Broker]":
        found = self._security
        if found is None:
            found = self._security = self._secure(self)
        return found

    @property
    def clock(self) -> Clock:
        return self._core.clock

    @property
    def schema_formats(self) -> "Mapping[str, SchemaFormat]":
        return self._core.plugged.schema_formats

    @property
    def schemas(self) -> "SchemaProvider | None":
        found = self._core.plugged.schema_provider
        return None if found is None else found[1]

    @property
    def settings(self) -> "Settings":
        return _given(self._settings, "settings")

    @property
    def metrics(self) -> "Metrics":
        return _given(self._metrics, "metrics")

    def producer(
        self, *, max_bytes: int = DEFAULT_MAX_BYTES, linger_s: float = 0.0
    ) -> "AbstractAsyncContextManager[Producer]":
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.facade.producer.producer")
        from leafcuttr.plugins.facade.producer.producer import open_producer
        from leafcuttr.plugins.facade.producer.unread import UnreadFailures

        if self._unread is None:
            self._unread = UnreadFailures(self.logger)
        return open_producer(self._core, self._producing, self._unread, max_bytes, linger_s)

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
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.facade.consumer.consumer")
        from leafcuttr.plugins.facade.consumer.consumer import open_consumer
        from leafcuttr.plugins.facade.consumer.options import ConsumerOptions

        options = ConsumerOptions(
            group=group,
            client=self._client._replace(client_id=client_id) if client_id else self._client,
            auto_offset_reset=auto_offset_reset,
            session_timeout_ms=session_timeout_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            instance_id=instance_id,
            committed=committed,
        )
        opening = open_consumer(self._core, self.fetch, options, self.logger, topics, pattern, self._sees)
        return self._member(group, opening)

    def _member(
        self, group: str, opening: "AbstractAsyncContextManager[Consumer]"
    ) -> "AbstractAsyncContextManager[Consumer]":
        """The consumer as it is given out."""
        return opening

    def transaction(
        self, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> "AbstractAsyncContextManager[TransactionalProducer]":
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.facade.transactions")
        from leafcuttr.plugins.facade.transactions import open_producer

        return open_producer(self._core, self._producing, self.logger, transactional_id, timeout_ms)

    def peer(
        self, properties: Mapping[str, str] | None = None, *, strict: bool = False
    ) -> "AbstractAsyncContextManager[Peer]":
        if properties is not None:
            self._core.runtime.descriptors.import_late("leafcuttr.client.peer")
            from leafcuttr.client.peer import open_remote_peer

            return open_remote_peer(properties, clock=self._core.clock, logger=self.logger, strict=strict)
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.facade.peer.peer")
        from leafcuttr.plugins.facade.peer.peer import PeerParts, open_in_process_peer

        return open_in_process_peer(
            PeerParts(self._core, self._name, self.logger, self._producing, self.transaction)
        )

    def listen(self, prefix: str, *, authenticates: bool = False) -> "AbstractAsyncContextManager[Listening]":
        return _given(self._listen, "listeners")(prefix, authenticates=authenticates)

    async def serve(
        self,
        prefix: str,
        handler: "Handler",
        *,
        authenticates: bool = False,
        alpn_protocols: Sequence[str] = (),
        refusal: bytes = b"",
        task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        serve = _given(self._serve, "listeners")
        await serve(
            prefix,
            handler,
            authenticates=authenticates,
            alpn_protocols=alpn_protocols,
            refusal=refusal,
            task_status=task_status,
        )

    async def run_in_worker(
        self, function: Callable[[*Ts], T], *arguments: *Ts, deadline_s: float, memory_bytes: int
    ) -> T:
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.worker_processes.pool")
        from leafcuttr.plugins.worker_processes.pool import run_in_worker

        result: T = await run_in_worker(
            self._core, self._name, function, arguments, deadline_s=deadline_s, memory_bytes=memory_bytes
        )
        return result

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
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.children.supervised")
        from leafcuttr.plugins.children.supervised import ChildOptions, open_child

        options = ChildOptions(
            name,
            tuple(command),
            environment or {},
            folder,
            stop_s,
            memory_bytes,
            restart,
            frozenset(final_statuses),
        )
        return open_child(self._core.plugged, self._name, options)

    async def record_filters(self, names: Sequence[str], topic: str) -> "FilterChain":
        from leafcuttr.plugins.filters import record_filters

        return await record_filters(self._core, names, topic)

    def authentication(self, prefix: str, *, listeners: Sequence[str] = ()) -> "Authentication":
        from leafcuttr.plugins.authentication import authentication_of

        return authentication_of(self._core.plugged, self.settings, prefix, listeners, core=self._core)


def _given(part: T | None, name: str) -> T:
    if part is None:
        raise RuntimeError(f"this view of the broker was made without {name}")
    return part
