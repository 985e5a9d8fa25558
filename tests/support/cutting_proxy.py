"""A proxy in front of a broker, on trio, that cuts connections at chosen bytes. The broker has to advertise its port.

proxy = CuttingProxy()
with running_broker(folder, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.serve, broker.port)
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator

import trio


class CuttingProxy:
    """`cuts` gives, for each connection in turn, how many bytes of the client and how many of the broker pass before
    both sides are cut; None for no limit. Once it is exhausted nothing is cut. While `is_open` is False connections are
    refused, by closing them at once."""

    def __init__(self, cuts: Iterable[tuple[int | None, int | None]] = ()) -> None:
        self.cuts: Iterator[tuple[int | None, int | None]] = iter(cuts)
        self.connections = 0
        self.cut = 0
        self.is_open = True
        self.mangle: Callable[[bytes], bytes] | None = None
        """What becomes of the bytes of the broker."""
        self._running: set[trio.CancelScope] = set()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    async def serve(self, port: int) -> None:
        """Until cancelled."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._socket))

        async def handle(client: trio.SocketStream) -> None:
            await self._connection(client, port)

        await trio.serve_listeners(handle, [listener])

    def cut_all(self) -> None:
        """Cut what is connected now."""
        for scope in list(self._running):
            scope.cancel()

    async def _connection(self, client: trio.SocketStream, port: int) -> None:
        self.connections += 1
        async with client:
            if not self.is_open:
                return
            of_client, of_broker = next(self.cuts, (None, None))
            try:
                broker = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                return
            async with broker:
                with trio.CancelScope() as scope:
                    self._running.add(scope)
                    try:
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(self._pass, client, broker, of_client, client, scope)
                            nursery.start_soon(self._pass, broker, client, of_broker, client, scope)
                    finally:
                        self._running.discard(scope)

    async def _pass(
        self,
        source: trio.SocketStream,
        target: trio.SocketStream,
        limit: int | None,
        client: trio.SocketStream,
        scope: trio.CancelScope,
    ) -> None:
        try:
            while data := bytes(await source.receive_some(65536)):
                if target is client and self.mangle is not None:
                    data = self.mangle(data)
                if limit is not None and len(data) >= limit:
                    self.cut += 1
                    await target.send_all(data[:limit])
                    break
                if limit is not None:
                    limit -= len(data)
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass
        scope.cancel()
