"""One client connection: bytes in, requests handled in order, answers out.

A connection is served by the reactor as long as nothing in it has to wait; see there for the rounds. When something has
to be awaited, the connection leaves the reactor: its own task awaits it, handles the requests that have arrived behind
it, and then gives the connection back. Either way one request is handled at a time and answers leave in order, as in
Kafka. Reading a request of very many elements is awaited so, and writing an answer of so many. `states` has the table
of a connection's life.

Longer than other modules because the order of requests and answers is one thing: every way through it is here.

What a peer can do wrong ends here: a frame that is too large, a request that cannot be read or that this broker
does not speak closes the connection with one line in the log, after the answers to what came before it. Nothing
else notices.
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.handlers import api_versions, produce
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delayed import DelayedAnswer
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.memory import RequestMemory
from leafcuttr.server.outbox import Outbox
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.reactor import Reactor, Served
from leafcuttr.server.receive import SMALL_FRAME, FrameTooLarge, ReceiveBuffer
from leafcuttr.server.repeated_produce import RepeatedProduce
from leafcuttr.server.routes import FEW_ELEMENTS, REFUSED, Route, route
from leafcuttr.server.states import ENDED, READS, WAITS, WATCHED, Event, State, after
from leafcuttr.server.transport import Transport
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.errors import EncodeError, ManyElements, WireError
from leafcuttr.wire.frame import read_client_id
from leafcuttr_sdk._stopwatch import Stopwatch
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    from leafcuttr.server.login.sessions import Sessions
    from leafcuttr.server.throttle import ConnectionThrottle, Pause

logger = logging.getLogger(__name__)

# Answers are sent before more requests are handled once this much waits: a peer that does not read costs itself only.
# More than this is sent by the connection's task, in slices between which others have their turn.
_OUTBOX_LIMIT: Final = 256 * 1024
# How long the requests that connections have sent together may keep the reactor before others have their turn.
_TURN_S: Final = 0.002
_DIGITS: Final = re.compile(r"[0-9]+")
_PRODUCE: Final = int(ApiKey.PRODUCE)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
# A member of an Enum takes longer to look up than a global, and these two are compared in every round.
_READING: Final = State.READING
_CLOSING: Final = State.CLOSING


class CloseConnection(Exception):
    """The peer gets no answer; the message is the line in the log."""


class SessionOver(CloseConnection):
    """The session has ended, and the client has sent something else than a log-in."""


def _route_to_log_in(key: int) -> Route | None:
    """Of a client whose session has ended. Raises SessionOver."""
    if key >> 16 not in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        raise SessionOver(
            "its client has not logged in again within connections.max.reauth.ms or its token's time"
        )
    return route(key)


class Connection:
    """The state of one connection.

    `arrivals` counts the times that something arrived, `acknowledged` the bytes that the peer has received; while the
    connection `waits` (for a long poll, a rebalance, the disk) it is not idle. The sweeper of idle connections reads
    them.
    """

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        context: RequestContext,
        memory: RequestMemory,
        queue: RequestQueue,
        reactor: Reactor,
    ) -> None:
        self._broker = broker
        self._transport = transport
        self.descriptor = transport.descriptor
        self._context = context
        self._memory = memory
        self._queue = queue
        self._reactor = reactor
        self.buffer = ReceiveBuffer(broker.settings.int("socket.request.max.bytes"))
        self.produce_turn = produce.Turn()
        self.repeated = RepeatedProduce(
            broker, context, self.produce_turn, counted_from=SMALL_FRAME if memory.limited else None
        )
        self._outbox = Outbox(transport)
        self._client_id_bytes: bytes | None = None
        self._sessions: Sessions | None = None  # its client has logged in
        self._route: Callable[[int], Route | None] = route
        self._next: Route | None = None  # the request at hand: its body is _at.._end of the buffer
        self._begin = self._at = self._end = 0
        self._long_produce: Any = None  # the request at hand, if it was too long to be read at once
        self._awaited: Awaitable[Any] | None = (
            None  # before the request at hand is answered, or the next one begun
        )
        self._reply_to: tuple[Route, int] | None = None  # what the result of that answers, if anything
        self._throttle: ConnectionThrottle | None = None  # if its client has a quota
        self._stopwatch = Stopwatch()  # which runs while any client has a quota of the loop's time
        self._pause: Pause | None = None  # the last one
        self.state = State.WORKING
        self.wakes_at = inf
        self._handed_over = trio.Event()
        self._scope = trio.CancelScope()
        self._yield_at = self._arrived_at = 0.0
        # One request of a round is handled, whatever the others of that round have taken.
        self._has_free_turn = False
        self._counts = broker.counts
        self.arrivals = 0

    @property
    def listener(self) -> str:
        return self._context.listener.name

    @property
    def context(self) -> RequestContext:
        return self._context

    def has_logged_in(self, begun: bytes, sessions: "Sessions") -> None:
        """Before `run`: its context says who it is, and this much of its next request has come."""
        while begun:
            space = self.buffer.free_space()
            piece, begun = begun[: len(space)], begun[len(space) :]
            space[: len(piece)] = piece
            self.buffer.received(len(piece))
        login = self._context.login
        assert login is not None
        login.on_failure = self._login_has_failed
        login.on_login = self._has_logged_in_again
        self._sessions = sessions
        sessions.begin(self)

    def use_quotas(self) -> None:
        """Those that hold for its client now."""
        context = self._context
        name, client_id = context.client.principal.name, context.client.client_id
        context.limits = limits = self._broker.quotas.limits_of(name, client_id)
        if limits is None:
            self._throttle = None
        elif self._throttle is None:
            from leafcuttr.server.throttle import ConnectionThrottle

            self._stopwatch.take()  # what it has spent without a quota
            self._throttle = ConnectionThrottle(limits, self._stopwatch, self._counts)
        else:
            self._throttle.limits = limits

    def quotas_changed(self) -> None:
        """The same, and it waits no more for one that was."""
        self.use_quotas()
        if self._pause is not None:
            self._pause.end()

    @property
    def measured(self) -> Served:
        from leafcuttr.server.throttle import MeasuredConnection

        return MeasuredConnection(self, self._stopwatch)

    @property
    def is_withdrawn(self) -> bool:
        """Whether what its client has logged in with does not hold any more."""
        login = self._context.login
        return login is not None and not login.still_holds()

    @property
    def session_ends(self) -> float | None:
        """When its client has to have logged in again (KIP-368), by the monotonic clock; None: never."""
        login = self._context.login
        return None if login is None else login.expires

    def end_session(self) -> None:
        """Its client has not logged in again in time: nothing else is answered any more."""
        self._route = _route_to_log_in
        # What is remembered of it counts for this client no more.
        self._context.client = self._context.client._replace()

    def _has_logged_in_again(self) -> None:
        assert self._sessions is not None
        self._route = route
        self._sessions.begin_again(self)

    def _login_has_failed(self) -> None:
        """A later log-in: the answer goes out, and what has come behind it is not handled."""
        assert self._sessions is not None
        self._sessions.failed_again[self.listener] += 1
        self._move(Event.END)

    @property
    def peer(self) -> str:
        """Its address and port."""
        return self._context.client.peer

    def __str__(self) -> str:
        return f"{self._context.client.peer} on {self._context.listener.name}"

    @property
    def buffered(self) -> int:
        return self._transport.buffered

    # The connection's task

    async def run(self) -> None:
        """Serve until the peer closes, misbehaves or the server stops. Raises nothing but Cancelled."""
        with self._scope:
            try:
                if self._broker.quotas.of_clients:
                    self.use_quotas()
                self._move(Event.CAUGHT_UP)
                while self.state is not State.CLOSED:
                    await self._handed_over.wait()
                    measured = self._broker.quotas.of_loop_time
                    await (self._stopwatch.measured(self._work()) if measured else self._work())
                    self._move(Event.CAUGHT_UP)
                self._transport.half_close()
            except Exception as error:
                self.fail(error)
            finally:
                self._move(Event.CLOSE)
                self._memory.release(self)
                if self.produce_turn.waits:
                    # Cancelled before it came to that; what is staged has to be written all the same.
                    with trio.CancelScope(shield=True):
                        try:
                            await self.produce_turn.written()
                        except Exception as error:
                            self.fail(error)
                if self._pause is not None and self._awaited is self._pause:
                    self._pause.close()
                elif inspect.iscoroutine(self._awaited) or isinstance(self._awaited, DelayedAnswer):
                    self._awaited.close()

    def _move(self, event: Event) -> None:
        """To the state that follows. The reactor watches the connection, or its task is woken, as the state says."""
        before = self.state
        self.state = state = after(before, event)
        if before in WATCHED:
            if state not in WATCHED:
                self._leave_reactor()
        elif state in WATCHED:
            self._handed_over = trio.Event()
            self._reactor.add(self)

    def _leave_reactor(self) -> None:
        self._reactor.remove(self)
        repeated = self.repeated
        if repeated.pending is not None:
            repeated.hand_to_turn(repeated.pending)
        self._handed_over.set()

    def stop(self) -> None:
        """End the connection after the requests that have arrived."""
        if self.state is State.READING:
            self._reactor.serve(self)
        self._move(Event.STOP)
        if self._pause is not None:
            self._pause.end()

    def close(self) -> None:
        """After `run`: give the descriptor back."""
        self._transport.close()

    @property
    def waits(self) -> bool:
        return self.state in WAITS

    @property
    def acknowledged(self) -> int:
        """Bytes of answers that the peer's system has acknowledged. What one call has given to the kernel may be many
        megabytes, and take long to leave; a peer that reads nothing acknowledges nothing once its own buffer is full.
        """
        return self._transport.acknowledged

    @property
    def reads_disk(self) -> bool:
        """Whether an answer waits for the disk, not for the peer."""
        return self._outbox.warming

    def end_if_abandoned(self) -> None:
        """End the connection if its peer has gone while a handler waits: nothing is received then."""
        if self._transport.peer_gone:
            logger.debug("the connection from %s ended while it waited", self)
            self._scope.cancel()

    def shrink_buffer(self) -> None:
        """Give the buffer's memory back, of a connection on which nothing has arrived for a while."""
        if self.state in WATCHED:
            self.buffer.shrink()

    def abort(self) -> None:
        """End the connection at once: whatever waits on the transport returns."""
        self._move(Event.END)
        self._transport.abort()

    async def _work(self) -> None:
        """Await what has to be, and handle the requests that have arrived behind it, to the last answer.

        Most of it ends without a wait, so the turn goes on through as much of it as it lasts.
        """
        self._yield_at = perf_counter() + Pace.share()
        while True:
            if self.produce_turn.waits:
                # Before anything that depends on the peer: a log with something staged can neither roll nor close.
                await self._wait_for(self.produce_turn.written())
            if self._outbox.size:
                await self._outbox.flush()
            awaited, self._awaited = self._awaited, None
            if awaited is not None and not self._answer_awaited(await self._wait_for(awaited)):
                continue
            if self.state is State.CLOSING:
                if self.produce_turn:
                    self._answer_produce()
            elif self._more_to_do():
                continue
            if not self._outbox.size and self._awaited is None:
                return

    def _more_to_do(self) -> bool:
        """One round of what the reactor does, alone; whether something waits again."""
        self.stage()  # a request that cannot be read does not keep those before it from being written
        try:
            produce.write_staged((self.produce_turn,))
        except Exception as error:
            self.fail_unwritten(error)
            return True
        try:
            more = self._answer()
        except Exception as error:
            self.fail(error)
            return True
        return more or self._awaited is not None or self.produce_turn.waits

    async def _wait_for(self, awaited: Awaitable[Any]) -> Any:
        self._move(Event.WAIT)
        try:
            return await awaited
        finally:
            self._move(Event.RESUME)

    # Steps of the reactor's rounds: they do not raise

    def receive(self, now_ms: int) -> bool:
        self.arrivals += 1
        buffer = self.buffer
        try:
            count = self._transport.receive_into(buffer.free_space())
            if not count:
                self._end_of_stream()
                return False
            if self._transport.buffered:
                self._reactor.look_again(self)
            buffer.received(count)
            start = buffer.start
            buffer.start = self.repeated.stage(buffer.view, start, buffer.end, now_ms)
            if buffer.start != start:
                return True
            self._reserve_memory()
        except BlockingIOError:
            pass
        except Exception as error:
            self.fail(error)
        self._arrived_at = now = perf_counter()
        self._yield_at = now + _TURN_S
        self._has_free_turn = True
        return False

    def _reserve_memory(self) -> None:
        """For the request that has begun to arrive; or wait for it. Raises FrameTooLarge."""
        size = self.buffer.frame_size()
        if size > SMALL_FRAME and not self._memory.try_reserve(self, size):
            self._awaited = self._memory.reserve(self, size)

    def receive_later(self) -> None:
        if self.state in WATCHED and self._transport.buffered:
            self._reactor.look_again(self)

    def answer_repeat(self, since: float) -> bool:
        if self.produce_turn or self._awaited is not None:
            return False
        repeated = self.repeated
        pending = repeated.pending
        if pending is not None:
            if not pending.done:
                self._arrived_at = since
                self._move(Event.PARK)
                pending.when_done(self._written)
                return True
            if pending.failure is not None:
                repeated.hand_to_turn(pending)
                return False
            repeated.pending = None
            self._counts.answered[_PRODUCE].add(perf_counter() - self._arrived_at, repeated.count)
        answer = repeated.answer()
        try:
            sent = self._transport.send(answer)
        except BlockingIOError:
            sent = 0
        except Exception as error:
            self.fail(error)
            return False
        if sent != len(answer):
            self._outbox.add(bytearray(answer[sent:]), ())
        elif not self.buffer.pending:
            return True
        return self._only_begun(since) and not self._outbox.size

    def _only_begun(self, since: float) -> bool:
        """Whether what is left in the buffer, which arrived not before `since`, is nothing but the beginning of a
        request that is welcome: the round has nothing to do for it."""
        self._arrived_at = since
        self._yield_at = perf_counter() + _TURN_S
        try:
            self._reserve_memory()
        except FrameTooLarge:  # which `stage` finds again
            return False
        return self._awaited is None and not self.buffer.has_frame

    def stage(self) -> None:
        if self.state is not _CLOSING:
            try:
                self._stage()
            except Exception as error:
                self.fail(error)

    def answer(self) -> bool:
        try:
            return self._answer()
        except Exception as error:
            self.fail(error)
            return False

    def finish_round(self) -> None:
        outbox = self._outbox
        try:
            sent = not outbox.size or (outbox.size <= _OUTBOX_LIMIT and outbox.flush_now())
        except Exception as error:
            self.fail(error)
            sent = False
        if self.state is not _READING:  # it has ended, and its task knows
            return
        awaited = self._awaited
        if (
            sent
            and awaited is not None  # mostly it is, and to ask an ABC takes a microsecond
            and isinstance(awaited, DelayedAnswer)
            and not awaited.has_to_be_awaited
        ):
            with suppress(FrameTooLarge):  # of what is behind this request: found again once that is read
                self._release_memory()
            self._move(Event.PARK)
            self.wakes_at = awaited.deadline
            self._reactor.awake_at(self)
            awaited.when_notified(self._notified)
        elif not sent or awaited is not None:
            self._move(Event.HAND_OVER)
        elif self.produce_turn.waits:
            self._move(Event.PARK)
            self.produce_turn.when_written(self._written)

    def _written(self) -> None:
        """A worker is done. By now the connection's task may have taken over, which waits for the worker itself."""
        if self.state is State.PARKED:
            self._reactor.written(self)

    def _notified(self) -> None:
        """The same of a delayed answer."""
        if self.state is State.PARKED:
            self._reactor.awake(self)

    def unpark(self) -> None:
        self._move(Event.AWAKE)
        self.wakes_at = inf
        self._yield_at = perf_counter() + _TURN_S

    def hand_over(self) -> None:
        self._move(Event.HAND_OVER)

    # What both do

    def _stage(self) -> None:
        """Stage the Produce requests that come next."""
        while self._awaited is None and (found := self._peek()) is not None and found.api.key == _PRODUCE:
            view = self.buffer.view
            if self._long_produce is None:
                try:
                    request, _ = found.read(view, self._at, self._end, FEW_ELEMENTS)
                except ManyElements:
                    self._awaited = self._read_produce(found)
                    return
            else:
                request, self._long_produce = self._long_produce, None
            self._next = None
            if self._throttle is not None:
                self._throttle.staged(self._end - self._begin - 4)
            self.produce_turn.stage(self._broker, self._context, request, found)
            if self.produce_turn.unfinished is not None:
                self._awaited = self.produce_turn.finish(self._broker)
                return
            if self.repeated.due(self._end - self._begin):
                frame = view[self._begin : self._end]
                self.repeated.learn(found, frame, self._at - self._begin, request)
            if perf_counter() > self._yield_at:
                return

    def _answer(self) -> bool:
        """Answer what was written; handle what comes next, up to a Produce. Whether that comes next."""
        turn = self.produce_turn
        if turn:
            if turn.waits or turn.unfinished is not None:
                return False
            self._answer_produce()
        elif (
            self._awaited is not None
            and isinstance(self._awaited, DelayedAnswer)
            and not self._answer_delayed(self._awaited)
        ):
            return False
        context = self._context
        while self._awaited is None and self.state is not _CLOSING and self._outbox.size <= _OUTBOX_LIMIT:
            found = self._peek()
            if found is None:
                self._release_memory()
                return False
            if self._has_free_turn:
                self._has_free_turn = False
            elif not self._yield_at:  # a new turn, in which at least this one is handled
                self._yield_at = perf_counter() + Pace.share()
            elif perf_counter() > self._yield_at:
                self._awaited = self._let_others()
                return False
            if found.api.key == _PRODUCE:
                return True
            if self._outbox.holds_files and not self._outbox.flush_now():
                # For the connection's task, also if the peer takes bytes again by the end of the round.
                self._awaited = self._let_others()
                return False
            self._next = None
            if found is REFUSED:
                self._refuse()
                continue
            # Bytes left over are ignored, as Kafka does: librdkafka sends some behind a Metadata for all topics.
            try:
                request, _ = found.read(self.buffer.view, self._at, self._end, FEW_ELEMENTS)
            except ManyElements:
                self._awaited, self._reply_to = self._handle_long(found), (found, context.correlation_id)
                return False
            response = found.handle(self._broker, context, request)
            if inspect.isawaitable(response):
                self._awaited, self._reply_to = response, (found, context.correlation_id)
            elif response is not None:
                self._add_answers(((context.correlation_id, found, response),))
        return False

    def _answer_delayed(self, delayed: DelayedAnswer) -> bool:
        """Look whether its wait is over, and its answer queued."""
        try:
            response = delayed.answer()
        except Exception:  # which ends the connection: nothing is waited for then
            self._awaited = None
            delayed.close()
            raise
        if response is None:
            return False
        self._awaited = None
        return self._answer_awaited(response)

    async def _let_others(self) -> None:
        with self._queue.waiting():
            await Pace.give_way()
        self._yield_at = 0.0

    async def _read_produce(self, found: Route) -> None:
        with self._queue.waiting():
            self._long_produce = await found.read_in_turns(self.buffer.view, self._at, self._end)

    async def _handle_long(self, found: Route) -> Any:
        with self._queue.waiting():
            request = await found.read_in_turns(self.buffer.view, self._at, self._end)
        response = found.handle(self._broker, self._context, request)
        return await response if inspect.isawaitable(response) else response

    def _answer_awaited(self, response: Any) -> bool:
        reply_to, self._reply_to = self._reply_to, None
        if reply_to is None or response is None:
            return True
        found, correlation_id = reply_to
        return self._add_answers(((correlation_id, found, response),))

    def _add_answers(self, answers: Sequence[tuple[int, Any, Any]]) -> bool:
        """Queue these answers; from a long one on that is awaited. Whether all of them are queued."""
        took = perf_counter() - self._arrived_at
        throttle, hold_s = self._throttle, 0.0
        if throttle is not None:
            answers, hold_s = throttle.charge(answers)
        for at, (correlation_id, found, response) in enumerate(answers):
            before = self._outbox.size
            try:
                self._outbox.add(*found.frame(correlation_id, response))
            except ManyElements:
                self._awaited = self._add_in_turns(answers[at:], hold_s)
                return False
            key = found.api.key
            if throttle is not None:
                throttle.sent(key, self._outbox.size - before)
            self._counts.answered[key].add(took)
            for code in found.errors(response):
                self._counts.failed(key, code)
        if hold_s:
            self._hold(hold_s)
        return True

    async def _add_in_turns(self, answers: Sequence[tuple[int, Any, Any]], hold_s: float) -> None:
        for correlation_id, found, response in answers:
            before = self._outbox.size
            self._outbox.add(*await found.frame_in_turns(correlation_id, response))
            key = found.api.key
            if self._throttle is not None:
                self._throttle.sent(key, self._outbox.size - before)
            self._counts.answered[key].add(perf_counter() - self._arrived_at)
            for code in await found.errors_in_turns(response):
                self._counts.failed(key, code)
        if hold_s:
            self._hold(hold_s)

    def _hold(self, seconds: float) -> None:
        """Read nothing for so long, once what is queued has been sent. One that is to end answers what has come."""
        if self.state not in READS:
            return
        if self._next is None:
            with suppress(FrameTooLarge):  # of what is behind this request: found again once that is read
                self._release_memory()
        from leafcuttr.server.throttle import Pause

        self._awaited = self._pause = Pause(trio.current_time() + seconds, self._awaited, self._counts)

    def _answer_produce(self) -> None:
        """A request with acks=0 has no answer; if it failed, the connection closes."""
        turn = self.produce_turn
        self._add_answers(turn.take())
        if turn.unanswered:
            self._counts.unanswered[_PRODUCE] = self._counts.unanswered.get(_PRODUCE, 0) + turn.unanswered
            turn.unanswered = 0
        if turn.refused:
            raise CloseConnection(f"a Produce request with acks=0 failed: {turn.refused}")

    def _peek(self) -> Route | None:
        """The route of the request at hand, or of the next complete one; its header goes into the context."""
        if self._next is not None:
            return self._next
        frame = self.buffer.next_frame()
        if frame is None:
            return None
        at, end = frame
        self._begin = at - 4
        view, context = self.buffer.view, self._context
        if end - at < 8:
            raise CloseConnection(f"a request of {end - at} bytes has no header")
        key = int.from_bytes(view[at : at + 4], "big")
        try:
            found = self._route(key) or REFUSED
        except OSError:  # its modules are read at the first use, and there may be no descriptor to do it with
            found = self._broker.runtime.descriptors.opening(lambda: self._route(key)) or REFUSED
        context.correlation_id = int.from_bytes(view[at + 4 : at + 8], "big", signed=True)
        if found is REFUSED:
            context.api_key = int.from_bytes(view[at : at + 2], "big")
            context.api_version = int.from_bytes(view[at + 2 : at + 4], "big")
        else:
            context.api_key, context.api_version = found.api.key, found.version
            raw, at = read_client_id(view, at + 8, end, flexible=found.flexible_request)
            if raw != self._client_id_bytes:
                self._client_id_bytes = raw
                name = None if raw is None else raw.decode(errors="replace")
                context.client = context.client._replace(client_id=name)
                if self._broker.quotas.of_clients:
                    self.use_quotas()
        self._next, self._at, self._end = found, at, end
        return found

    def _refuse(self) -> None:
        """Too new an ApiVersions is answered in version 0 (KIP-511); all else ends the connection."""
        context = self._context
        if context.api_key != _API_VERSIONS:
            raise CloseConnection(
                f"API key {context.api_key} in version {context.api_version} is not supported"
            )
        oldest = route(_API_VERSIONS << 16)
        assert oldest is not None
        self._add_answers(((context.correlation_id, oldest, api_versions.unsupported_version()),))

    def _release_memory(self) -> None:
        if self._memory.holds(self) and self.buffer.frame_size() <= SMALL_FRAME:
            self._memory.release(self)
        self.buffer.give_back()

    def _end_of_stream(self) -> None:
        if self.buffer.pending:
            logger.debug("the connection from %s ended inside a request", self)
        self._move(Event.END)

    def fail_unwritten(self, error: Exception) -> None:
        self.produce_turn.abandon()
        self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the connection with one line about why, if it has not ended yet."""
        if self.state in ENDED:
            return
        if isinstance(error, SessionOver):
            assert self._sessions is not None
            self._sessions.used_after_the_end[self.listener] += 1
            logger.info("closing the connection from %s: %s", self, error)
        elif isinstance(error, CloseConnection | WireError) and not isinstance(error, EncodeError):
            self._counts.malformed += 1
            # One line as long as the same of one host goes on: a health check that speaks HTTP comes every second.
            key = f"{self._context.client.host} {_DIGITS.sub('', str(error))}"
            self._broker.runtime.complaints(
                key, "closing the connection from %s: %s", self, error, level=logging.WARNING
            )
        elif (reason := exhausted(error)) is not None:
            self._broker.runtime.complaints(reason, "closing the connection from %s: %s", self, reason)
        elif isinstance(error, OSError):
            logger.debug("the connection from %s ended: %s", self, error)
        else:
            logger.error(
                "closing the connection from %s: a request of kind %s failed",
                self,
                self._context.api_key,
                exc_info=error,
            )
        self._move(Event.END)
