"""`$SYS/broker/...` as mosquitto has it: the state of the broker in topics, for tools that show that.

A subscriber gets what its filter matches at once, and then every ten seconds the topics that are subscribed to. The
texts are made for subscribers only; the averages of load are counted on at each interval, as mosquitto does. The
messages have QoS 0, so they wait in no queue, and go to no Kafka topic.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.people.counts import survey
from leafcuttr_mqtt.session.types import DropReason
from leafcuttr_mqtt.topics.names import matches
from leafcuttr_sdk.errors import BrokerError

if TYPE_CHECKING:
    from leafcuttr_mqtt.people.contract import Observed

PREFIX: Final = "$SYS/broker/"
INTERVAL_S: Final = 10.0
"""mosquitto's default of `sys_interval`."""
_MINUTES: Final = (1, 5, 15)


def _dropped(running: "Observed") -> int:
    return sum(count for reason, count in running.hub.drops.items() if reason is not DropReason.SESSION_ENDED)


def _values(running: "Observed") -> "dict[str, Callable[[], object]]":
    """By topic, without `PREFIX`."""
    hub, counts, seen = running.hub, running.counts, running.seen
    return {
        "version": lambda: f"LeafCuttr {running.broker.cluster.version}",
        "timestamp": lambda: running.started_ms,
        "uptime": lambda: f"{(running.now_ms() - running.started_ms) // 1000} seconds",
        "clients/total": lambda: len(hub.clients),
        "clients/connected": lambda: hub.connected,
        "clients/active": lambda: hub.connected,
        "clients/disconnected": lambda: len(hub.clients) - hub.connected,
        "clients/inactive": lambda: len(hub.clients) - hub.connected,
        "clients/maximum": lambda: counts.most_connected,
        "clients/expired": lambda: hub.expired,
        "bytes/received": lambda: counts.bytes_received,
        "bytes/sent": lambda: counts.bytes_sent,
        "messages/received": lambda: counts.packets_received,
        "messages/sent": lambda: counts.packets_sent,
        "messages/inflight": lambda: seen.in_flight,
        "messages/stored": lambda: seen.waiting + len(hub.retained),
        "store/messages/count": lambda: seen.waiting + len(hub.retained),
        "store/messages/bytes": lambda: seen.waiting_bytes + hub.retained.bytes,
        "publish/messages/received": lambda: sum(counts.received),
        "publish/messages/sent": lambda: sum(counts.sent),
        "publish/messages/dropped": lambda: _dropped(running),
        "retained messages/count": lambda: len(hub.retained),
        "subscriptions/count": lambda: len(hub.router.subscriptions),
    }


def _totals(running: "Observed") -> dict[str, int]:
    """What there are averages of, a minute, over the last 1, 5 and 15 minutes."""
    counts = running.counts
    return {
        "connections": counts.accepted,
        "bytes/received": counts.bytes_received,
        "bytes/sent": counts.bytes_sent,
        "messages/received": counts.packets_received,
        "messages/sent": counts.packets_sent,
        "publish/received": sum(counts.received),
        "publish/sent": sum(counts.sent),
        "publish/dropped": _dropped(running),
    }


class SysTopics:
    """The topics of one broker."""

    def __init__(self, running: "Observed") -> None:
        self._running = running
        self._last: dict[str, int] = {}
        self._averages: dict[str, list[float]] = {}

    def names(self) -> Iterator[str]:
        """All topics that there are."""
        for topic in _values(self._running):
            yield PREFIX + topic
        for name in _totals(self._running):
            for minutes in _MINUTES:
                yield f"{PREFIX}load/{name}/{minutes}min"

    def match(self, topic_filter: str) -> list[Message]:
        """The messages of the topics that a filter matches, for somebody who subscribes now."""
        if not topic_filter.startswith("$SYS/"):
            return []
        return list(self._messages(lambda topic: matches(topic_filter, topic)))

    async def run(self) -> None:
        """For ever."""
        began = trio.current_time()
        while True:
            await trio.sleep(INTERVAL_S)
            now = trio.current_time()
            await self.look(now - began)
            began = now

    async def look(self, seconds: float) -> None:
        """What is due at an interval: count all sessions, go on with the averages, publish what is subscribed to."""
        running = self._running
        await self._survey()
        self._average(seconds)
        router = running.hub.router
        for message in self._messages(self._is_wanted):
            router.publish(message, None)
        running.turns.conclude()

    async def _survey(self) -> None:
        running = self._running
        seen = await survey(running.hub.clients.values())
        if seen.oldest_offset is not None:
            with suppress(BrokerError):  # it says how long messages wait, no more
                for message in (await running.store.load([seen.oldest_offset])).values():
                    came = (
                        message.arrived_ms
                        if seen.oldest_ms is None
                        else min(message.arrived_ms, seen.oldest_ms)
                    )
                    seen = seen._replace(oldest_ms=came)
        running.seen = seen

    def _is_wanted(self, topic: str) -> bool:
        matched = self._running.hub.router.subscriptions.match(topic)
        return bool(matched.subscribers or matched.groups)

    def _messages(self, wanted: Callable[[str], bool]) -> Iterator[Message]:
        running = self._running
        now_ms = running.now_ms()
        for topic, read in _values(running).items():
            if wanted(PREFIX + topic):
                yield _message(topic, str(read()), now_ms)
        for name in _totals(running):
            for minutes, average in zip(_MINUTES, self._averages_of(name), strict=True):
                topic = f"load/{name}/{minutes}min"
                if wanted(PREFIX + topic):
                    yield _message(topic, f"{average:.2f}", now_ms)

    def _average(self, seconds: float) -> None:
        """Averages that forget, as those of a machine's load: what was a minute ago counts for 1/e in the first one."""
        if seconds <= 0:
            return
        for name, total in _totals(self._running).items():
            a_minute = (total - self._last.get(name, 0)) * 60 / seconds
            self._last[name] = total
            averages = self._averages_of(name)
            for at, minutes in enumerate(_MINUTES):
                kept = math.exp(-seconds / (60 * minutes))
                averages[at] = a_minute + kept * (averages[at] - a_minute)

    def _averages_of(self, name: str) -> list[float]:
        return self._averages.setdefault(name, [0.0] * len(_MINUTES))


def _message(topic: str, text: str, now_ms: int) -> Message:
    return Message(PREFIX + topic, text.encode(), arrived_ms=now_ms)
