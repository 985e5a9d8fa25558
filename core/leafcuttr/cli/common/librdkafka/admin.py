"""librdkafka's admin client, as the operator's commands use it: reach a broker, wait for answers, name what failed.

Requests that librdkafka does not have go through `wire_client`. confluent-kafka is imported with
the first client.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from leafcuttr.cli.common.failures import AGAIN_S, Failure
from leafcuttr.cli.common.librdkafka.client import REACH_S, fail
from leafcuttr.cli.common.librdkafka.client import admin as make_client
from leafcuttr.cli.common.target import Target
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET
from leafcuttr_sdk.types import TopicPartition

_SLICE = 1000
"""How many partitions one call names: librdkafka makes a future for each."""


class Admin:
    """A connected admin client of librdkafka. Every method ends the command with one line if the broker refuses."""

    def __init__(self, target: Target) -> None:
        self.client = make_client(target.address, target.properties, min(REACH_S, target.timeout))
        self.target = target
        self.wait: dict[str, Any] = {"request_timeout": target.timeout}

    def answer(self, future: Any) -> Any:
        """What a future of librdkafka holds. Raises Failure."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            # A little longer than the request itself, whose own error says more.
            return future.result(self.target.timeout + 5)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT:
                fail(error, self.target.address)
        except TimeoutError:
            pass
        # A broker has answered before: it is there, but this takes it longer.
        raise Failure(f"{self.target.address} gives no answer to this within {self.target.timeout:g} seconds")

    def outcome(self, future: Any) -> str | None:
        """Why it failed, or None."""
        try:
            self.answer(future)
        except Failure as failure:
            return failure.message
        return None

    def patiently(self, request: Callable[[], Any]) -> Any:
        """What the future that `request` makes holds; repeated while the coordinator is not ready. Raises Failure."""
        deadline = time.monotonic() + self.target.timeout
        while True:
            try:
                return self.answer(request())
            except Failure as failure:
                if failure.code not in COORDINATOR_NOT_YET or time.monotonic() > deadline:
                    raise
            time.sleep(AGAIN_S)

    def partitions(self) -> dict[str, list[int]]:
        """Every topic with the numbers of its partitions, internal topics too."""
        return {name: sorted(about.partitions) for name, about in self.topics().items()}

    def topics(self) -> dict[str, Any]:
        """The topics by name, as librdkafka describes them."""
        found: dict[str, Any] = self._metadata().topics
        return found

    def brokers(self) -> list[int]:
        """The ids of the brokers, in order."""
        return sorted(self._metadata().brokers)

    def hosts(self) -> dict[int, str]:
        """By id of the broker the host that it advertises, without a port."""
        return {number: broker.host for number, broker in self._metadata().brokers.items()}

    def _metadata(self) -> Any:
        from confluent_kafka import KafkaException

        try:
            return self.client.list_topics(timeout=self.target.timeout)
        except KafkaException as error:
            fail(error, self.target.address)

    def offsets(self, partitions: Iterable[TopicPartition], spec: Any) -> dict[TopicPartition, Any]:
        """For each partition what ListOffsets says of `spec` (offset, timestamp, leader_epoch). Raises Failure."""
        found = self.try_offsets(dict.fromkeys(partitions, spec))
        for tp, result in found.items():
            if isinstance(result, Failure):
                raise Failure(f"{tp}: {result.message}")
        return found

    def try_offsets(self, wanted: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        """As `offsets`, each with its own spec; a partition that failed has its Failure in place of a result."""
        import confluent_kafka

        found: dict[TopicPartition, Any] = {}
        partitions = list(wanted)
        for at in range(0, len(partitions), _SLICE):
            request = {confluent_kafka.TopicPartition(*tp): wanted[tp] for tp in partitions[at : at + _SLICE]}
            for part, future in self.client.list_offsets(request, **self.wait).items():
                tp = TopicPartition(part.topic, part.partition)
                try:
                    found[tp] = self.answer(future)
                except Failure as failure:
                    found[tp] = failure
        return found

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offset of each partition that has one. Raises Failure."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        request = [ConsumerGroupTopicPartitions(group)]
        answer = self.patiently(lambda: self.client.list_consumer_group_offsets(request, **self.wait)[group])
        return {
            TopicPartition(part.topic, part.partition): part.offset
            for part in answer.topic_partitions
            if part.error is None and part.offset >= 0
        }

    def groups(self, names: Sequence[str]) -> dict[str, Any]:
        """Each group as librdkafka describes it; one that does not exist is in the state DEAD. Raises Failure."""
        # The binding fills the map that it returns: what is taken out of it would never be answered.
        first = dict(self.client.describe_consumer_groups(list(names), **self.wait)) if names else {}

        def describe(name: str) -> Any:
            # One request for all; a group whose coordinator was not ready has another of its own.
            return first.pop(name, None) or self.client.describe_consumer_groups([name], **self.wait)[name]

        return {name: self.patiently(functools.partial(describe, name)) for name in names}
