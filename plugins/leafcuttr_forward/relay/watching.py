"""Probes of clusters in the background, for the pool: its decisions are carried out by who calls."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import trio

from leafcuttr_forward.flows.spec import FLOWS_TOPIC
from leafcuttr_forward.relay.durations import show_duration
from leafcuttr_forward.relay.pool import STAY, Decision, Health, Pauses, Range, Ranges, SourcePool
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer

_TROUBLE_S: Final = 0.5
"""For so long a cluster may be in trouble before its probe has failed."""
_LOOK_S: Final = 0.05
Position: TypeAlias = Callable[[], Mapping[TopicPartition, int]]
Act: TypeAlias = Callable[[Decision], None]
Probe: TypeAlias = "Callable[[Peer, float], Awaitable[Ranges]]"
"""What a cluster has now; each request of it may take so many seconds. Raises BrokerError, trio.TooSlowError."""


class WatchedPeer(NamedTuple):
    """A cluster, in the order of the pool."""

    peer: "Peer"
    connect_s: float
    """How long a request may take that may have to connect first: until a probe is answered, and after one that was
    not."""


class Watch:
    """Probes all clusters of a pool once in `interval_s`, each request within `request_s`, and calls `act` with what
    the pool decides, if that is any change. `in_vain` is called after each round that nothing has answered."""

    def __init__(
        self,
        pool: SourcePool,
        peers: Sequence[WatchedPeer],
        probe: Probe,
        *,
        interval_s: float,
        request_s: float,
        pauses: Pauses,
        position: Position,
        act: Act,
        in_vain: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._peers = peers
        self._probe = probe
        self._interval_s = interval_s
        self._request_s = request_s
        self._pauses = pauses
        self._position = position
        self._act = act
        self._in_vain = in_vain
        self._random: Final = Random()

    async def run(self) -> None:
        """Until cancelled, or until `act` raises."""
        while True:
            began = trio.current_time()
            await self._round(range(len(self._peers)))
            await self._round(self._pool.suspects)
            self._pool.round_ended()
            self.decide()
            if self._pool.vain:
                self._in_vain()
                await trio.sleep(self._pauses.after(self._pool.vain, self._random))
            else:
                await trio.sleep_until(began + self._interval_s)

    def decide(self) -> None:
        """Also to be called once a source was refused."""
        decision = self._pool.decide(self._position())
        if decision != STAY:
            self._act(decision)

    async def _round(self, indexes: Sequence[int]) -> None:
        async with trio.open_nursery() as nursery:
            for index in indexes:
                nursery.start_soon(self._one, index)

    async def _one(self, index: int) -> None:
        peer, connect_s = self._peers[index]
        stands = self._pool.sources[index].health in (Health.UP, Health.SUSPECT)
        limit = self._request_s if stands else max(connect_s, self._request_s)
        try:
            self._pool.answered(index, await _answer(self._probe, peer, limit))
        except trio.TooSlowError:
            self._pool.failed(index, peer.trouble or f"no answer within {show_duration(limit)}")
        except BrokerError as error:
            self._pool.failed(index, str(error) or type(error).__name__)
        self.decide()


async def _answer(probe: Probe, peer: "Peer", limit_s: float) -> Ranges:
    """A peer tries again for as long as it may: it is left alone once it has said for a while what is wrong. Raises
    BrokerError, trio.TooSlowError."""
    with trio.CancelScope() as scope:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_trouble, peer, scope)
                found = await probe(peer, limit_s)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:  # of the probe: the other task raises nothing
            raise group.exceptions[0] from None
        return found
    raise trio.TooSlowError


async def _until_trouble(peer: "Peer", scope: trio.CancelScope) -> None:
    since = trio.current_time()
    while True:
        await trio.sleep(_LOOK_S)
        if peer.trouble is None:
            since = trio.current_time()
        elif trio.current_time() - since >= _TROUBLE_S:
            scope.cancel()


def ranges_of(topics: Sequence[str]) -> Probe:
    """A probe that finds the first and the end offsets of all partitions of these topics, all of which there must
    be."""

    async def probe(peer: "Peer", limit_s: float) -> Ranges:
        with trio.fail_after(limit_s):
            found = await peer.topics(topics)
        missing = [each for each in topics if each not in found]
        if missing:
            raise BrokerError(f"it has no topic {', '.join(missing)}")
        partitions = [
            TopicPartition(name, number) for name in topics for number in range(found[name].partitions)
        ]
        with trio.fail_after(limit_s):
            starts = await peer.offsets(dict.fromkeys(partitions, EARLIEST))
        with trio.fail_after(limit_s):
            ends = await peer.offsets(dict.fromkeys(partitions, LATEST))
        return {
            each: Range(starts[each], ends[each]) for each in partitions if each in starts and each in ends
        }

    return probe


async def answers(peer: "Peer", limit_s: float) -> Ranges:
    """A probe that only finds whether the cluster answers."""
    with trio.fail_after(limit_s):
        await peer.topics([FLOWS_TOPIC])
    return {}
