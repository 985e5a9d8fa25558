"""What all streams of one start of the proxy share: hubs, limits, the stop; and the door to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.errors import ApiError, no_topic, of_topic
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.streams.asked import Asked
from leafcuttr_http.streams.hub import Hub
from leafcuttr_http.streams.positions import Positions, tag_of
from leafcuttr_http.streams.reader import notice
from leafcuttr_http.streams.subscription import Subscription
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_http.streams.events import Notice
    from leafcuttr_sdk.topics import TopicInfo

_READERS: Final = 4
"""Streams that read by themselves at the same time; the others wait for their turn."""

Key = tuple[str, bytes, str]
"""Topic, its id, format."""


class Streams:
    """See the module's docstring. `stopping` is set when the service comes to its end."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.broker = proxy.broker
        self.reading = trio.Semaphore(_READERS)
        self.stopping = False
        self._hubs: dict[Key, Hub] = {}
        metrics = proxy.broker.metrics
        self.events = metrics.counter(
            "leafcuttr_http_stream_events_total", "Records sent to streams of the HTTP proxy.", "kind"
        )
        self._open = metrics.gauge("leafcuttr_http_streams", "Event streams and WebSockets that are open.")
        self._stop_listening = proxy.broker.topics.on_change(self._changed)
        proxy.nursery.start_soon(self._stop)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """For as long as a stream is open. Raises ApiError 503 where there are too many."""
        with self.proxy.open_stream():
            self._open.set(self.proxy.streams)
            try:
                yield
            finally:
                self._open.set(self.proxy.streams - 1)

    def known_hub(self, key: Key) -> Hub | None:
        """The one of this topic in this format, if there is one."""
        hub = self._hubs.get(key)
        return None if hub is None or hub.ended else hub

    def new_hub(self, key: Key, topic: "TopicInfo") -> Hub:
        """One that begins at the end of the topic as it is; it has to be joined at once."""
        hub = self._hubs[key] = Hub(self.broker, topic, key[2], self.proxy.limits.stream_buffer)
        self.proxy.nursery.start_soon(self._run, key, hub)
        return hub

    async def _run(self, key: Key, hub: Hub) -> None:
        try:
            await hub.run()
        except Exception:
            self.broker.logger.exception("reading %s for streams failed", key[0])
        finally:
            if self._hubs.get(key) is hub:
                del self._hubs[key]

    async def subscribe(self, name: str, asked: Asked) -> "tuple[Subscription, list[Notice]]":
        """A stream, and what it has to say before anything else. Raises ApiError."""
        topic = self.broker.topics.get(name)
        if topic is None:
            raise no_topic(name)
        notices: list[Notice] = []
        try:
            if asked.last is not None and asked.last.tag == tag_of(topic.topic_id):
                offsets = asked.last.offsets
                if len(offsets) > len(topic.partitions):
                    raise ApiError(
                        422,
                        f"The id of the last event has {len(offsets)} partitions, {name!r} {len(topic.partitions)}.",
                    )
            elif asked.last is not None:
                notices.append(notice("reset", message=f"topic {name!r} was deleted and made again"))
                offsets = await self._by_time(topic, EARLIEST)
            elif asked.offset is not None:
                offsets = [min(asked.offset, each.high_watermark) for each in topic.partitions]
            elif asked.offsets is not None:
                offsets = self._given(topic, asked.offsets)
            else:
                offsets = await self._by_time(topic, asked.time)
        except BrokerError as error:
            raise of_topic(error, name) from error
        start = Positions(tag_of(topic.topic_id), offsets)
        start.add_partitions(len(topic.partitions))
        return Subscription(self, topic, asked.format, asked.keys, start), notices

    async def _by_time(self, topic: "TopicInfo", time: int) -> list[int]:
        """A partition that cannot be read is found out when it is read."""
        if time == EARLIEST:
            return [each.log_start_offset for each in topic.partitions]
        if time == LATEST:
            return [each.high_watermark for each in topic.partitions]
        online = [each.partition for each in topic.partitions if each.offline is None]
        found = await self.broker.offsets({TopicPartition(topic.name, number): time for number in online})
        return [
            found.get(TopicPartition(topic.name, each.partition), each.high_watermark)
            for each in topic.partitions
        ]

    def _given(self, topic: "TopicInfo", given: dict[int, int]) -> list[int]:
        """Partitions that are not named begin at their end."""
        for partition, offset in given.items():
            if partition >= len(topic.partitions):
                raise ApiError(422, f"Topic {topic.name!r} has no partition {partition}.")
            end = topic.partitions[partition].high_watermark
            if offset > end:
                raise ApiError(
                    422,
                    f"Partition {partition} of {topic.name!r} ends at {end}, there is no offset {offset}.",
                )
        return [given.get(each.partition, each.high_watermark) for each in topic.partitions]

    def _changed(self, name: str) -> None:
        for key, hub in self._hubs.items():
            if key[0] == name:
                hub.look_again()

    async def _stop(self) -> None:
        await self.proxy.closing.wait()
        self.stopping = True
        self._stop_listening()
        for hub in self._hubs.values():
            hub.stop()
