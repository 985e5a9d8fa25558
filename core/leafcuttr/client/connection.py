"""One connection to one broker, on trio: any number of requests under way, each with its time.

    connection = await nursery.start(ClientConnection(address, settings).run)
    response = await connection.request(MetadataRequest(topics=[]), timeout_s=30)

Two tasks, both in `run`: one receives, one sends what requests have left in the outbox. A task that waits for an answer
can be cancelled at any time: its request goes out all the same, and the answer is dropped. Because answers come in
order, a broker that does not answer in time holds up all that is behind: the connection is closed, as Java's clients
do, and the other requests under way end with ConnectionLost.

Where sessions end (KIP-368), a third task authenticates again before that. While it does, new requests wait: a broker
takes nothing else between the steps.
"""

import random
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.client.errors import ClientError, ConnectionLost, NotKafka, TimedOut
from leafcuttr.client.explaining import closed, not_kafka
from leafcuttr.client.protocol import Answered, ClientProtocol, Ready, VersionRanges, api_of
from leafcuttr.client.sasl.exchange import SaslExchange
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.client.streams import ClientStream, broken, open_stream

if TYPE_CHECKING:
    from leafcuttr.client.tls import TlsContexts

_AGAIN: Final = (0.85, 0.95)
"""When to authenticate again, as a part of the session's time: KIP-368's numbers."""


class AwaitedAnswer:
    """A request under way."""

    __slots__ = ("answer", "correlation_id", "done", "error", "request")

    def __init__(self, request: Any, correlation_id: int) -> None:
        self.request = request
        self.correlation_id = correlation_id
        self.done = trio.Event()
        self.answer: Answered | None = None
        self.error: ClientError | None = None


class ClientConnection:
    """Not to be opened again. `error` says why it has ended."""

    def __init__(
        self, address: HostPort, settings: ClientSettings, contexts: "TlsContexts | None" = None
    ) -> None:
        self.address = address
        self.error: ClientError | None = None
        self.ended_at = inf
        """In trio's time."""
        self._settings = settings
        self._contexts = contexts
        self._protocol = ClientProtocol(
            str(address), client_id=settings.client_id, max_frame=settings.max_response_bytes
        )
        self._waiting: dict[int, AwaitedAnswer] = {}
        self._outbox = trio.Event()
        self._answered = False
        self._lifetime_s: float | None = None
        self._may_send = trio.Event()
        self._may_send.set()
        self._scope = trio.CancelScope()

    @property
    def is_open(self) -> bool:
        return self.error is None

    @property
    def versions(self) -> VersionRanges:
        """By API key the lowest and the highest version that the broker offers."""
        return self._protocol.versions

    async def run(self, *, task_status: "trio.TaskStatus[ClientConnection]") -> None:
        """Connect, report `self` once requests can be sent, and go on until the connection ends. Before that it raises
        ClientError; afterwards nothing, for what the broker does."""
        stream = await self._open()
        try:
            task_status.started(self)
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._receive, stream)
                    nursery.start_soon(self._send, stream)
                    nursery.start_soon(self._authenticate_again)
        finally:
            stream.close()
            self.fail(ConnectionLost(f"the connection to {self.address} was closed"))

    async def request(
        self, request: Any, *, at_least: int = 0, at_most: int | None = None, timeout_s: float
    ) -> Any:
        """The response, None for a request that has none. Raises ClientError: TimedOut, ConnectionLost, ApiNotOffered,
        UnreadableResponse. WireError is for a request that cannot be written."""
        deadline = trio.current_time() + timeout_s
        while not self._may_send.is_set():
            with trio.move_on_at(deadline) as scope:
                await self._may_send.wait()
            if scope.cancelled_caught:
                raise self._late(request, timeout_s)
        return await self._ask(request, (at_least, at_most), timeout_s, deadline)

    def send_now(self, request: Any, *, at_most: int | None = None) -> AwaitedAnswer | None:
        """Send a request that has a response, in its place behind those before; None where it would have to wait for
        that. Raises ApiNotOffered, WireError."""
        if self.error is not None or not self._may_send.is_set():
            return None
        return self._send_request(request, 0, at_most)

    async def response(self, waiting: AwaitedAnswer, timeout_s: float, deadline: float) -> Any:
        """To what was sent: `timeout_s` after that, which is at the deadline, it is late. Raises as `request`."""
        try:
            with trio.move_on_at(deadline):
                await waiting.done.wait()
        finally:
            self._waiting.pop(waiting.correlation_id, None)
        if waiting.answer is not None:
            return await self._read(waiting.answer)
        raise waiting.error or self._late(waiting.request, timeout_s)

    async def _ask(
        self, request: Any, versions: tuple[int, int | None], timeout_s: float, deadline: float
    ) -> Any:
        if self.error is not None:
            raise ConnectionLost(str(self.error))
        waiting = self._send_request(request, *versions)
        if waiting is None:
            await trio.lowlevel.checkpoint()
            return None
        return await self.response(waiting, timeout_s, deadline)

    def _send_request(self, request: Any, at_least: int, at_most: int | None) -> AwaitedAnswer | None:
        correlation = self._protocol.send(request, at_least=at_least, at_most=at_most)
        self._outbox.set()
        if correlation is None:
            return None
        waiting = self._waiting[correlation] = AwaitedAnswer(request, correlation)
        return waiting

    def fail(self, error: ClientError) -> None:
        """End it; whatever is under way ends with this error. The first reason counts."""
        if self.error is not None:
            return
        self.error = error
        self.ended_at = trio.current_time()
        for waiting in self._waiting.values():
            waiting.error = error
            waiting.done.set()
        self._may_send.set()
        self._scope.cancel()

    async def _open(self) -> ClientStream:
        limit = self._settings.connect_timeout_s
        stream: ClientStream | None = None
        try:
            with trio.fail_after(limit):
                stream = await open_stream(self.address, self._settings, self._contexts)
                await self._begin(stream)
                return stream
        except trio.TooSlowError:
            error: ClientError = TimedOut(
                f"no broker answers at {self.address} within {limit:g} seconds"
                if stream is None
                else f"{self.address} does not answer {self._protocol.oldest} within {limit:g} seconds"
            )
        except (OSError, trio.BrokenResourceError) as raised:
            error = self._closed(raised)
        except ClientError as raised:
            error = raised
        except BaseException:
            if stream is not None:
                stream.close()
            raise
        if stream is not None:
            stream.close()
        self.error = error
        raise error

    async def _begin(self, stream: ClientStream) -> None:
        """ApiVersions and authentication, one request at a time."""

        async def ask(request: Any, at_least: int) -> Any:
            self._protocol.send(request, at_least=at_least)
            event = await self._next(stream)
            assert isinstance(event, Answered)
            return event.read()

        self._protocol.start()
        while not isinstance(await self._next(stream), Ready):
            pass
        await self._authenticate(ask)

    async def _authenticate(self, ask: Callable[[Any, int], Awaitable[Any]]) -> None:
        if self._settings.sasl is None:
            return
        exchange = SaslExchange(self._settings.sasl, str(self.address))
        while exchange.request is not None:
            response = await ask(exchange.request, exchange.at_least)
            if exchange.takes_long:
                await trio.to_thread.run_sync(exchange.answered, response)
            else:
                exchange.answered(response)
        self._lifetime_s = exchange.lifetime_s

    async def _authenticate_again(self) -> None:
        limit = self._settings.request_timeout_s

        async def ask(request: Any, at_least: int) -> Any:
            return await self._ask(request, (at_least, None), limit, trio.current_time() + limit)

        while self._lifetime_s is not None:
            await trio.sleep(self._lifetime_s * random.uniform(*_AGAIN))
            self._may_send = trio.Event()
            try:
                await self._authenticate(ask)
            except ClientError as error:
                self.fail(error)
                return
            self._may_send.set()

    async def _next(self, stream: ClientStream) -> Ready | Answered:
        """The next event, while nothing else receives or sends. Raises ClientError, OSError."""
        while True:
            if out := self._protocol.data_to_send():
                await stream.send(out)
            elif (event := self._protocol.next_event()) is not None:
                return event
            elif not self._protocol.has_data_to_send:
                await self._take(stream)

    async def _take(self, stream: ClientStream) -> None:
        size = await stream.receive_into(self._protocol.buffer())
        if not size:
            raise self._closed()
        try:
            self._protocol.received(size)
        except NotKafka as error:
            raise (
                error if self.versions else not_kafka(str(self.address), self._settings, error.said)
            ) from None

    async def _receive(self, stream: ClientStream) -> None:
        try:
            while True:
                await self._take(stream)
                while (event := self._protocol.next_event()) is not None:
                    assert isinstance(event, Answered)
                    self._hand_out(event)
        except (OSError, trio.BrokenResourceError) as error:
            self.fail(self._closed(error))
        except ClientError as error:
            self.fail(error)

    def _hand_out(self, answer: Answered) -> None:
        self._answered = True
        waiting = self._waiting.pop(answer.correlation_id, None)
        if waiting is not None:
            waiting.answer = answer
            waiting.done.set()

    async def _send(self, stream: ClientStream) -> None:
        try:
            while True:
                if out := self._protocol.data_to_send():
                    await stream.send(out)
                else:
                    await self._outbox.wait()
                    self._outbox = trio.Event()
        except (OSError, trio.BrokenResourceError) as error:
            self.fail(self._closed(error))

    async def _read(self, answer: Answered) -> Any:
        try:
            if answer.has_much:
                return await trio.to_thread.run_sync(answer.read)
            return answer.read()
        except ClientError as error:
            self.fail(error)
            raise

    def _late(self, request: Any, timeout_s: float) -> TimedOut:
        error = TimedOut(
            f"{self.address} does not answer {api_of(request).name} within {timeout_s:g} seconds"
        )
        self.fail(ConnectionLost(f"the connection was closed, because {error}"))
        return error

    def _closed(self, error: BaseException | None = None) -> ClientError:
        if error is not None and (why := broken(self.address, error)) is not None:
            return why
        ready = bool(self.versions)
        said = b"" if ready else self._protocol.cut_off()
        return closed(str(self.address), self._settings, ready=ready, answered=self._answered, said=said)
