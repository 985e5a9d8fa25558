"""A `PeerReader` over the network, on trio: one task for each leader, which fetches from it, and one that looks leaders
up. What is read, and how far, is `assignment`'s.

Every leader has its share of `max_bytes`: it sends at most so much, and the next fetch goes out once that is handed
out. While nothing is there a fetch waits at the broker for `fetch.max.wait.ms`, less while partitions may come to it
that it does not name.
"""

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.codes import LATER, NEW_LEADER
from leafcuttr.client.errors import ClientError
from leafcuttr.client.fetching.assignment import Assignment, Unconfirmed, Wanted
from leafcuttr.client.leaders import Led, look_up
from leafcuttr.client.offsets import epoch_answers, epoch_request
from leafcuttr.client.retrying import RetryPauses
from leafcuttr.client.rights import topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition

_NAMES: Final = 12
"""The last version of Fetch that names topics instead of their ids."""
_FULL_FETCHES: Final = -1
"""The session epoch of fetches without a session (KIP-227)."""
_SHORT_WAIT_MS: Final = 50
_LANES: Final = itertools.count()


@asynccontextmanager
async def open_reader(
    calls: Calls, *, committed: bool, max_bytes: int, partition_bytes: int
) -> AsyncIterator["RemoteReader"]:
    """See `leafcuttr_sdk.peers.Peer.reader`."""
    async with open_block_nursery() as nursery:
        reader = RemoteReader(calls, nursery, committed, max_bytes, partition_bytes)
        nursery.start_soon(reader.find_leaders)
        try:
            yield reader
        finally:
            reader.disconnect()


class RemoteReader:
    """See `leafcuttr_sdk.peers.PeerReader`."""

    def __init__(
        self, calls: Calls, nursery: trio.Nursery, committed: bool, max_bytes: int, partition_bytes: int
    ) -> None:
        self._calls = calls
        self._cluster = calls.cluster
        self._nursery = nursery
        self._committed = committed
        self._max_bytes = max(max_bytes, 1)
        self._partition_bytes = max(partition_bytes, 1)
        self._assignment = Assignment(committed=committed)
        self._fetching: set[int] = set()
        # A connection answers in order: a long poll of one reader would hold up the fetches of another.
        self._lane = f"fetch {next(_LANES)}"
        self._changed = trio.Event()
        self._arrived = trio.Event()
        self._reading = False

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._assignment.assign(positions)
        self._change()

    def unassign(self, *partitions: TopicPartition) -> None:
        self._assignment.unassign(partitions)
        self._change()

    def pause(self, *partitions: TopicPartition) -> None:
        self._assignment.pause(partitions, paused=True)
        self._change()

    def resume(self, *partitions: TopicPartition) -> None:
        self._assignment.pause(partitions, paused=False)
        self._change()
        self._arrive()

    async def read(self) -> Sequence[PeerRead]:
        if self._reading:
            raise trio.BusyResourceError("another task reads")
        self._reading = True
        try:
            await trio.lowlevel.checkpoint()
            while not (taken := self._assignment.take()):
                await self._arrived.wait()
            self._change()
            return taken
        finally:
            self._reading = False

    def disconnect(self) -> None:
        """At its end: the answer to a long poll is not waited for."""
        self._cluster.drop_lane(self._lane)

    # --- tasks ----------------------------------------------------------------------------------------------

    async def find_leaders(self) -> None:
        """Look up the leaders of partitions that have none, and have them confirm what was read. Every
        `metadata.max.age.ms` look at all of them: where Fetch names topics, one that was created anew is read on as if
        it were the same."""
        backoff = RetryPauses(self._calls.settings)
        fresh_until = trio.current_time() + self._calls.settings.metadata_max_age_s
        while True:
            unknown = self._assignment.leaderless()
            if trio.current_time() >= fresh_until:
                unknown = self._assignment.readable()
                fresh_until = trio.current_time() + self._calls.settings.metadata_max_age_s
            if not unknown and not self._assignment.unconfirmed():
                backoff.reset()
                self._start_fetching()
                with trio.move_on_at(fresh_until):
                    await self._changed.wait()
                continue
            try:
                if unknown:
                    self._learn(await look_up(self._calls, unknown, Operation.READ))
                await self._confirm(self._assignment.unconfirmed())
            except ClientError:
                pass  # `Cluster.trouble` says it
            except BrokerError as error:
                if error.code not in NEW_LEADER | LATER:
                    for tp in unknown:
                        self._assignment.missed(tp, error, for_good=False)
            self._arrive()
            self._start_fetching()
            self._change()
            if self._assignment.leaderless() or self._assignment.unconfirmed():
                await backoff.wait()

    def _learn(self, found: Mapping[TopicPartition, Led | BrokerError]) -> None:
        for tp, led in found.items():
            if isinstance(led, Led):
                self._assignment.learn(tp, led)
            elif led.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._assignment.missed(tp, led, for_good=False)
            elif led.code not in NEW_LEADER | LATER:
                self._assignment.missed(tp, led, for_good=True)

    async def _confirm(self, unconfirmed: Iterable[Unconfirmed]) -> None:
        by_node: dict[int, dict[TopicPartition, Unconfirmed]] = {}
        for one in unconfirmed:
            by_node.setdefault(one.node, {})[one.partition] = one
        for node, asked in by_node.items():
            request = epoch_request({tp: (one.epoch, one.leader_epoch) for tp, one in asked.items()})
            try:
                response = await self._cluster.request(request, node=node, reach_s=self._patience_s)
            except (ClientError, BrokerError):
                self._assignment.lost(node)
                raise
            for tp, code, (epoch, end) in epoch_answers(response):
                if (wanted := asked.get(tp)) is None:
                    continue
                if not code:
                    self._assignment.confirm(wanted, epoch, end)
                elif code in NEW_LEADER:
                    self._assignment.forget(wanted)
                elif code not in LATER:
                    self._assignment.missed(
                        tp, topic_refusal(code, tp, tp.topic, Operation.READ), for_good=True
                    )

    def _start_fetching(self) -> None:
        for node in self._assignment.nodes() - self._fetching:
            self._fetching.add(node)
            self._nursery.start_soon(self._fetch_from, node)

    async def _fetch_from(self, node: int) -> None:
        """Fetch from one leader, for as long as it leads something that is read."""
        backoff = RetryPauses(self._calls.settings)
        try:
            while node in self._assignment.nodes():
                wanted = self._assignment.to_fetch(node)
                if wanted is None:
                    await self._changed.wait()
                    continue
                try:
                    response = await self._fetch(node, wanted)
                except (ClientError, BrokerError):
                    self._assignment.lost(node)
                    self._change()
                    return
                if self._take(wanted, response):
                    backoff.reset()
                else:
                    await backoff.wait()
        finally:
            self._fetching.discard(node)

    async def _fetch(self, node: int, wanted: Sequence[Wanted]) -> FetchResponse:
        settings = self._calls.settings
        wait_ms = int(settings.fetch_max_wait_s * 1000)
        if self._assignment.leaves_some(node, len(wanted)):
            wait_ms = min(wait_ms, _SHORT_WAIT_MS)
        topics: dict[tuple[str, bytes], list[FetchPartition]] = {}
        for one in wanted:
            topics.setdefault((one.partition.topic, one.topic_id), []).append(
                FetchPartition(
                    partition=one.partition.partition,
                    current_leader_epoch=one.leader_epoch,
                    fetch_offset=one.offset,
                    partition_max_bytes=self._partition_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=max(self._max_bytes // max(len(self._fetching), 1), 1),
            isolation_level=int(self._committed),
            session_epoch=_FULL_FETCHES,
            topics=[
                FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
                for (name, topic_id), partitions in topics.items()
            ],
        )
        has_ids = all(topic_id != ZERO_UUID for _, topic_id in topics)
        response: FetchResponse = await self._cluster.request(
            request,
            node=node,
            at_most=None if has_ids else _NAMES,
            timeout_s=settings.request_timeout_s + settings.fetch_max_wait_s,
            reach_s=self._patience_s,
            lane=self._lane,
        )
        return response

    def _take(self, wanted: Sequence[Wanted], response: FetchResponse) -> bool:
        """False for what is to be tried again after a pause."""
        if response.error_code:
            return False
        by_name = {(one.partition.topic, one.partition.partition): one for one in wanted}
        by_id = {(one.topic_id, one.partition.partition): one for one in wanted}
        well = True
        for topic in response.responses:
            for data in topic.partitions:
                key: Any = (topic.topic or topic.topic_id, data.partition_index)
                one = by_name.get(key) if topic.topic else by_id.get(key)
                size = len(data.records) if isinstance(data.records, memoryview) else 0
                if size > self._partition_bytes:
                    # A batch is larger than was allowed: with less than it takes, a fetch has one partition only.
                    self._partition_bytes = min(size, self._max_bytes)
                if one is not None:
                    well = self._assignment.found(one, data) and well
        self._arrive()
        if self._assignment.leaderless():
            self._change()
        return well

    @property
    def _patience_s(self) -> float:
        """How long a leader may be out of reach until another one is looked up."""
        return self._calls.settings.retry_backoff_max_s

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _arrive(self) -> None:
        self._arrived.set()
        self._arrived = trio.Event()
