"""What `Broker.serve` gives to the handler of a listener: one connection of a client, as a byte stream."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from leafcuttr_sdk._described import described

if TYPE_CHECKING:
    import ssl

    from trio.abc import HalfCloseableStream as _Stream
else:
    _Stream = object  # the broker's streams are of both classes; the SDK imports no trio


@described
class Peer(NamedTuple):
    """The other end of a connection. Prints as `10.0.0.7:50412`, `[::1]:50412` or `unix:/run/plugin.sock`."""

    host: str
    """Its address; of a Unix socket the path of that socket, after `unix:`."""
    port: int
    """0 for a Unix socket."""

    def __str__(self) -> str:
        if self.host.startswith("unix:"):
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ByteStream(_Stream):
    """A connection: a `trio.abc.HalfCloseableStream`, over TCP, TLS, a Unix socket or a WebSocket.

    As for any stream of trio one task may receive while another one sends; two that do the same at once get
    `trio.BusyResourceError`. A connection that breaks raises `trio.BrokenResourceError`, and what a handler lets out of
    that is a reset and no failure. `send_all` returns once the system has taken the bytes; where a client takes none
    of them for `<prefix>.send.timeout.ms` it raises `trio.BrokenResourceError`. So what waits for a client is what the
    handler has in hand, and about 128 KiB in the system. Over TLS and WebSocket `send_eof` raises NotImplementedError:
    neither can end one direction only.
    """

    __slots__ = ()

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        """Give the system as much of this as it takes at once, without waiting, and return how many bytes that were.
        The rest is for `send_all`. 0 while another task sends, and always over TLS and WebSocket: what they send they
        have to wait for. For a handler that answers many clients in one step of the loop.

        Raises trio.BrokenResourceError where the client has gone, and trio.ClosedResourceError after the end."""
        return 0

    @property
    def peer(self) -> Peer:
        """The client's address."""
        raise NotImplementedError

    @property
    def listener(self) -> str:
        """The prefix of the settings of the listener that it came in by."""
        raise NotImplementedError

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        """The certificate that the client has shown and that was verified, as `ssl.SSLSocket.getpeercert` gives it.
        None: there is none, or no TLS."""
        raise NotImplementedError

    @property
    def peer_certificate_der(self) -> bytes | None:
        """The same certificate in DER."""
        raise NotImplementedError

    @property
    def tls(self) -> "ssl.SSLObject | None":
        """What TLS has agreed on: `version()`, `cipher()`, `selected_alpn_protocol()`. None: there is no TLS."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether a request is under way, for a handler that receives while it answers: it sets this to True when a
        request has come, and to False when the answer is sent.

        A busy connection is not ended for being idle, nor at the stop of the service, before its two seconds are over.
        A handler that has set it once has the idle time counted from when it last set it to False, whatever comes or
        goes; so one that sets False at its beginning bounds the time until the first request is complete.
        """
        raise NotImplementedError

    @busy.setter
    def busy(self, busy: bool) -> None:
        raise NotImplementedError


Handler: TypeAlias = Callable[[ByteStream], Awaitable[None]]
"""What serves one connection, in a task of its own. When it returns the connection is closed.

Whatever it raises ends this connection only: `trio.BrokenResourceError` of the stream is a client that has gone;
anything else is a failure of the handler, and one line in the log a minute says so, with the number of times.

It is cancelled where the client has been silent for `<prefix>.idle.timeout.ms` while the handler waits for it in
`receive_some`. At the end of the service it is cancelled at its next `receive_some` that finds no bytes there, or after
two seconds wherever it is: so what it has begun to do for a request is done, and no handler has to know of the stop. In
a `finally` it may still send under a shield; a second later the connection is cut. A handler that receives while it
answers says what it is at by `ByteStream.busy`.
"""
