"""Changes of topics above `controller_mutation_rate` (KIP-599)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import context_of
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import CONTROLLER_MUTATION_RATE, entity_of
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .conftest import LISTENER

EXCEEDED = (ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)


class Client:
    """One that has a quota of 2 partitions a second, and 22 to begin with."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._context = context_of(LISTENER, "127.0.0.1", 1234, 1)
        self._context.limits = broker.quotas.limits_of("ANONYMOUS", None)

    async def ask(self, request: Any, version: int) -> Any:
        import importlib

        module = type(request).__module__.rpartition(".")[2]
        handler = importlib.import_module(f"leafcuttr.handlers.{module}")
        self._context.api_version = version
        read = decode(type(request), version, encode(request, version))
        return await handler.handle(self._broker, self._context, read)

    async def create(self, *topics: tuple[str, int], version: int = 7, only_validate: bool = False) -> Any:
        answer = await self.ask(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                    for name, count in topics
                ],
                timeout_ms=1000,
                validate_only=only_validate,
            ),
            version,
        )
        return _told(answer, answer.topics)

    async def enlarge(self, name: str, count: int, version: int = 3) -> Any:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        answer = await self.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=1000), version)
        return _told(answer, answer.results)

    async def delete(self, *names: str, version: int = 6) -> Any:
        topics = [DeleteTopicState(name=name) for name in names]
        answer = await self.ask(
            DeleteTopicsRequest(topics=topics, topic_names=list(names), timeout_ms=1000), version
        )
        return _told(answer, answer.responses)


def _told(answer: Any, results: Any) -> tuple[list[tuple[int, str | None]], int]:
    return [(one.error_code, one.error_message) for one in results], answer.throttle_time_ms


@pytest.fixture
async def client(broker: Broker, mock_clock: MockClock) -> Client:
    await broker.quotas.alter({entity_of({"user": None}): {CONTROLLER_MUTATION_RATE: 2.0}})
    return Client(broker)


DONE = (ErrorCode.NONE, None)


async def test_a_topic_of_any_size_as_long_as_something_is_left(
    client: Client, broker: Broker, mock_clock: MockClock
) -> None:
    assert await client.create(("a", 20), ("b", 12), ("c", 1)) == ([DONE, DONE, EXCEEDED], 5000)
    assert set(broker.topics.by_name) == {"a", "b"}
    assert broker.counts.throttled[CONTROLLER_MUTATION_RATE].count == 1
    mock_clock.jump(4.9)
    assert await client.create(("c", 1)) == ([EXCEEDED], 100)
    mock_clock.jump(0.1)
    assert await client.create(("c", 1)) == ([DONE], 0)


async def test_growth_and_deletion_count_too(client: Client, broker: Broker, mock_clock: MockClock) -> None:
    assert await client.create(("a", 3)) == ([DONE], 0)
    assert await client.enlarge("a", 23) == ([DONE], 0)
    assert await client.enlarge("a", 24) == ([EXCEEDED], 500)
    assert await client.delete("a") == ([EXCEEDED], 500)
    assert len(broker.topics.by_name["a"].partitions) == 23
    mock_clock.jump(0.5)
    assert await client.delete("a") == ([DONE], 0)
    assert await client.delete("a") == (
        [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")],
        0,
    ), "what is refused for another reason takes nothing"
    mock_clock.jump(11.5)
    assert await client.create(("b", 1)) == ([DONE], 0)


async def test_what_is_only_validated_counts_as_in_kafka(client: Client, mock_clock: MockClock) -> None:
    assert await client.create(("a", 30), only_validate=True) == ([DONE], 0)
    assert await client.create(("a", 1)) == ([EXCEEDED], 4000)


@pytest.mark.parametrize(("api", "version"), [("create", 5), ("enlarge", 2), ("delete", 4)])
async def test_clients_that_do_not_know_the_error_wait(
    client: Client, broker: Broker, mock_clock: MockClock, api: str, version: int
) -> None:
    if api == "create":
        (code, _), *_ = (told := await client.create(("a", 32), version=version))[0]
    else:
        assert await client.create(("a", 16)) == ([DONE], 0)
        if api == "enlarge":
            (code, _), *_ = (told := await client.enlarge("a", 32, version))[0]
        else:
            (code, _), *_ = (told := await client.delete("a", version=version))[0]
    assert (code, told[1]) == (0, 5000)


async def test_topics_that_metadata_would_create(
    client: Client, broker: Broker, mock_clock: MockClock
) -> None:
    async def ask(name: str) -> tuple[int, int]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        answer = await client.ask(request, 12)
        return answer.topics[0].error_code, answer.throttle_time_ms

    assert await client.create(("a", 23)) == ([DONE], 0)
    assert await ask("a") == (0, 0)
    assert await ask("b") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 500)
    assert "b" not in broker.topics.by_name
    mock_clock.jump(0.5)
    assert await ask("b") == (0, 0)


async def test_without_a_quota_nothing_is_refused(broker: Broker) -> None:
    client = Client(broker)
    for number in range(40):
        assert await client.create((f"t{number}", 3)) == ([DONE], 0)
    assert trio.current_time() >= 0
    assert not broker.counts.throttled
