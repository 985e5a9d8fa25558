"""Batches from callers that block: see `leafcuttr_sdk.blocking_peers.BlockingAppender`.

`Sending` is on the loop: it hands batches to an appender without waiting for the answers, up to a number of bytes.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Protocol

import trio

from leafcuttr.client.blocking.loop import LoopThread
from leafcuttr.errors import BrokerError
from leafcuttr.wire.batch import parse
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition


class AppendsBatches(Protocol):
    """An appender on the loop."""

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]": ...


class Sending:
    """On the loop. Any number of tasks may use it."""

    def __init__(self, appender: AppendsBatches, nursery: trio.Nursery, max_bytes: int) -> None:
        self._appender = appender
        self._nursery = nursery
        self._max_bytes = max_bytes
        self._bytes = 0
        self._calls = 0
        self._changed = trio.Event()
        self._failure: BrokerError | None = None
        self._written: Counter[TopicPartition] = Counter()

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        return await self._appender.append(batches)

    async def send(self, batches: Sequence[NewBatch]) -> None:
        size = sum(len(memoryview(each.batch)) for each in batches)
        while self._bytes and self._bytes + size > self._max_bytes and self._failure is None:
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure
        self._calls += 1
        self._bytes += size
        # `start` returns once the batches are in their place: the order is that of the calls.
        await self._nursery.start(self._append, batches, size)

    async def flush(self) -> dict[TopicPartition, int]:
        while self._calls and self._failure is None:
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure
        return dict(self._written)

    async def _append(
        self, batches: Sequence[NewBatch], size: int, *, task_status: trio.TaskStatus[None]
    ) -> None:
        task_status.started()
        try:
            answers = await self._appender.append(batches)
            for batch, answer in zip(batches, answers, strict=True):
                if isinstance(answer, BrokerError):
                    self._failure = self._failure or answer
                else:
                    self._written[batch.partition] += _records(batch)
        finally:
            self._calls -= 1
            self._bytes -= size
            self._changed.set()
            self._changed = trio.Event()


@asynccontextmanager
async def open_sending(
    manager: AbstractAsyncContextManager[AppendsBatches], max_bytes: int
) -> AsyncIterator[Sending]:
    """An appender and what is sent by it. Its end waits for nothing."""
    async with manager as appender, trio.open_nursery() as nursery:
        yield Sending(appender, nursery, max_bytes)
        nursery.cancel_scope.cancel()


class BlockingBatches:
    """See `leafcuttr_sdk.blocking_peers.BlockingAppender`."""

    def __init__(self, loop: LoopThread, sending: Sending) -> None:
        self._loop = loop
        self._sending = sending

    def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        return self._loop.run(self._sending.append, batches)

    def send(self, batches: Sequence[NewBatch]) -> None:
        self._loop.run(self._sending.send, batches)

    def flush(self) -> dict[TopicPartition, int]:
        return self._loop.run(self._sending.flush)


@contextmanager
def blocking_appender(
    loop: LoopThread, opened: Callable[[], AbstractAsyncContextManager[AppendsBatches]], max_bytes: int
) -> Iterator[BlockingBatches]:
    """What `opened` opens, for callers that block."""
    with loop.entered(open_sending(opened(), max_bytes)) as sending:
        yield BlockingBatches(loop, sending)


def _records(batch: NewBatch) -> int:
    """How many sequence numbers it takes. It was appended, so it has a header."""
    return parse(memoryview(batch.batch)).last_offset_delta + 1
