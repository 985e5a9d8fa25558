"""A client of the admin endpoint that can send what no HTTP library would."""

from __future__ import annotations

import trio
import trio.testing

from leafcuttr.state.broker import Broker

ON = {"lc.metrics.enable": "true", "lc.metrics.port": "0"}


Answer = tuple[int, dict[str, str], bytes]


class Client:
    """One connection to a router, over the loopback, and what it gets."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._pending = b""

    async def ask(self, text: str, *, head: bool = False) -> Answer:
        await self.stream.send_all(text.replace("\n", "\r\n").encode())
        return await self.answer(head=head)

    async def get(self, path: str) -> Answer:
        return await self.ask(f"GET {path} HTTP/1.1\nHost: x\n\n")

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer. Raises EOFError at the end of the stream."""
        while b"\r\n\r\n" not in self._pending:
            await self._more()
        text, _, self._pending = self._pending.partition(b"\r\n\r\n")
        first, *lines = text.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = b"" if head else await self._body(headers)
        return int(first.split()[1]), headers, body

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await self._take(int(headers["content-length"]))
        if headers.get("transfer-encoding") != "chunked":
            return await self.rest()
        body = b""
        while True:
            while b"\r\n" not in self._pending:
                await self._more()
            size, _, self._pending = self._pending.partition(b"\r\n")
            piece = await self._take(int(size, 16) + 2)
            body += piece[:-2]
            if int(size, 16) == 0:
                return body

    async def _take(self, count: int) -> bytes:
        while len(self._pending) < count:
            await self._more()
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    async def _more(self) -> None:
        data = await self.stream.receive_some(65536)
        if not data:
            raise EOFError
        self._pending += data

    async def rest(self) -> bytes:
        """All that comes until the peer closes."""
        try:
            while True:
                await self._more()
        except (EOFError, trio.BrokenResourceError):
            return self._pending


async def ask(broker: Broker, path: str, *headers: str) -> Answer:
    assert broker.admin is not None
    stream = await trio.open_tcp_stream(broker.admin.host, broker.admin.port)
    async with stream:
        lines = "".join(f"{line}\n" for line in headers)
        return await Client(stream).ask(f"GET {path} HTTP/1.1\nHost: x\n{lines}\n")
