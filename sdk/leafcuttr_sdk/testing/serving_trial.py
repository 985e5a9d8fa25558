"""Clients that do badly, on the loop of a real broker: what a handler of `Broker.serve` has to bear."""

import random
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_sdk.testing.report import Notes, literally
from leafcuttr_sdk.testing.sending_trial import SendingTrial

if TYPE_CHECKING:
    from leafcuttr.config.listeners import Listener
    from leafcuttr.state.plugged import Plugged, ServedListener
    from leafcuttr_sdk.broker import Broker

CHECK: Final = "clients"
PROMISE: Final = (
    "its handler ends with its client, and none makes it raise: resets, garbage, half-open, slow ones"
)
END_S: Final = 5.0
"""How long a handler may go on after its client has gone."""
_SEND_S: Final = 1.0
_LOOK_S: Final = 0.01
_QUIET_S: Final = 0.2
"""How long nothing comes until an answer is taken to be complete."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)

Client = Callable[[trio.SocketStream], Awaitable[None]]


def _garbage() -> dict[str, bytes]:
    chance = random.Random(14)
    return {
        "zeros": bytes(64 * 1024),
        "random bytes": chance.randbytes(16 * 1024),
        "bytes of 255": b"\xff" * 4096,
        "text that is no UTF-8": b"\xc3(\xa0\xa1\n" * 500,
        "empty lines": b"\n" * 2000,
        "a line without an end": b"x" * (1024 * 1024),
        "a request of HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a ClientHello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(512),
    }


class ServingTrial:
    """Tries one served listener; what is wrong goes into `notes`."""

    def __init__(
        self,
        notes: Notes,
        listener: "Listener",
        served: "ServedListener",
        requests: Sequence[bytes] = (),
    ) -> None:
        """`requests` are what good clients send."""
        self._notes = notes
        self._listener = listener
        self._served = served
        self._requests = requests
        self.sending: Final = SendingTrial(notes, served)
        self._open: list[trio.SocketStream] = []

    async def run(self) -> None:
        """Try everything. The connections that it leaves open are for the stop that follows."""
        for what, client in self._clients():
            if not await self._try(what, client):
                return
        for what, client in self._good_clients():
            failed = self._served.ends.get("failed", 0)
            if not await self._try(what, client):
                return
            if self._served.ends.get("failed", 0) == failed:
                self.sending.ended()
        await self._leave_open()

    def _good_clients(self) -> list[tuple[str, Client]]:
        """They read all that they are sent."""
        given = {f"request {number}": data for number, data in enumerate(self._requests, 1)}
        if self.sending.used:
            given.update(list(_garbage().items())[2:5])
        return [(f"sends {name} and reads the answer", _reader(data)) for name, data in given.items()] + [
            (f"sends request {number} byte by byte and reads the answer", _reader(data, 1))
            for number, data in enumerate(self._requests, 1)
        ]

    def _clients(self) -> list[tuple[str, Client]]:
        clients: list[tuple[str, Client]] = [
            ("resets its connection at once", _reset),
            ("leaves at once", _leave),
            ("ends its side at once, and then leaves", _half_close),
            ("takes nothing of what is sent to it", _take_nothing),
        ]
        for name, data in _garbage().items():
            clients += [
                (f"sends {name}", _sender(data)),
                (f"resets its connection after {name}", _sender(data[:300], then=_reset)),
            ]
        return [*clients, ("sends one byte after the other", _trickle)]

    async def _try(self, what: str, client: Client) -> bool:
        """Whether the handler has ended, so that it can be tried on."""
        failed, accepted = self._served.ends.get("failed", 0), self._served.accepted
        try:
            stream = await self._connected()
        except OSError as error:
            self._notes.add(CHECK, f"a client cannot connect: {literally(str(error))}")
            return False
        with trio.move_on_after(END_S):
            # The handler may end the connection first.
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                await client(stream)
        await trio.aclose_forcefully(stream)
        ended = await self._ended(accepted)
        if self._served.ends.get("failed", 0) > failed:
            raised = literally(self._served.failures[-1])
            self._notes.add(
                CHECK,
                f"a client that {what} made the handler raise {raised}: answer it, or return; an exception says that "
                "the handler is at fault",
            )
        if not ended:
            self._notes.add(
                CHECK,
                f"a client that {what} has gone, and its handler goes on {END_S:.0f} s later: return when receive_some "
                'gives b"", let a task receive while another one sends, and store what has arrived together',
            )
        return ended

    async def _ended(self, accepted: int) -> bool:
        """Whether the handler of the connection after so many has ended."""
        for _ in range(round(END_S / _LOOK_S)):
            if self._served.accepted > accepted and not self._served.connections:
                return True
            await trio.sleep(_LOOK_S)
        return False

    async def _connected(self) -> trio.SocketStream:
        host = self._listener.host
        if host.startswith("/"):
            return await trio.open_unix_socket(host)
        return await trio.open_tcp_stream(_reachable(host), self._listener.port)

    async def _leave_open(self) -> None:
        for data in (b"", b"x", b"\n"):
            stream = await self._connected()
            await stream.send_all(data)
            self._open.append(stream)

    def close(self) -> None:
        """What was left open, after the stop."""
        if self._served.ends.get("cut"):
            self._notes.add(
                CHECK,
                "a handler went on 2 s after its service was stopped, and its connection was cut: let trio.Cancelled "
                "through, and wait for nothing but its client for long",
            )
        for stream in self._open:
            stream.socket.close()


def plugged_of(broker: "Broker") -> "Plugged":
    """What the broker behind what plugins have of it knows about plugins."""
    core: Any = vars(broker)["_core"]
    plugged: Plugged = core.plugged
    return plugged


async def try_listeners(broker: "Broker", notes: Notes, requests: Sequence[bytes] = ()) -> list[ServingTrial]:
    """Try each listener that the plugin serves at this moment. TLS is the broker's: such listeners are left out."""
    plugged = plugged_of(broker)
    trials: list[ServingTrial] = []
    for prefix, served in plugged.served.items():
        listener = plugged.listeners.get(prefix) or plugged.listeners.get(f"{prefix}.unix")
        if listener is not None and listener.protocol == "PLAINTEXT":
            trials.append(ServingTrial(notes, listener, served, requests))
    for trial in trials:
        await trial.run()
    return trials


def _reachable(host: str) -> str:
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


async def _leave(stream: trio.SocketStream) -> None:
    await stream.aclose()


async def _reset(stream: trio.SocketStream) -> None:
    if stream.socket.family != socket.AF_UNIX:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    await stream.aclose()


async def _half_close(stream: trio.SocketStream) -> None:
    await stream.send_eof()
    with trio.move_on_after(_SEND_S):
        while await stream.receive_some():
            pass


async def _take_nothing(stream: trio.SocketStream) -> None:
    with trio.move_on_after(_SEND_S):
        for _ in range(2000):
            await stream.send_all(b"x\n" * 500)
    await _reset(stream)


async def _trickle(stream: trio.SocketStream) -> None:
    for byte in b"hello\r\n\x00\xff\n":
        await stream.send_all(bytes([byte]))
        await trio.lowlevel.checkpoint()


def _reader(data: bytes, piece: int = 1 << 20) -> Client:
    async def client(stream: trio.SocketStream) -> None:
        for at in range(0, len(data), piece):
            await stream.send_all(data[at : at + piece])
            await trio.lowlevel.checkpoint()
        while True:
            with trio.move_on_after(_QUIET_S) as quiet:
                if not await stream.receive_some():
                    return
            if quiet.cancelled_caught:
                return

    return client


def _sender(data: bytes, then: Client = _leave) -> Client:
    async def client(stream: trio.SocketStream) -> None:
        with trio.move_on_after(_SEND_S):
            await stream.send_all(data)
        await then(stream)

    return client
