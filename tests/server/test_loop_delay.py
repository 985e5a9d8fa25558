"""How late the event loop is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from leafcuttr.state.broker import Broker
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]


async def test_the_loop_delay_is_sampled(serve: Serve) -> None:
    import time

    broker = await serve()
    delay = broker.counts.loop_delay
    await eventually(lambda: bool(delay.count), "a first sample")
    before = delay.seconds

    def sampled() -> bool:
        time.sleep(0.3)  # what a plugin should never do: it holds the loop, and that is to be seen
        return delay.seconds >= before + 0.2

    await eventually(sampled, "a sample of the delay")
