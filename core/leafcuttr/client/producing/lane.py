"""The batches of one partition on their way: their order, their sequence numbers, what is sent again. No I/O.

Theory of operation (KIP-98, KIP-360). Batches wait in `_waiting`. A batch that is sent gets the next sequence numbers
and is in `_window` until it is answered; the window is in the order of the sequences, and no batch is sent five or more
behind its oldest, because a broker remembers the last five of a producer in each partition: with these it recognises
what is sent again.

- A batch whose answer was lost, or may be another one later, is sent again with its sequence, before anything new.
  First the batches behind it have to come back: with a gap before them they are refused (OUT_OF_ORDER_SEQUENCE_NUMBER),
  which is no error then.
- The oldest batch of the window that is refused for its sequence has nothing before it: the partition has lost what it
  knew of the producer (retention, an unclean election). Once nothing is under way the epoch is raised, and the window
  is numbered anew from 0. The raised epoch fences what may still be on its way on a dead connection.
- A batch that fails for good breaks the lane: nothing behind it is appended, so all that waits fails too, and what is
  under way comes back, mostly to fail as well, with all that waits by then. After that the next batch begins with a
  raised epoch. Until its caller has the answers of a call with a failed batch, batches of later calls fail at once.
- A partition takes the first batch of a new producer with any sequence, so the first one is acknowledged before another
  is sent: else a batch might be appended although the one before it was refused. In a transaction, which can only be
  aborted after a failure, that does not matter.

Without a producer id (a cluster that hands none out) there are no sequences, and one batch at a time is under way.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from leafcuttr.client.codes import PASSING_AT_LEADERS
from leafcuttr.client.errors import refusal
from leafcuttr.client.producing.stamp import NO_PRODUCER, ProducerIdentity, Unstamped
from leafcuttr.errors import BrokerError, ErrorCode, OutOfOrderSequence, RequestTimedOut
from leafcuttr.wire.batch import sequence_after
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition

WINDOW: Final = 5
"""Batches of a partition under way: what brokers remember of a producer."""
LAST_EPOCH: Final = 0x7FFF

_FORGOTTEN: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
_UNCERTAIN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""What a leader may answer although it has appended the batch."""


class Call:
    """The batches of one call of `append`, and their answers."""

    __slots__ = ("answers", "deadline", "done", "is_awaited", "left")

    def __init__(self, batches: int, deadline: float, done: Callable[[], None]) -> None:
        self.answers: list[Appended | BrokerError | None] = [None] * batches
        self.deadline = deadline
        self.left = batches
        self.done = done
        self.is_awaited = False
        """Whether its caller does not have the answers yet, and waits for them."""
        if not batches:
            done()

    def answer(self, place: int, answer: Appended | BrokerError) -> None:
        assert self.answers[place] is None
        self.answers[place] = answer
        self.left -= 1
        if not self.left:
            self.done()


class Outgoing:
    """A batch on its way."""

    __slots__ = (
        "batch",
        "call",
        "identity",
        "lane",
        "number",
        "place",
        "sequence",
        "trouble",
        "uncertain",
        "under_way",
    )

    def __init__(self, lane: "Lane", call: Call, place: int, batch: Unstamped) -> None:
        self.lane = lane
        self.call = call
        self.place = place
        self.batch = batch
        self.identity = ProducerIdentity()
        self.sequence = -1
        self.number = 0
        self.under_way = False
        self.uncertain = False
        """It may be in the partition, though it was not acknowledged."""
        self.trouble = ""
        """Why it was not acknowledged at the last attempt."""


class Lane:
    """One partition. `identity` is the producer of new batches."""

    def __init__(
        self, partition: TopicPartition, identity: ProducerIdentity, *, transactional: bool = False
    ) -> None:
        self.partition = partition
        self.identity = identity
        self.needs_identity = False
        """The epochs of the producer id are used up, and nothing is under way: `renew` has to be called."""
        self._transactional = transactional
        self._sequence = 0
        self._number = 0  # of batches, as sequences are of records
        self._proven = transactional
        self._waiting: deque[Outgoing] = deque()
        self._window: deque[Outgoing] = deque()
        self._under_way = 0
        self._stale = False  # the window, or what comes next, is to be numbered anew
        self._broken: BrokerError | None = None  # while what is under way behind a failed batch comes back
        self._failed_calls: list[Call] = []

    @property
    def is_idle(self) -> bool:
        return not (self._waiting or self._window)

    def add(self, call: Call, place: int, batch: Unstamped) -> Outgoing:
        """Append this behind all others: the batch at that place of a call."""
        outgoing = Outgoing(self, call, place, batch)
        if self._failed_calls:
            self._failed_calls = [call for call in self._failed_calls if call.left or call.is_awaited]
            if self._failed_calls:
                self._fail_one(outgoing, self._behind())
                return outgoing
        self._waiting.append(outgoing)
        return outgoing

    def refuse(self, call: Call, place: int, error: BrokerError) -> None:
        """A batch that is not fit to be sent. Nothing of its call, or of one that is made meanwhile, comes behind."""
        self._failed_calls.append(call)
        call.answer(place, error)

    def take(self) -> Outgoing | None:
        """The batch that is to be sent now, if any: it is under way then."""
        if self._broken is not None or self.needs_identity:
            return None
        if self._under_way >= (WINDOW if self._idempotent else 1):
            return None
        if self._stale:
            if self._under_way:
                return None
            if not self._renumber():
                return None
        if self._under_way < len(self._window):
            for place, outgoing in enumerate(self._window):
                if not outgoing.under_way:
                    # What is behind it has to come back first: it is refused for the gap.
                    if self._under_way > place or (place and not self._proven):
                        return None
                    return self._sent(outgoing)
        if not self._waiting or (self._under_way and not self._proven):
            return None
        if self._window and self._number - self._window[0].number >= WINDOW:
            return None  # the broker would forget the oldest, which may have to be sent again
        outgoing = self._waiting.popleft()
        self._take_sequence(outgoing)
        self._window.append(outgoing)
        return self._sent(outgoing)

    def acknowledged(
        self, outgoing: Outgoing, base_offset: int, log_append_time: int, *, duplicate: bool = False
    ) -> None:
        """It is in the partition."""
        self._back(outgoing)
        if self._window[0] is outgoing:
            self._window.popleft()
        else:
            self._window.remove(outgoing)
        self._proven = True
        last = base_offset + outgoing.batch.records - 1 if base_offset >= 0 else -1
        outgoing.call.answer(outgoing.place, Appended(base_offset, last, log_append_time, duplicate))
        self._mend()

    def refused(self, outgoing: Outgoing, code: int, message: str | None, now: float) -> bool:
        """A broker refused it. True if what is sent next should wait a moment, because something has to pass."""
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and self._idempotent:
            # It was appended, so long ago that the broker remembers no offset.
            self.acknowledged(outgoing, -1, -1, duplicate=True)
            return False
        self._back(outgoing)
        outgoing.trouble = message or str(refusal(code))
        outgoing.uncertain = outgoing.uncertain or code in _UNCERTAIN
        if self._broken is not None:
            self._fail(outgoing, self._with_it(outgoing))
            return False
        if code in _FORGOTTEN and self._idempotent:
            if self._window[0] is not outgoing:
                return False  # sent again behind those before it
            if not self._transactional:
                self._stale = True
                self._expire(outgoing, now)
                return True
        if code in PASSING_AT_LEADERS:
            self._expire(outgoing, now)
            return True
        # What an earlier attempt may have appended is not certain to be refused.
        error = refusal(code, f"{self.partition}: {outgoing.trouble}")
        self._fail(outgoing, self._timed_out(outgoing) if outgoing.uncertain else error)
        return False

    def lost(self, outgoing: Outgoing, why: str, now: float) -> None:
        """There was no answer: it may have been appended."""
        self._back(outgoing)
        outgoing.trouble, outgoing.uncertain = why, True
        if self._broken is not None:
            self._fail(outgoing, self._timed_out(outgoing))
        else:
            self._expire(outgoing, now)

    def expire(self, now: float, why: str) -> None:
        """Give up what is too old and not under way; `why` nothing of the partition can be sent."""
        oldest = self._oldest()
        if oldest is not None and not oldest.under_way and self._broken is None:
            oldest.trouble = oldest.trouble or why
            self._expire(oldest, now)

    def give_up(self, error: BrokerError) -> None:
        """Nothing can be appended here: all that is not under way fails."""
        oldest = self._oldest()
        if oldest is not None and not oldest.under_way and self._broken is None:
            oldest.trouble = str(error)
            self._fail(oldest, self._timed_out(oldest) if oldest.uncertain else error)

    def renew(self, identity: ProducerIdentity) -> None:
        """Go on as this producer; nothing is under way."""
        assert not self._under_way
        self.identity, self.needs_identity = identity, False
        self._begin_anew()

    # --- how ------------------------------------------------------------------------------------------------

    @property
    def _idempotent(self) -> bool:
        return self.identity.producer_id != NO_PRODUCER

    def _take_sequence(self, outgoing: Outgoing) -> None:
        outgoing.identity, outgoing.number = self.identity, self._number
        self._number += 1
        if self._idempotent:
            outgoing.sequence = self._sequence
            self._sequence = sequence_after(self._sequence, outgoing.batch.records)

    def _sent(self, outgoing: Outgoing) -> Outgoing:
        outgoing.under_way = True
        self._under_way += 1
        return outgoing

    def _back(self, outgoing: Outgoing) -> None:
        assert outgoing.under_way
        outgoing.under_way = False
        self._under_way -= 1

    def _renumber(self) -> bool:
        producer_id, epoch = self.identity
        if epoch >= LAST_EPOCH:
            self.needs_identity = True
            return False
        self.identity = ProducerIdentity(producer_id, epoch + 1)
        self._begin_anew()
        return True

    def _begin_anew(self) -> None:
        self._stale, self._sequence, self._proven = False, 0, self._transactional
        for outgoing in self._window:
            self._take_sequence(outgoing)

    def _oldest(self) -> Outgoing | None:
        return self._window[0] if self._window else self._waiting[0] if self._waiting else None

    def _expire(self, outgoing: Outgoing, now: float) -> None:
        if outgoing.call.deadline <= now:
            self._fail(outgoing, self._timed_out(outgoing))

    def _fail(self, outgoing: Outgoing, error: BrokerError) -> None:
        """For good, and all behind it that is not under way."""
        self._broken = self._broken or error
        for queue in (self._window, self._waiting):
            for each in [one for one in queue if not one.under_way]:
                queue.remove(each)
                if each is outgoing:
                    self._fail_one(each, error)
                else:
                    self._fail_one(each, self._with_it(each))
        self._mend()

    def _fail_one(self, outgoing: Outgoing, error: BrokerError) -> None:
        self._failed_calls.append(outgoing.call)
        outgoing.call.answer(outgoing.place, error)

    def _mend(self) -> None:
        if self._broken is not None and not self._under_way:
            # Of what has failed some may be in the partition: only another epoch makes the next sequence certain.
            self._broken = None
            self._stale = self._idempotent and not self._transactional

    def _with_it(self, outgoing: Outgoing) -> BrokerError:
        """The error of a batch that does not get another try, because one before it has failed."""
        return self._timed_out(outgoing) if outgoing.uncertain else self._behind()

    def _behind(self) -> BrokerError:
        why = "it failed" if self._broken is None else self._broken
        return OutOfOrderSequence(f"{self.partition}: an earlier batch was not appended: {why}")

    def _timed_out(self, outgoing: Outgoing) -> BrokerError:
        known = "it may have been appended" if outgoing.uncertain else "it was not appended"
        return RequestTimedOut(
            f"{self.partition}: not acknowledged in time, {known}: {outgoing.trouble or 'it waited too long'}"
        )
