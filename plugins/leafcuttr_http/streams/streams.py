"""What all streams of one start of the proxy share: hubs, limits, the stop. It knows no single stream."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.proxy import Proxy
from leafcuttr_http.streams.hub import Hub

if TYPE_CHECKING:
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

    def check(self, topic: str) -> None:
        """Raises AuthorizationFailed: the client of this request may not read the topic."""
        if self.broker.security.authorizes:
            from leafcuttr_sdk.security import Operation, ResourceType

            self.proxy.serving.check(Operation.READ, ResourceType.TOPIC, topic)

    def while_allowed(self, topic: str) -> "AbstractContextManager[trio.CancelScope]":
        """A block that is cancelled when the client of this request may not read the topic any more."""
        serving = self.proxy.serving
        if not serving.broker.security.authorizes:
            return nullcontext(trio.CancelScope())
        from leafcuttr_sdk.security import Operation, ResourceType

        security, principal, host = serving.broker.security, serving.principal, serving.host
        return serving.while_holds(
            lambda: security.allowed(principal, Operation.READ, ResourceType.TOPIC, topic, host=host)
        )

    def known_hub(self, key: Key) -> Hub | None:
        """The one of this topic in this format, if there is one."""
        hub = self._hubs.get(key)
        return None if hub is None or hub.ended else hub

    def new_hub(self, key: Key, topic: "TopicInfo") -> Hub:
        """One that begins at the end of the topic as it is; it has to be joined at once."""
        hub = self._hubs[key] = Hub(self.proxy.schemas, topic, key[2], self.proxy.limits.stream_buffer)
        self.proxy.nursery.start_soon(self._run, key, hub)
        return hub

    async def _run(self, key: Key, hub: Hub) -> None:
        try:
            await hub.run()
        except Exception as error:
            self.proxy.tell(error, f"reading {key[0]} for streams")
        finally:
            if self._hubs.get(key) is hub:
                del self._hubs[key]

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
