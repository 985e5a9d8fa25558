"""The sweeper of silent connections."""

from __future__ import annotations

import trio
import trio.testing

from leafcuttr_mqtt.server.keep_alive import KeepAlive


class Silent:
    def __init__(self, silent_s: float) -> None:
        self.silent_s = silent_s
        self.heard = trio.current_time()
        self.over = 0

    def keep_alive_is_over(self) -> None:
        self.over += 1


async def test_who_is_silent_for_longer_than_allowed_is_ended_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    keep_alive = KeepAlive()
    short, long, endless, gone = Silent(1.5), Silent(15), Silent(0), Silent(1.5)
    for each in (short, long, endless, gone):
        keep_alive.add(each)
    keep_alive.remove(gone)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_alive.run)
        await trio.sleep(1.4)
        assert short.over == 0
        await trio.sleep(1.2)
        assert short.over == 1
        for _ in range(30):
            long.heard = trio.current_time()
            await trio.sleep(10)
        assert (short.over, long.over, endless.over, gone.over) == (1, 0, 0, 0)
        await trio.sleep(20)
        assert long.over == 1
        nursery.cancel_scope.cancel()
