"""What waits for a client that does not take everything at once."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr_mqtt.server.slow_writer import SlowWriter


class Stream:
    """Takes one thing at a time, when it is told to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.takes = trio.Semaphore(0)
        self.broken = False

    async def send_all(self, data: bytes) -> None:
        await self.takes.acquire()
        if self.broken:
            raise trio.BrokenResourceError
        self.taken.append(data)


async def test_what_comes_meanwhile_goes_out_together_behind_it(nursery: trio.Nursery) -> None:
    stream: Any = Stream()
    writer = SlowWriter(b"first")
    nursery.start_soon(writer.run, stream)
    await trio.testing.wait_all_tasks_blocked()
    writer.add(b"second")
    writer.add(b"third")
    assert writer.size == 16
    stream.takes.release()
    await trio.testing.wait_all_tasks_blocked()
    assert writer.size == 11
    stream.takes.release()
    await trio.testing.wait_all_tasks_blocked()
    assert stream.taken == [b"first", b"secondthird"]
    assert writer.size == 0


async def test_it_stops_with_the_connection() -> None:
    stream: Any = Stream()
    writer = SlowWriter(b"first")
    assert not writer.is_given_up
    writer.give_up()
    await writer.run(stream)
    assert stream.taken == []


async def test_a_broken_stream_is_told() -> None:
    stream: Any = Stream()
    stream.broken = True
    stream.takes.release()
    with pytest.raises(trio.BrokenResourceError):
        await SlowWriter(b"first").run(stream)
