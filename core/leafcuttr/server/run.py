"""The broker's life: open, serve, stop. The nursery tree is on this screen, and leaving it in order is the shutdown.

storage            the data directory; closed last: producer snapshots, checkpoints, the mark of a clean stop
  background       loops, the coordinators of groups and of transactions, the admin endpoint
    services       those of plugins, under supervision; stopped in reverse of their start
      connections  one task each; told to end after the request at hand
        listeners  one task for each bound address; cancelled first
"""

import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.runtime.apart import run_apart
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.server import background as loops
from leafcuttr.server.admin import listening as admin
from leafcuttr.server.listener import Connections
from leafcuttr.server.listening import Bound, OpenListeners, bind
from leafcuttr.server.transport import MakeTransport, PlainTransport
from leafcuttr.state.broker import Broker, open_broker
from leafcuttr.state.chains import Tables
from leafcuttr.state.plugged import SASL_MECHANISMS, Plugged
from leafcuttr_sdk import Clock
from leafcuttr_sdk.trouble import import_late

if TYPE_CHECKING:
    from leafcuttr.plugins.table import Plugins
    from leafcuttr.server.admin.endpoint import AdminEndpoint

# How long requests that are being handled may take once the broker stops; then their connections are cut.
_GRACE_S: Final = 1.5
_RELEASE_S: Final = 0.05


async def run_broker(
    settings: Settings,
    listeners: Sequence[Listener],
    *,
    plugins: "Plugins | None" = None,
    plugged: Plugged | None = None,
    clock: Clock | None = None,
    pressure: WritePressure | None = None,
    make_transport: MakeTransport = PlainTransport,
    stop: trio.Event | None = None,
    task_status: trio.TaskStatus[Broker] = trio.TASK_STATUS_IGNORED,
) -> bool:
    """Serve until `stop` is set (or forever); `task_status` gets the broker once every service of the enabled `plugins`
    has been started and every listener is open. What they add goes into `plugged`, so that the caller can see which
    services have not ended, also where the start has failed.

    Returns whether the data directory was closed as it should be; if not, the log says why, and the next start recovers
    what it does not know. Raises StartError when the directory or an address cannot be had, or a service knows why it
    cannot start. Cancellation is a stop without the grace for running requests; services are stopped and the data
    directory is closed properly all the same.
    """
    stop = trio.Event() if stop is None else stop
    with ExitStack() as opened:
        bound = [_bind(settings, listener, opened) for listener in listeners]
        admin_bound = admin.bind(settings)
        if admin_bound is not None:
            _close_after(opened, admin_bound.sockets)
        broker = open_broker(settings, clock or SystemClock(), pressure=pressure)
        broker.plugged = plugged or broker.plugged
        broker.plugged.found = plugins.all if plugins else ()
        if admin_bound is not None:
            broker.admin = admin_bound.listener
            if admin_bound.certificates is not None:
                broker.certificates[admin.PREFIX] = admin_bound.certificates
        try:
            with ExitStack() as contained:
                services = await _services(broker, plugins, contained, stop)
                connections = Connections(broker, make_transport)
                await _serve(broker, connections, services, bound, admin_bound, stop, task_status)
        finally:
            opened.close()
            clean = broker.logs.close()
            broker.metadata.close()
    return clean


async def _serve(
    broker: Broker,
    connections: Connections,
    services: AbstractAsyncContextManager[None],
    bound: Sequence[Bound],
    admin_bound: admin.AdminBound | None,
    stop: trio.Event,
    task_status: trio.TaskStatus[Broker],
) -> None:
    open_listeners = OpenListeners(broker, connections, bound)
    async with trio.open_nursery() as background:
        broker.plugged.background = background
        loops.start(broker, connections, background)
        background.start_soon(broker.dead_letters.run)
        try:
            await background.start(broker.groups.run)
            await background.start(broker.transactions.run)
            if admin_bound is not None:
                serve_admin = partial(
                    admin.serve, admin_bound, partial(_admin_endpoint, broker, connections), broker.settings
                )
                background.start_soon(run_apart, serve_admin, "the admin endpoint", broker.plugged.leave)
            async with services, trio.open_nursery() as serving:
                serving.start_soon(connections.reactor.run)
                async with trio.open_nursery() as listening:
                    await listening.start(open_listeners.run, serving)
                    broker.serving = True
                    task_status.started(broker)
                    await stop.wait()
                    listening.cancel_scope.cancel()
                await _finish(broker, connections)
                serving.cancel_scope.cancel()
        finally:
            broker.dead_letters.stop()
        background.cancel_scope.cancel()


async def _finish(broker: Broker, connections: Connections) -> None:
    """Answer what is in flight: every connection ends after the request at hand, long polls answer at once."""
    connections.stop()
    for poll in list(broker.delayed_requests):
        poll.give_up()
    with trio.move_on_after(_GRACE_S):
        while connections.all:
            # Again and again: a connection that had several requests in hand may begin another wait.
            for poll in list(broker.delayed_requests):
                poll.give_up()
            with trio.move_on_after(_RELEASE_S):
                await connections.drained()


async def _services(
    broker: Broker, plugins: "Plugins | None", contained: ExitStack, stop: trio.Event
) -> AbstractAsyncContextManager[None]:
    """Plugins are contained from before their first call on the loop until `contained` ends, after their last one.
    Nothing of them is imported where none is on. Raises StartError."""
    if broker.settings.text("lc.authorizer") and (plugins is None or not plugins.enabled):
        from leafcuttr.plugins.authorization import no_such

        raise StartError(no_such(broker))
    if broker.settings.is_given(SASL_MECHANISMS) and (plugins is None or not plugins.enabled):
        from leafcuttr.plugins.sasl_mechanisms import equip_mechanisms

        equip_mechanisms(broker)
    if plugins is None:
        broker.chains.equip(Tables())
        return nullcontext()
    if not plugins.enabled:
        from leafcuttr.plugins.implied import what_is_implied

        said = what_is_implied(broker.settings, plugins.all)
        broker.chains.equip(Tables({}, {}, *said))
        return nullcontext()
    from leafcuttr.plugins.activation import activate
    from leafcuttr.plugins.containment import Containment

    containment = Containment(plugins.enabled, broker.plugged.failures)
    contained.enter_context(containment.active())
    broker.plugged.find_holder = containment.watchdog.holder
    broker.plugged.starting = containment.starting
    return (await activate(broker, plugins, containment, stop)).running(stop)


def _bind(settings: Settings, listener: Listener, opened: ExitStack) -> Bound:
    bound = bind(settings, listener)
    _close_after(opened, bound.sockets)
    return bound


def _admin_endpoint(broker: Broker, connections: Connections) -> "AdminEndpoint":
    """In a worker thread. Raises OSError where the process may open no file, whatever the logs can do without."""
    needed = ["h11", "leafcuttr.server.admin.http", "leafcuttr.server.admin.endpoint"]
    if admin.PREFIX in broker.certificates:
        needed.append("leafcuttr.server.admin.tls")
    broker.runtime.descriptors.opening(lambda: import_late(*needed))
    from leafcuttr.server.admin.endpoint import AdminEndpoint

    return AdminEndpoint(broker, connections)


def _close_after(opened: ExitStack, socks: Sequence[socket.socket]) -> None:
    for sock in socks:
        opened.callback(sock.close)
