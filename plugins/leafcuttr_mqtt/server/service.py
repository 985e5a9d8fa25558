"""The service `mqtt`: its listeners, and what runs beside them for as long as it runs.

Connections end first, then the turns that store their messages, then the store: so what was begun is done.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.bridge.options import read_bridges
from leafcuttr_mqtt.mapping.settings import read_options as read_mapping_options
from leafcuttr_mqtt.people.current import shown
from leafcuttr_mqtt.server.authentication import Doorkeeper
from leafcuttr_mqtt.server.connection import Connection
from leafcuttr_mqtt.server.running import Running
from leafcuttr_mqtt.settings import LISTENERS, OVER_WEBSOCKET, PREFIX, is_open, read_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any

    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.serving import ByteStream

SUBPROTOCOLS: Final = ("mqtt", "mqttv3.1")
"""Of WebSockets ([MQTT-6.0.0-4]); the second is what clients of 3.1 offer."""
_FAREWELL_S: Final = 2.0
"""For messages that are being stored when the service stops."""


class MqttBroker:
    """The service `mqtt`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._options = read_options(broker.settings)
        self._mapping = read_mapping_options(broker.settings)
        self._bridges = read_bridges(broker.settings)
        self._doorkeeper = Doorkeeper(self._options, broker.authentication(PREFIX, listeners=LISTENERS))

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        async with trio.open_nursery() as nursery:
            stop = trio.Event()
            background = await _held(nursery, stop)
            running = Running(self._broker, self._options, self._mapping, self._doorkeeper, background)
            try:
                await running.open()
                with shown(self._broker, running):
                    async with trio.open_nursery() as listeners:
                        listeners.start_soon(running.run)
                        if self._bridges:
                            from leafcuttr_mqtt.bridge.bridges import Bridges

                            bridges = Bridges(running, self._bridges)
                            listeners.start_soon(bridges.run)
                        for prefix, serve in self._listeners():
                            opened: Listening = await listeners.start(
                                partial(
                                    serve, partial(_handle, running), authenticates=not self._doorkeeper.open
                                )
                            )
                            if opened.port >= 0:
                                running.listeners[prefix] = f"{opened.host or '0.0.0.0'}:{opened.port}"
                        task_status.started()
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(_FAREWELL_S):
                    await running.close()
                stop.set()

    def _listeners(self) -> "Iterator[tuple[str, Callable[..., Awaitable[Any]]]]":
        """What serves each listener that has an address. The first one is there anyway: with a port of -1 it waits."""
        settings = self._broker.settings
        for prefix in LISTENERS:
            if prefix != PREFIX and not is_open(settings, prefix):
                continue
            if prefix in OVER_WEBSOCKET:
                from leafcuttr_sdk import websocket

                yield (
                    prefix,
                    partial(
                        websocket.serve,
                        self._broker,
                        prefix,
                        subprotocols=SUBPROTOCOLS,
                        max_message_bytes=None,  # it may have many packets, each as large as one may be
                    ),
                )
            else:
                yield prefix, partial(self._broker.serve, prefix, alpn_protocols=("mqtt",))


async def _held(nursery: trio.Nursery, stop: trio.Event) -> trio.Nursery:
    """Start `_hold`. It takes a moment: cancelled in there, nobody would end what it starts."""
    held: trio.Nursery | None = None
    with trio.CancelScope(shield=True):
        held = await nursery.start(_hold, stop)
    assert held is not None
    return held


async def _hold(stop: trio.Event, *, task_status: "trio.TaskStatus[trio.Nursery]") -> None:
    """A nursery that is not cancelled with the service, but when `stop` is set."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await stop.wait()
            nursery.cancel_scope.cancel()


def _handle(running: Running, stream: "ByteStream") -> "Awaitable[None]":
    """No coroutine of its own: there are as many as connections."""
    return Connection(running, stream).run()
