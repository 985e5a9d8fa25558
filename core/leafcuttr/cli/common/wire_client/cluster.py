"""Which broker gets a request: any, the leader of a partition, the coordinator of a group or transactional id."""

import time
from collections.abc import Callable, Container, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from leafcuttr.cli.common.client_properties import settings_of
from leafcuttr.cli.common.failures import AGAIN_S, Failure, reason
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.connection import BrokerConnection
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET, CoordinatorKind
from leafcuttr.client.settings import ClientSettings
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from leafcuttr_sdk.types import TopicPartition


class BrokerAddress(NamedTuple):
    """A broker as the cluster advertises it."""

    id: int
    host: str
    port: int
    rack: str | None


class ClusterClient:
    """Connections to the brokers of a cluster, made when they are needed.

    Raises Failure from every method; `target.address` may name several brokers, of which the first that answers is
    taken. Raises click.UsageError for settings that cannot be used.
    """

    def __init__(self, target: Target) -> None:
        self.timeout = target.timeout
        self._settings = settings_of(target)
        self._by_id: dict[int, BrokerConnection] = {}
        self._brokers: dict[int, BrokerAddress] | None = None
        self._coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self._first = _first_that_answers(self._settings, target.timeout)

    def __enter__(self) -> "ClusterClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in (self._first, *self._by_id.values()):
            connection.close()

    @property
    def first(self) -> BrokerConnection:
        """The connection to the broker that answered first, for what any broker can answer."""
        return self._first

    def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Metadata of these topics, or of all; the request creates nothing."""
        wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
        # Below 4 a request cannot say that nothing shall be created.
        found: MetadataResponse = self._first.send(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False), at_least=4
        )
        self._brokers = {
            broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in found.brokers
        }
        return found

    def brokers(self) -> dict[int, BrokerAddress]:
        """The brokers by id, in the order of their ids."""
        if self._brokers is None:
            self.metadata([])
        assert self._brokers is not None
        return dict(sorted(self._brokers.items()))

    def connection(self, broker_id: int) -> BrokerConnection:
        """The connection to one broker, at its advertised address."""
        found = self._by_id.get(broker_id)
        if found is None:
            brokers = self.brokers()
            if broker_id not in brokers:
                raise Failure(f"there is no broker {broker_id}; there are {', '.join(map(str, brokers))}")
            broker = brokers[broker_id]
            try:
                found = BrokerConnection(broker.host, broker.port, self.timeout, self._settings)
            except Failure as failure:
                raise Failure(f"broker {broker_id}: {failure.message}") from None
            self._by_id[broker_id] = found
        return found

    def send(self, broker_id: int, request: Any, *, at_least: int = 0) -> Any:
        """The answer of one broker."""
        return self.connection(broker_id).send(request, at_least=at_least)

    def topics(self) -> dict[str, list[int]]:
        """Every topic with the numbers of its partitions, internal topics too."""
        return {
            topic.name: sorted(part.partition_index for part in topic.partitions)
            for topic in self.metadata().topics
            if topic.name is not None
        }

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The partitions by the broker that leads them. Raises Failure for one that does not exist or has no leader."""
        wanted = list(partitions)
        led: dict[TopicPartition, int] = {}
        for topic in self.metadata(sorted({tp.topic for tp in wanted})).topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise Failure(f"there is no topic {topic.name}")
            if topic.error_code:
                raise Failure(f"{topic.name}: {reason(topic.error_code)}")
            for part in topic.partitions:
                led[TopicPartition(topic.name or "", part.partition_index)] = part.leader_id
        found: dict[int, list[TopicPartition]] = {}
        for tp in wanted:
            if tp not in led:
                raise Failure(f"{tp.topic} has no partition {tp.partition}")
            if led[tp] < 0:
                raise Failure(f"{tp} has no leader now", ErrorCode.LEADER_NOT_AVAILABLE)
            found.setdefault(led[tp], []).append(tp)
        return found

    def send_to_coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        request: Any,
        error: Callable[[Any], int],
        again: Container[int] = COORDINATOR_NOT_YET,
    ) -> Any:
        """The answer of the broker that coordinates a group or a transactional id.

        `error` takes the error code out of an answer; while that is one of `again`, because the coordinator is not
        ready or is another broker, the request is sent again, until the time of the target is over.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self.send(self._coordinator(kind, key, deadline), request)
            if error(answer) not in again or time.monotonic() > deadline:
                return answer
            del self._coordinators[kind, key]
            time.sleep(AGAIN_S)

    def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        """The broker that coordinates a group or a transactional id."""
        return self._coordinator(kind, key, time.monotonic() + self.timeout)

    def _coordinator(self, kind: CoordinatorKind, key: str, deadline: float) -> int:
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        while True:
            answer = self._first.send(request, at_least=kind)
            found = answer.coordinators[0] if answer.coordinators else answer
            if not found.error_code:
                node: int = found.node_id
                self._coordinators[kind, key] = node
                return node
            if found.error_code not in COORDINATOR_NOT_YET or time.monotonic() > deadline:
                raise Failure(f"{key}: {reason(found.error_code, found.error_message)}")
            time.sleep(AGAIN_S)


def _first_that_answers(settings: ClientSettings, timeout: float) -> BrokerConnection:
    for host, port in settings.bootstrap[:-1]:
        try:
            return BrokerConnection(host, port, timeout, settings)
        except Failure:
            continue
    return BrokerConnection(*settings.bootstrap[-1], timeout, settings)
