"""Settings of quotas act: how much a client may catch up with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from support.live_broker import serve_here
from support.logs import batch
from support.peer import Peer, connect, produce_request

Serve = Callable[..., Awaitable[Broker]]
EVERYBODY = entity_of({"user": None})


async def limited(serve: Serve, settings: dict[str, str], quota: str, value: float) -> Broker:
    broker = await serve(settings)
    await broker.topics.create("t", 1, {})
    await broker.quotas.alter({EVERYBODY: {quota: value}})
    return broker


async def wait_of(peer: Peer, size: int) -> int:
    """What a producer is told after so many bytes."""
    return int((await peer.ask(produce_request("t", batch(1, size=size)), 9)).throttle_time_ms)


@pytest.fixture
def here(tmp_path: Path, nursery: trio.Nursery) -> Serve:
    return partial(serve_here, nursery, tmp_path / "data")


@pytest.mark.setting("quota.window.size.seconds")
@pytest.mark.parametrize(("seconds", "least_ms"), [("3", 2000), ("2", 3000)])
async def test_the_length_of_a_window(
    here: Serve, mock_clock: MockClock, seconds: str, least_ms: int
) -> None:
    """One that is new has one window's rate."""
    broker = await limited(here, {"quota.window.size.seconds": seconds}, "producer_byte_rate", 10_000)
    async with await connect(broker) as peer:
        assert least_ms < await wait_of(peer, 50_000) < least_ms + 100
        # Of a quota of the loop's time no wait is longer than a window.
        await broker.quotas.alter({EVERYBODY: {"producer_byte_rate": None, "request_percentage": 1e-9}})
        assert await wait_of(peer, 10) == int(seconds) * 1000


@pytest.mark.setting("quota.window.num")
@pytest.mark.parametrize(("number", "least_ms"), [("16", 2000), ("26", 0)])
async def test_the_number_of_windows(here: Serve, mock_clock: MockClock, number: str, least_ms: int) -> None:
    """One that has been quiet for long has a fifth of all of them but one."""
    broker = await limited(here, {"quota.window.num": number}, "producer_byte_rate", 10_000)
    async with await connect(broker) as peer:
        assert await wait_of(peer, 10) == 0
        mock_clock.jump(1000)
        assert least_ms <= await wait_of(peer, 50_000) < least_ms + 100


@pytest.mark.setting("controller.quota.window.num", "controller.quota.window.size.seconds")
async def test_the_windows_of_changes_of_topics(here: Serve, mock_clock: MockClock) -> None:
    settings = {"controller.quota.window.num": "3", "controller.quota.window.size.seconds": "2"}
    broker = await limited(here, settings, "controller_mutation_rate", 2.0)

    async def create(name: str, partitions: int) -> tuple[int, int]:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer: Any = await peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        return answer.topics[0].error_code, answer.throttle_time_ms

    async with await connect(broker) as peer:
        assert await create("a", 12) == (ErrorCode.NONE, 0)
        assert await create("b", 2) == (ErrorCode.NONE, 0)
        assert await create("c", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1000)
