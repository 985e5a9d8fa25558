"""Messages of the broker's own that are published together and in their order, until they are where they have to be:
in their Kafka topics, and in the queues of sessions that outlive their connections."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.mapping.outcomes import Failure, Refusal
from leafcuttr_mqtt.messages import Message

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.contracts import Writer
    from leafcuttr_mqtt.routing.hub import Hub
    from leafcuttr_mqtt.routing.turns import Turns
    from leafcuttr_mqtt.routing.work import Gathered

PAUSE_S: Final = 0.5
"""Between two attempts to store what cannot be stored for now."""


class Publisher:
    """Publishes many messages at a time."""

    def __init__(
        self,
        turns: "Turns",
        writer: "Writer",
        hub: "Hub",
        refused: Callable[[Message, Refusal], None],
        waits: Callable[[str], None],
    ) -> None:
        """`refused` is called with what a Kafka topic can never take, `waits` with the reason why messages wait."""
        self._turns = turns
        self._writer = writer
        self._hub = hub
        self._refused = refused
        self._waits = waits

    async def publish(
        self, messages: Sequence[Message], waits: Callable[[str], None] = lambda _: None
    ) -> int:
        """Returns how many were refused for good, dead letters among them, once the others are stored, and on their way
        to subscribers. `waits` is called with the reason why these wait. Cancelled: any of them may have been
        published."""
        refused = 0
        waiting: list[tuple[Message, Failure | None]] = [(message, None) for message in messages]
        while waiting:
            publication = _Publication(self._hub, self._turns)
            publication.begin(self._writer, waiting)
            await publication.done.wait()
            waiting = publication.missing
            refused += len(publication.refused) + publication.letters_stored
            for message, refusal in publication.refused:
                self._refused(message, refusal)
            if waiting or publication.given_up:
                # What was given up is published again, also to those who had it: at least once.
                reason = "what the messages concern cannot be stored"
                if waiting and waiting[0][1] is not None:
                    reason = waiting[0][1].reason
                self._waits(reason)
                waits(reason)
                waiting = waiting or [(message, None) for message in messages]
                await trio.sleep(PAUSE_S)
        return refused


class _Publication:
    """One attempt. It is a `Work` and a `Sender`."""

    def __init__(self, hub: "Hub", turns: "Turns") -> None:
        self._hub = hub
        self._turns = turns
        self._entries: list[tuple[Message, Gathered | None, int]] = []
        self.waits_for = 0
        self.missing: list[tuple[Message, Failure | None]] = []
        self.refused: list[tuple[Message, Refusal]] = []
        self.letters_stored = 0
        """Of those that were refused, the ones that are among the dead letters."""
        self.given_up = False
        self.needs_store: Final = True
        """See `Sender`."""
        self.done: Final = trio.Event()

    def begin(self, writer: "Writer", waiting: Sequence[tuple[Message, Failure | None]]) -> None:
        lanes: list[Gathered] = []
        for message, failure in waiting:
            targets = writer.targets(message.topic, message.via)
            if not targets:
                self._entries.append((message, None, -1))
                continue
            gathered = self._turns.lane(targets)
            if gathered not in lanes:
                lanes.append(gathered)
                self._turns.submit(self, gathered)
            turn = gathered.turn
            index = turn.add(message, targets) if failure is None else turn.again(message, failure)
            self._entries.append((message, gathered, index))
        if not lanes:
            self.stored()
            self._turns.conclude()

    def letters(self, gathered: "Gathered") -> Sequence[int]:
        """See `Work`: those who publish to a Kafka topic are not told, and do not try again."""
        return [index for _, lane, index in self._entries if lane is gathered]

    def stored(self) -> None:
        """See `Work`."""
        for message, lane, index in self._entries:
            failure = None if lane is None else lane.failures.get(index)
            if failure is not None and failure.missing:
                self.missing.append((message, failure))
            elif failure is not None and failure.refused is not None:
                self.refused.append((message, failure.refused))
            elif lane is None or index not in lane.letters:
                self._hub.publish(message, None)
            else:
                self.letters_stored += 1
        self._turns.to_send(self)

    def failed(self) -> None:
        """See `Work`."""
        self._turns.to_send(self)

    def seal(self) -> None:
        """See `Sender`."""

    def send(self) -> None:
        """See `Sender`: what was noted for sessions is stored."""
        self.done.set()

    def give_up(self) -> None:
        """See `Sender`."""
        self.given_up = True
        self.done.set()
