"""Turns: what all connections have sent at about the same time is stored together, and then answered.

A turn has three parts. What is mapped goes to its Kafka topics, with one append for all. Then each work that waited for
it goes on without waiting: it gives its messages to subscribers, and makes its answers. What it has noted for sessions
that outlive their connections is appended to the internal topics, again with one append for all. Only then answers and
deliveries are sent.

A Kafka topic that takes long (a filter that waits, synced writes, another cluster) has a lane of its own until it is
quick again: what is published to others does not wait for it.

Longer than other modules because the parts of a turn, and what becomes of each when one of them fails, have to be seen
beside each other.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.routing.work import Gathered, Sender, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leafcuttr_mqtt.mapping.contracts import Writer, WriterTurn
    from leafcuttr_mqtt.mapping.outcomes import Failure
    from leafcuttr_mqtt.mapping.targets import Target
    from leafcuttr_mqtt.routing.hub import Hub
    from leafcuttr_sdk.broker import Broker

SLOW_S: Final = 0.05
"""An append that takes longer makes its Kafka topics have lanes of their own."""
_STEP_S: Final = 0.005
"""After that long the others have their turns, before the next work of a turn goes on."""
_KEPT: Final = 4
"""Tasks that are kept for the next turns."""
_MOST_LANES: Final = 1000
_AGAIN_S: Final = 0.25
TURN_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GIVE_UP_S: Final = 10.0
"""How long connections are held back because the internal topics cannot be written."""


class Turns:
    """The turns of all connections of a broker."""

    def __init__(
        self,
        broker: "Broker",
        writer: "Writer",
        hub: "Hub",
        nursery: trio.Nursery,
        logger: logging.Logger,
    ) -> None:
        self._append: Final = broker.append
        self._writer: Final = writer
        self._hub: Final = hub
        self._store: Final = hub.store
        self._nursery: Final = nursery
        self._logger: Final = logger
        self._gathering: dict[str, Gathered] = {}
        self._ready: deque[Gathered] = deque()
        self._idle: list[trio.lowlevel.Task] = []
        self._slow: set[str] = set()
        self._senders: list[Sender] = []
        self._storing = False
        self.trouble = ""
        """Why nothing is acknowledged at present: the internal topics cannot be written. Empty if they can."""
        self._took: Final = broker.metrics.histogram(
            "leafcuttr_mqtt_acknowledgement_seconds",
            "From the first read of a turn until what it brought is stored and acknowledged.",
            bounds=TURN_BOUNDS_S,
        )
        self.begun = 0
        """How many appends were begun to be gathered."""
        self._under_way: set[int] = set()
        self._in_flight = 0
        self._quiet: trio.Event | None = None
        self._sends_later = False
        self._own: Final = trio.StrictFIFOLock()

    # Gathering

    def lane(self, targets: "Sequence[Target]") -> Gathered:
        """Where a message for these is added to. Give what is made of it to `submit` in the same step of the loop."""
        lane = ""
        if self._slow:
            for target in targets:
                if target.kafka.name in self._slow:
                    lane = target.kafka.name
                    break
        gathered = self._gathering.get(lane)
        if gathered is None:
            number = self.begun
            self.begun = number + 1
            self._under_way.add(number)
            gathered = self._gathering[lane] = Gathered(number, lane, self._writer.begin())
        return gathered

    def submit(self, work: Work, gathered: Gathered) -> None:
        """The work has added its messages to this lane."""
        work.waits_for += 1
        if not gathered.works:
            self._ready.append(gathered)
            self._wake()
        gathered.works.append(work)

    def conclude(self) -> None:
        """Something was done that needed no turn: note it and send what is to be sent."""
        if self._storing:
            if self.trouble:
                self._send_what_needs_no_store()
            return
        if self._hub.pending:
            self._storing = True
            self._in_flight += 1
            self._nursery.start_soon(self._store_notes)
        else:
            self._send_all()

    def to_send(self, sender: Sender) -> None:
        """At the end of this turn."""
        self._senders.append(sender)

    @property
    def storing(self) -> bool:
        """Whether something is being stored, so that a message may be in the log and not on its way to subscribers."""
        return self._in_flight > 0

    def are_done(self, before: int) -> bool:
        """Whether what was stored by the first so many appends (`begun`) is on its way to subscribers."""
        return not self._under_way or min(self._under_way) >= before

    async def quiet(self) -> None:
        """Wait until nothing is being stored."""
        while self._in_flight:
            self._quiet = trio.Event()
            await self._quiet.wait()

    # Storing

    def _wake(self) -> None:
        if self._idle:
            trio.lowlevel.reschedule(self._idle.pop())
        else:
            self._nursery.start_soon(self._run)

    async def _run(self) -> None:
        ready = self._ready
        while True:
            while ready:
                gathered = ready.popleft()
                del self._gathering[gathered.lane]
                self._in_flight += 1
                try:
                    await self._take(gathered)
                finally:
                    self._under_way.discard(gathered.number)
                    self._done()
            if len(self._idle) >= _KEPT:
                return
            task = trio.lowlevel.current_task()
            self._idle.append(task)

            def stop(_: Any, task: trio.lowlevel.Task = task) -> trio.lowlevel.Abort:
                if task in self._idle:
                    self._idle.remove(task)
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(stop)

    def _done(self) -> None:
        self._in_flight -= 1
        if not self._in_flight and self._quiet is not None:
            self._quiet.set()

    async def _take(self, gathered: Gathered) -> None:
        turn = gathered.turn
        if turn.pending:
            began = trio.current_time()
            names = await self._settle(turn)
            if turn.failures:
                await self._write_letters(gathered)
            took = trio.current_time() - began
            if took > SLOW_S:
                self._note_slow(names)
            elif gathered.lane:
                self._slow.discard(gathered.lane)
        since = trio.current_time()
        for work in gathered.works:
            if (now := trio.current_time()) - since > _STEP_S:
                since = now
                await trio.lowlevel.cancel_shielded_checkpoint()
            work.waits_for -= 1
            if not work.waits_for:
                try:
                    work.stored()
                except Exception:  # what one client has sent costs nobody else anything
                    self._logger.exception("an answer failed: its connection is ended")
                    work.failed()
        if self._storing:
            if self.trouble:
                self._send_what_needs_no_store()
            return
        if self._hub.pending:
            self._storing = True
            self._in_flight += 1
            await self._store_notes()
        else:
            self._send_all()
        self._took.observe(trio.current_time() - gathered.began)

    async def _settle(self, turn: "WriterTurn") -> set[str]:
        names: set[str] = set()
        while turn.pending:
            await turn.advance()
            batches = turn.batches()
            if batches:
                names.update([batch.partition.topic for batch in batches])
                turn.settle(await self._append(batches))
        return names

    async def _write_letters(self, gathered: Gathered) -> None:
        """Those that were refused for good, and whose publishers cannot be told."""
        failures = gathered.failures
        refused = {
            index
            for index, failure in failures.items()
            if failure.refused is not None and not failure.missing and not failure.letter
        }
        if not refused:
            return
        letters = {index for work in gathered.works for index in work.letters(gathered)} & refused
        for index in sorted(letters):
            gathered.turn.dead_letter(index)
        await self._settle(gathered.turn)
        gathered.letters = letters - failures.keys()

    def _note_slow(self, names: set[str]) -> None:
        if len(self._slow) + len(names) > _MOST_LANES:
            self._slow.clear()
        self._slow |= names

    async def _store_notes(self) -> None:
        """Append what was noted, for as long as there is something, and send what waited for it."""
        hub = self._hub
        try:
            while True:
                senders, self._senders = self._senders, []
                for sender in senders:
                    sender.seal()
                deliveries = hub.note_queued()
                began: float | None = None
                while not await self._write_notes():
                    began = trio.current_time() if began is None else began
                    self.trouble = "the internal topics cannot be written; the broker's log says why"
                    for sender in senders:
                        if not sender.needs_store:
                            sender.send()
                    senders = [sender for sender in senders if sender.needs_store]
                    self._send_what_needs_no_store()
                    if (now := trio.current_time()) - began > GIVE_UP_S:
                        # Those that came meanwhile wait for the same: none waits for longer than the first did.
                        senders += self._senders
                        self._senders = []
                        for sender in senders:
                            sender.give_up()
                        senders, began = [], now
                    await trio.sleep(_AGAIN_S)
                self.trouble = ""
                for sender in senders:
                    sender.send()
                hub.offer(deliveries)
                if not hub.pending:
                    break
        finally:
            self._storing = False
            self._done()
        # It may begin to store again, in another task: nothing of this one comes behind it.
        self._send_all()

    def _send_what_needs_no_store(self) -> None:
        """While the internal topics cannot be written: clients that use QoS 0 and sessions that end with their
        connections need nothing of them, and go on."""
        since = trio.current_time()
        held: list[Sender] = []
        while self._senders:
            senders, self._senders = self._senders, []
            for place, sender in enumerate(senders, 1):
                if sender.needs_store:
                    held.append(sender)
                    continue
                sender.seal()
                sender.send()
                if trio.current_time() - since > _STEP_S:
                    self._senders = held + senders[place:] + self._senders
                    self._start_sending_later()
                    return
        self._senders = held

    async def _write_notes(self) -> bool:
        """Append what was noted. False: something cannot be written for now, which the log says. Internal topics that
        were deleted are written again before, as far as memory has what was in them: what is acknowledged later may
        depend on it."""
        store, hub = self._store, self._hub
        while True:
            if store.is_gone:
                gone = await store.create_again()
                if not gone:
                    return False
                hub.begin_again(gone)
            hub.note_some_again()
            batches = store.batches()
            if store.settle(await self._append(batches) if batches else []):
                if not hub.is_noting_again:
                    return True
            elif not store.is_gone:
                return False

    def _send_all(self) -> None:
        since = trio.current_time()
        while self._senders:
            senders, self._senders = self._senders, []
            is_long = False
            for place, sender in enumerate(senders, 1):
                sender.seal()
                sender.send()
                # A client that reads as fast as it is sent to would hold the loop for as long as its queue lasts.
                is_long = trio.current_time() - since > _STEP_S
                if is_long:
                    self._senders = senders[place:] + self._senders
                    break
            if self._hub.pending:  # deliveries were given up while they were taken
                self.conclude()
                return
            if is_long:
                if self._senders:
                    self._start_sending_later()
                return

    def _start_sending_later(self) -> None:
        if not self._sends_later:
            self._sends_later = True
            self._nursery.start_soon(self._send_later)

    async def _send_later(self) -> None:
        await trio.lowlevel.checkpoint()
        self._sends_later = False
        self.conclude()

    # Messages of the broker's own

    async def publish(self, message: Message) -> "Failure | None":
        """Publish a message that comes from no connection. Returns once it is stored, and on its way to subscribers; a
        failure says why it is not."""
        own = _Own(self._hub, message)
        targets = self._writer.targets(message.topic)
        if targets:
            gathered = self.lane(targets)
            own.index = gathered.turn.add(message, targets)
            own.gathered = gathered
            self.submit(own, gathered)
        else:
            async with self._own:  # one in a step of the loop: each may have many subscribers
                own.stored()
                self.conclude()
        await own.done.wait()
        return own.failure

    def publish_soon(self, message: Message, stored: "Callable[[], None] | None" = None) -> None:
        """The same, without waiting: what fails is logged. `stored` is called once the message is where it has to be,
        the queues of sessions too, or is refused for good."""
        self._nursery.start_soon(self._publish, message, stored)

    async def _publish(self, message: Message, stored: "Callable[[], None] | None") -> None:
        while True:
            failure = await self.publish(message)
            if stored is not None and (failure is None or failure.refused is not None):
                await self._noted()
                stored()
                self.conclude()
            if failure is None:
                return
            if failure.refused is not None:
                self._logger.warning(
                    "a message of %r for %r was refused: %s",
                    message.client_id[:255],
                    message.topic[:255],
                    failure.refused.text,
                )
                return
            await trio.sleep(1)

    async def _noted(self) -> None:
        """Wait until all that was noted by now is stored."""
        while True:
            noted = _Noted()
            self.to_send(noted)
            self.conclude()
            await noted.done.wait()
            if noted.is_stored:
                return


class _Noted:
    """What waits for a turn, as a sender."""

    def __init__(self) -> None:
        self.needs_store: Final = True
        self.done = trio.Event()
        self.is_stored = False

    def seal(self) -> None:
        """See `Sender`."""

    def send(self) -> None:
        """See `Sender`."""
        self.is_stored = True
        self.done.set()

    def give_up(self) -> None:
        """See `Sender`."""
        self.done.set()


class _Own:
    """A message of the broker's own, as a work."""

    def __init__(self, hub: "Hub", message: Message) -> None:
        self._hub = hub
        self._message = message
        self.waits_for = 0
        self.index = -1
        self.gathered: Gathered | None = None
        self.failure: Failure | None = None
        self.done = trio.Event()

    def letters(self, gathered: Gathered) -> "Sequence[int]":
        return (self.index,)

    def stored(self) -> None:
        if self.gathered is not None:
            self.failure = self.gathered.failures.get(self.index)
        if self.failure is None:
            self._hub.publish(self._message, self._hub.clients.get(self._message.client_id))
        self.done.set()

    def failed(self) -> None:
        self.done.set()
