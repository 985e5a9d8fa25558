"""A cluster over the network, on trio: which broker gets a request, and what is known of the cluster.

    async with open_cluster(settings) as cluster:
        node = await cluster.leader(TopicPartition("orders", 0))
        response = await cluster.request(ListOffsetsRequest(...), node=node)

Nothing is connected before the first request. Requests to one broker are pipelined on one connection; those that a
broker may hold back (Fetch, JoinGroup, SyncGroup) have connections of their own, since answers come in order. A request
waits for its broker to be reached again, until its time is over; once it is sent it is sent once: what becomes of
ConnectionLost and TimedOut is for the caller to say, who knows whether it may be sent twice.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Final

import trio

from leafcuttr.client.connection import ClientConnection
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET
from leafcuttr.client.errors import ClientError, ConnectionLost, TimedOut, Unreachable, refusal
from leafcuttr.client.links import Link, Links
from leafcuttr.client.protocol import VersionRanges, api_of
from leafcuttr.client.rights import said, topic_refusal
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr.wire.api import Api, ApiKey
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import Clock, TopicPartition

_ORDINARY: Final = ""
_ANSWER_S: Final = 0.1
"""With less time left a lookup is not repeated: a request that is late costs the connection."""
_LANES: Final = {ApiKey.FETCH: "fetch", ApiKey.JOIN_GROUP: "group", ApiKey.SYNC_GROUP: "group"}


@asynccontextmanager
async def open_cluster(settings: ClientSettings, *, clock: Clock) -> "AsyncIterator[RemoteCluster]":
    """Its connections are closed at the end. What the body raises is raised as it is, in no group. The clock says how
    old metadata is; waits are trio's.

    Where it is cancelled from outside, connections last as long as the body: what that does before it ends, to leave a
    group or to abort a transaction, needs them."""
    kept = _KeptNursery()
    async with open_block_nursery() as nursery:
        nursery.start_soon(kept.run)
        try:
            yield RemoteCluster(settings, clock, await kept.opened())
        finally:
            kept.scope.cancel()


class _KeptNursery:
    """A nursery that only its own scope ends. Not by `Nursery.start`: where that is cancelled it waits without end for
    what is shielded."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope(shield=True)
        self._nursery: trio.Nursery | None = None
        self._opened = trio.Event()

    async def run(self) -> None:
        with self.scope:
            async with trio.open_nursery() as self._nursery:
                self._opened.set()
                await trio.sleep_forever()

    async def opened(self) -> trio.Nursery:
        await self._opened.wait()
        assert self._nursery is not None
        return self._nursery


class RemoteCluster:
    """Any number of tasks may use it. Every call raises ClientError, and BrokerError with Kafka's code where a broker
    says no; `timeout_s` is how long the whole call may take, `request.timeout.ms` if it is not given.

    The error codes in responses of `request` are for its caller.
    """

    def __init__(self, settings: ClientSettings, clock: Clock, nursery: trio.Nursery) -> None:
        self.settings = settings
        self.cluster_id: str | None = None
        """Known once there is metadata; None of brokers that have no id."""
        self.nodes: dict[int, HostPort] = {}
        """The brokers by id, as they advertise themselves; empty before there is metadata."""
        self._clock = clock
        self._links = Links(settings, nursery)
        self._controller: int | None = None
        self._leaders: dict[TopicPartition, tuple[int, float]] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._fetched_at: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._finding_leaders = trio.Lock()

    @property
    def trouble(self) -> str | None:
        """What is wrong with the cluster now, in one line; None while it answers."""
        return self._links.trouble

    async def request(
        self,
        request: Any,
        *,
        node: int | None = None,
        at_least: int = 0,
        at_most: int | None = None,
        timeout_s: float | None = None,
        reach_s: float | None = None,
        lane: str | None = None,
    ) -> Any:
        """The response of a broker, of any one if `node` is None. `at_least` and `at_most` are the versions that can
        carry the request; requests of one `lane` share a connection. `reach_s` is how long a broker that cannot be
        reached is tried again, `timeout_s` if it is not given. Over an open connection requests go out in the order in
        which tasks call this."""
        api = api_of(request)
        timeout_s = self.settings.request_timeout_s if timeout_s is None else timeout_s
        deadline = trio.current_time() + timeout_s
        chosen = _LANES.get(api.key, _ORDINARY) if lane is None else lane  # type: ignore[call-overload]
        patience = deadline if reach_s is None else min(deadline, trio.current_time() + reach_s)
        connection = await self._connection(node, chosen, patience)
        response = connection.request(
            request, at_least=at_least, at_most=at_most, timeout_s=max(deadline - trio.current_time(), 0)
        )
        return await self._noted(connection, api, response, timeout_s)

    def send_now(
        self, request: Any, *, node: int, at_most: int | None = None
    ) -> "Callable[[], Awaitable[Any]] | None":
        """Send a request over the open connection to a broker, behind all that were sent before, and return what waits
        for the response; None where `request` would have to wait first. Raises ApiNotOffered, WireError."""
        api = api_of(request)
        address = self.nodes.get(node)
        if address is None:
            return None
        connection = self._links.to(address, _LANES.get(api.key, _ORDINARY)).open_connection  # type: ignore[call-overload]
        waiting = None if connection is None else connection.send_now(request, at_most=at_most)
        if connection is None or waiting is None:
            return None
        timeout_s = self.settings.request_timeout_s
        deadline = trio.current_time() + timeout_s

        def response() -> Awaitable[Any]:
            return self._noted(connection, api, connection.response(waiting, timeout_s, deadline), timeout_s)

        return response

    async def _noted(
        self, connection: ClientConnection, api: Api, response: Awaitable[Any], timeout_s: float
    ) -> Any:
        """The response, and whether the broker answers."""
        try:
            found = await response
        except TimedOut:
            error = TimedOut(f"{connection.address} does not answer {api.name} within {timeout_s:g} seconds")
            self._links.fails(connection.address, error)
            raise error from None
        self._links.works(connection.address)
        return found

    def drop_lane(self, lane: str) -> None:
        """Close the connections of this lane, with what is under way on them."""
        self._links.drop(lane, ConnectionLost("the connection is not needed any more"))

    async def versions(self, node: int | None = None, *, timeout_s: float | None = None) -> VersionRanges:
        """By API key the lowest and the highest version that a broker offers."""
        timeout_s = self.settings.request_timeout_s if timeout_s is None else timeout_s
        return (await self._connection(node, _ORDINARY, trio.current_time() + timeout_s)).versions

    async def metadata(
        self, topics: Sequence[str] | None = None, *, timeout_s: float | None = None
    ) -> MetadataResponse:
        """Of these topics, or of all; creates nothing. What it says of brokers and leaders is remembered."""
        wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
        # Below 4 a request cannot say that nothing shall be created.
        response: MetadataResponse = await self.request(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False), at_least=4, timeout_s=timeout_s
        )
        if response.error_code:
            raise refusal(response.error_code)
        self._learn(response)
        return response

    async def leader(self, tp: TopicPartition, *, timeout_s: float | None = None) -> int:
        """The broker that leads a partition. Raises UnknownTopicOrPartition, TopicAuthorizationFailed, and
        LEADER_NOT_AVAILABLE where it has none now; callers that wait for one ask again."""
        timeout_s = self.settings.request_timeout_s if timeout_s is None else timeout_s
        found: int | BrokerError | None = self._known_leader(tp)
        if found is None:
            with trio.move_on_after(timeout_s):
                found = await self._find_leader(tp, timeout_s)
        if found is None:
            raise TimedOut(
                self.trouble or f"no broker says within {timeout_s:g} seconds which one leads {tp}"
            )
        if isinstance(found, BrokerError):
            raise found
        return found

    async def _find_leader(self, tp: TopicPartition, timeout_s: float) -> int | BrokerError:
        """One request at a time, for all the topics that are wanted meanwhile."""
        self._wanted.add(tp.topic)
        async with self._finding_leaders:
            if (known := self._known_leader(tp)) is not None:
                return known
            age = self._clock.monotonic() - self._fetched_at.get(tp.topic, -inf)
            if age < self.settings.retry_backoff_s:
                await trio.sleep(self.settings.retry_backoff_s - age)
            topics, self._wanted = sorted({tp.topic, *self._wanted}), set()
            response = await self.metadata(topics, timeout_s=timeout_s)
        known = self._known_leader(tp)
        return _no_leader(tp, response) if known is None else known

    def forget_leader(self, tp: TopicPartition) -> None:
        """It is another one now: the next call finds it out."""
        self._leaders.pop(tp, None)

    async def coordinator(
        self, kind: int, key: str, *, timeout_s: float | None = None, needs: Operation = Operation.DESCRIBE
    ) -> int:
        """The broker that coordinates a group or a transactional id (`CoordinatorKind`). What it is to be asked for
        `needs` this right, of which the one to find it is a part."""
        timeout_s = self.settings.request_timeout_s if timeout_s is None else timeout_s
        deadline = trio.current_time() + timeout_s
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        while (known := self._coordinators.get((kind, key))) is None:
            left = deadline - trio.current_time()
            answer = await self.request(request, at_least=1 if kind else 0, timeout_s=left)
            found = answer.coordinators[0] if answer.coordinators else answer
            if not found.error_code:
                self.nodes[found.node_id] = HostPort(found.host, found.port)
                self._coordinators[kind, key] = found.node_id
            elif (
                found.error_code in COORDINATOR_NOT_YET
                and deadline - trio.current_time() > self.settings.retry_backoff_s + _ANSWER_S
            ):
                await trio.sleep(self.settings.retry_backoff_s)
            else:
                raise refusal(found.error_code, said(found.error_code, found.error_message, key, needs))
        return known

    def forget_coordinator(self, kind: int, key: str) -> None:
        """It is another one now: the next call finds it out."""
        self._coordinators.pop((kind, key), None)

    async def controller(self, *, timeout_s: float | None = None) -> int:
        """The broker that takes requests to create, change and delete topics; with KRaft any broker does."""
        if self._controller is None:
            await self.metadata([], timeout_s=timeout_s)
        if self._controller is None:
            raise refusal(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self._controller

    def forget_controller(self) -> None:
        """It is another one now: the next call finds it out."""
        self._controller = None

    async def _connection(self, node: int | None, lane: str, deadline: float) -> ClientConnection:
        """A connection that is open. Tries until the deadline what may pass; raises what went wrong last."""
        last: ClientError | None = None
        with trio.move_on_at(deadline):
            while last is None or last.passes:
                links = await self._links_to(node, lane, again=last is not None)
                for link in sorted(links, key=_first_open_then_longest_ago):
                    try:
                        return await self._connected(link)
                    except ClientError as error:
                        if last is None or last.passes:
                            last = error
        raise last or TimedOut(f"no broker answers at {self._name(node)} in time")

    async def _connected(self, link: Link) -> ClientConnection:
        try:
            connection = await link.connected()
        except ClientError as error:
            self._links.fails(link.address, error)
            raise
        self._links.works(link.address)
        return connection

    async def _links_to(self, node: int | None, lane: str, *, again: bool) -> list[Link]:
        if node is None:
            known = [*self.nodes.values(), *self.settings.bootstrap]
            return [self._links.to(address, lane) for address in dict.fromkeys(known)]
        if node not in self.nodes or again:
            await self._find(node)
        return [self._links.to(self.nodes[node], lane)]

    async def _find(self, node: int) -> None:
        """Where the broker is now. One that did not answer may have another address."""
        try:
            await self.metadata([])
        except ClientError:
            if node not in self.nodes:
                raise
        if node not in self.nodes:
            there = ", ".join(map(str, sorted(self.nodes)))
            raise Unreachable(f"there is no broker {node}; there are {there}")

    def _name(self, node: int | None) -> str:
        return self.settings.servers if node is None else str(self.nodes.get(node, f"broker {node}"))

    def _known_leader(self, tp: TopicPartition) -> int | None:
        found = self._leaders.get(tp)
        if found is None or self._clock.monotonic() - found[1] > self.settings.metadata_max_age_s:
            return None
        return found[0]

    def _learn(self, response: MetadataResponse) -> None:
        now = self._clock.monotonic()
        if response.brokers:
            self.nodes = {broker.node_id: HostPort(broker.host, broker.port) for broker in response.brokers}
            there = {*self.nodes.values()}
            self._links.forgive(set(self.settings.bootstrap) - there)
            self._links.keep(
                there | set(self.settings.bootstrap), Unreachable("the broker is no more in the cluster")
            )
        self.cluster_id = response.cluster_id
        self._controller = response.controller_id if response.controller_id >= 0 else None
        for topic in response.topics:
            if topic.name is None:
                continue
            self._fetched_at[topic.name] = now
            for part in topic.partitions:
                tp = TopicPartition(topic.name, part.partition_index)
                if part.leader_id >= 0:
                    self._leaders[tp] = part.leader_id, now
                else:
                    self._leaders.pop(tp, None)


def _first_open_then_longest_ago(link: Link) -> tuple[bool, float]:
    return not link.is_open, link.not_before


def _no_leader(tp: TopicPartition, response: MetadataResponse) -> BrokerError:
    topic = next((topic for topic in response.topics if topic.name == tp.topic), None)
    if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {tp.topic}")
    if topic.error_code:
        return topic_refusal(topic.error_code, tp.topic, tp.topic, Operation.DESCRIBE)
    if tp.partition not in {part.partition_index for part in topic.partitions}:
        return refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp.topic} has no partition {tp.partition}")
    return refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader now")
