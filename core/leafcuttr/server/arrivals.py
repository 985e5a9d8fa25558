"""Waiting for what clients send before they are served: for a handshake, for a log-in.

trio resumes all tasks whose sockets have become readable in one turn of its loop. Where a thousand clients come back at
once, those that are served would wait for all of them. So these have an epoll of their own, from which one task takes a
few in each turn.
"""

import select
from math import inf
from typing import Final

import trio

_AT_ONCE: Final = 8
"""Tasks that are resumed in one turn: each goes on for some tenths of a millisecond."""
_LEAST_S: Final = 1.0
"""For each answer of a peer whose own time is over, because the broker had others to serve."""


def extended(until: float) -> float:
    """Until when to wait for a peer that has time `until` then: a moment for each of its answers, however long the
    broker took with what came before."""
    return max(until, trio.current_time() + _LEAST_S)


async def wait_for_arrival(descriptor: int, until: float = inf) -> None:
    """Wait until the socket is readable, or has failed. One task for each socket; it is not closed meanwhile.

    Raises trio.TooSlowError if nothing has arrived until then (trio's time). What has arrived by then and waits for its
    turn is not late: where many come at once, the time that the broker takes is not the client's.
    """
    with trio.move_on_at(until):
        await _wait(descriptor)
        return
    if not _has_arrived(descriptor):
        raise trio.TooSlowError
    await _wait(descriptor)


def _has_arrived(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def _wait(descriptor: int) -> None:
    try:
        arrivals = _arrivals.get()
    except LookupError:
        arrivals = _Arrivals()
        _arrivals.set(arrivals)
    await arrivals.wait(descriptor)


class _Arrivals:
    """Of one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, trio.lowlevel.Task] = {}
        self._epoll: select.epoll | None = None  # only while some wait: it is a descriptor

    async def wait(self, descriptor: int) -> None:
        try:
            epoll = self._opened()
            epoll.register(descriptor, select.EPOLLIN)
        except OSError:  # no descriptor, or no memory, for that
            await trio.lowlevel.wait_readable(descriptor)
            return
        self._waiting[descriptor] = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            del self._waiting[descriptor]
            epoll.unregister(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _opened(self) -> select.epoll:
        if self._epoll is None:
            self._epoll = select.epoll()
            trio.lowlevel.spawn_system_task(self._resume, self._epoll)
        return self._epoll

    async def _resume(self, epoll: select.epoll) -> None:
        try:
            while self._waiting:
                await trio.lowlevel.wait_readable(epoll.fileno())
                for descriptor, _ in epoll.poll(0, _AT_ONCE):
                    epoll.unregister(descriptor)
                    trio.lowlevel.reschedule(self._waiting.pop(descriptor))
        finally:
            self._epoll = None
            epoll.close()


_arrivals: Final = trio.lowlevel.RunVar[_Arrivals]("leafcuttr arrivals")
