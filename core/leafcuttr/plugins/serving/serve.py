"""`Broker.serve`: from the settings of a listener to one that is served."""

from collections.abc import Sequence
from typing import Any

import trio

from leafcuttr.plugins.listening import listen
from leafcuttr.plugins.serving.limits import limits_of
from leafcuttr.plugins.serving.server import Server
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk.serving import Handler
from leafcuttr_sdk.settings import Settings


async def serve(
    core: Core,
    plugin: str,
    settings: Settings,
    prefix: str,
    handler: Handler,
    *,
    authenticates: bool = False,
    alpn_protocols: Sequence[str] = (),
    refusal: bytes = b"",
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
) -> None:
    """See `leafcuttr_sdk.Broker.serve`. Raises PluginError."""
    limits = limits_of(settings, prefix)
    async with listen(core, plugin, settings, prefix, authenticates=authenticates) as listening:
        server = Server(
            core.plugged,
            plugin,
            prefix,
            handler,
            limits,
            lambda: listening.max_connections,
            listening.ssl_context,
            listening.unix_path,
            refusal=refusal,
        )
        if alpn_protocols and listening.ssl_context is not None:
            listening.ssl_context.set_alpn_protocols(list(alpn_protocols))
        core.plugged.served[prefix] = server
        try:
            task_status.started(listening)
            await server.run(listening.sockets, listening.close)
        finally:
            del core.plugged.served[prefix]
