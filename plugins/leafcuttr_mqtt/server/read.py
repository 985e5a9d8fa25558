"""One read: its packets are answered in their order, once the messages among them are where they have to be.

`taking` makes it of the packets; `held` has what is done where a message cannot be stored for now, `verdicts` what
becomes of a message that is refused, or has QoS 2.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.mapping.settings import DEAD_LETTER
from leafcuttr_mqtt.packets.frames import acknowledgements
from leafcuttr_mqtt.packets.types import (
    PacketType,
    PubAck,
    PubRec,
    ReasonCode,
    Subscribe,
    Unsubscribe,
    Version,
)
from leafcuttr_mqtt.server.answers import answer
from leafcuttr_mqtt.server.held import hold_back, release
from leafcuttr_mqtt.server.states import ANSWERING, ENDED, FINISH, STAGES, Stage, Step
from leafcuttr_mqtt.server.verdicts import refused, stored

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.outcomes import Failure
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.work import Gathered
    from leafcuttr_mqtt.server.contract import Entry, Served
    from leafcuttr_mqtt.session.events import Event

MOST_STEPS: Final = 5000
"""Deliveries to subscribers that a read brings about in one step of the loop: some milliseconds. The others have their
turns before it goes on."""
_STEP_COSTS: Final = 20
"""What a filter or a retained message counts among these."""
_ANSWER_COSTS: Final = 4
"""What a packet counts that is no message."""
_SLOW_S: Final = 0.02
"""Between two checks whether a client has taken what was sent, before an answer that takes long goes on."""

_NO_EVENTS: Final["list[Event]"] = []
_NO_ENTRIES: Final["list[Entry]"] = []
_NO_LANES: Final["list[Gathered]"] = []


class Read:
    """It is a `Work`."""

    # What few reads have is of the class until they have it: there is a read for each message of most devices.
    __slots__ = (
        "__dict__",
        "client",
        "connection",
        "entries",
        "events",
        "lanes",
        "stage",
        "waits_for",
    )
    at: int = 0
    """The first event that is not answered."""
    failures: "dict[int, Failure] | None" = None
    """Messages that are not stored, by their places among the events."""
    numbers: dict[int, tuple[int, int]] | None = None
    """Of messages with QoS 2 in a session that outlives the connection: in the session, and of the records."""
    verdicts: dict[int, PubRec] | None = None
    """Of messages with QoS 2 that were refused, by packet identifier."""
    held_since: float = 0.0
    """By trio's clock; 0: it is not held back."""
    _steps: Iterator[None] | None = None
    """What is left of the answer to the event at `at`."""

    def __init__(self, connection: "Served", client: "Client", events: "list[Event]") -> None:
        self.connection: Final = connection
        self.client: Final = client
        self.events = events
        self.entries: list[Entry] = []
        """One for each event."""
        self.lanes: list[Gathered] = []
        self.stage: Stage = ANSWERING
        self.waits_for = 0
        """See `Work`."""

    @property
    def held_by(self) -> str:
        """Why it is held back: a message cannot be stored for now. Empty if it is not."""
        failure = (self.failures or {}).get(self.at) if self.held_since else None
        return "" if failure is None else failure.reason

    # A work

    def letters(self, gathered: "Gathered") -> Sequence[int]:
        """See `Work`. Clients before 5.0 cannot be told."""
        connection = self.connection
        if connection.version == Version.V5 or connection.running.mapping.refused_v3 != DEAD_LETTER:
            return ()
        return [entry[2] for entry in self.entries if entry is not None and entry[1] is gathered]

    def stored(self) -> None:
        """See `Work`: what is mapped is stored, or it is known why not."""
        if self.failures is not None:
            self.failures = None  # of an earlier attempt
        for lane in self.lanes:
            if lane.turn.failures:
                self.failures = self._failures_of_lanes()
                break
        self.go_on()

    def _failures_of_lanes(self) -> "dict[int, Failure]":
        failures: dict[int, Failure] = {}
        for at, entry in enumerate(self.entries):
            if entry is not None and entry[1] is not None:
                failure = entry[1].turn.failures.get(entry[2])
                if failure is not None:
                    failures[at] = failure
        return failures

    def failed(self) -> None:
        """See `Work`."""
        release(self)
        self.connection.end(ReasonCode.UNSPECIFIED_ERROR, "the broker has failed to answer", at_fault=True)

    # Answered

    def go_on(self) -> None:
        """Answer the events in their order, up to one that cannot be stored for now. Where the connection has ended
        meanwhile its messages are published all the same, as they are stored: its client may have a session that
        another connection goes on with."""
        connection, client = self.connection, self.client
        events, entries, failures = self.events, self.entries, self.failures
        publish = connection.running.hub.publish
        five = connection.version == Version.V5
        run: list[int] = []
        """Packet identifiers of QoS 1 that are acknowledged together."""
        unacknowledged = 0
        at, end = self.at, len(events)
        left = MOST_STEPS
        had_ended = connection.state is ENDED
        while at < end:
            entry = entries[at]
            left -= 1
            if entry is None:
                self._acknowledge(run)
                left = self._answer(events[at], left - _ANSWER_COSTS, had_ended)
                if self._steps is not None:
                    break
            else:
                message, lane, index = entry
                if failures and at in failures:
                    self._acknowledge(run)
                    if failures[at].missing:
                        break
                    refused(self, at, failures[at])
                elif message.qos == 1:
                    reached = 0
                    if (
                        (lane is not None and lane.letters and index in lane.letters)
                        or (reached := publish(message, client))
                        or lane is not None
                        or not five
                    ):
                        run.append(events[at].packet_id)  # type: ignore[union-attr]
                    else:
                        self._acknowledge(run)
                        client.session.inbound.acknowledged()
                        connection.wait_for_store()
                        packet_id = events[at].packet_id  # type: ignore[union-attr]
                        connection.put_packet(PubAck(packet_id, ReasonCode.NO_MATCHING_SUBSCRIBERS))
                    left -= reached
                elif not message.qos:
                    unacknowledged += 1
                    if lane is None or not lane.letters or index not in lane.letters:
                        left -= publish(message, client)
                else:
                    self._acknowledge(run)
                    left -= stored(self, at, message, lane, index)
            at += 1
            if connection.state is ENDED and not had_ended:
                break
            if left <= 0:
                break
        self._acknowledge(run)
        connection.running.counts.received[0] += unacknowledged
        if at < end:
            self._stop_at(at, is_long=left <= 0, had_ended=had_ended)
        else:
            self.stage = STAGES[self.stage][FINISH]
            self.events, self.entries, self.lanes = _NO_EVENTS, _NO_ENTRIES, _NO_LANES  # see `forget`
        connection.send_soon()

    def forget(self) -> None:
        """Its messages are not needed any more. A lane has its works: none is left to the garbage collector."""
        self.events, self.entries, self.lanes = _NO_EVENTS, _NO_ENTRIES, _NO_LANES

    def _answer(self, event: "Event", left: int, had_ended: bool) -> int:
        """Answer what is no message, or one that is not published: how much is left of `MOST_STEPS`. With `_steps` the
        answer is not complete."""
        steps = self._steps
        if steps is None:
            # What is stored is noted also where the connection has ended meanwhile. Subscriptions are the new
            # connection's if there is one.
            gone = had_ended or self.client.connection is not self.connection
            if gone and isinstance(event, Subscribe | Unsubscribe):
                return left
            steps = answer(self, event)
            if steps is None:
                return left
        self._steps = steps
        for _ in steps:
            left -= _STEP_COSTS
            if left <= 0:
                return left
        self._steps = None
        return left

    def _acknowledge(self, run: list[int]) -> None:
        if run:
            connection = self.connection
            connection.wait_for_store()
            self.client.session.inbound.acknowledged(len(run))
            connection.put(acknowledgements(PacketType.PUBACK, run))
            counts = connection.running.counts
            counts.received[1] += len(run)
            counts.packets_sent += len(run) - 1  # the run is one of what is put
            run.clear()

    def _stop_at(self, at: int, *, is_long: bool, had_ended: bool) -> None:
        """The event there is not answered yet."""
        self.at = at
        connection = self.connection
        has_ended = connection.state is ENDED
        if is_long and (had_ended or not has_ended):
            self.stage = STAGES[self.stage][Step.PAUSE]
            connection.running.background.start_soon(self._go_on_later)
        elif has_ended:
            release(self)
        else:
            hold_back(self)

    async def _go_on_later(self) -> None:
        """After others had their turns. One connection in a step of the loop."""
        connection = self.connection
        running = connection.running
        while connection.slow is not None and connection.state is not ENDED:  # noqa: ASYNC110  # it would fill its queue
            await trio.sleep(_SLOW_S)
        async with running.long_answers:
            try:
                self.stage = STAGES[self.stage][Step.RESUME]
                self.go_on()
            except Exception:  # as in a turn
                running.logger.exception("an answer failed: its connection is ended")
                self.failed()
        running.turns.conclude()
