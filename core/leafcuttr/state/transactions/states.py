"""The states of a transactional id, as a table. What moves between them is in `machine`.

Theory of operation
===================

A transactional id stands for one logical producer, whatever process it lives in. A producer that requests an id with
it gets a new epoch, and a producer with an older one is fenced: that is how a zombie is kept out. A transaction
collects partitions, and ends in two steps, so that it ends in all of them or in none:

  EMPTY           the id has a producer id and epoch, and no transaction.
  ONGOING         partitions have been added; records and offsets may be there.
  PREPARE_COMMIT  the decision is in the log, and nothing can change it any more; markers are being written to
  PREPARE_ABORT   the partitions. A broker that finds this when it starts goes on writing them.
  COMPLETE_COMMIT every partition has its marker.
  COMPLETE_ABORT
  PREPARE_EPOCH_FENCE  never in the log: the epoch of an ongoing transaction is being raised, because another
                  producer came or its time is up, and the abort is about to be decided.
  DEAD            the id has expired and been forgotten.

With transaction version 2 (KIP-890) every end of a transaction raises the epoch, so that a late batch of the last
transaction can never become a part of the next; and a client that does not know whether it has begun one may abort
out of EMPTY and the COMPLETE states.

Source: KIP-98, KIP-360, KIP-890; the numbers are those of Kafka's log, the names those of its APIs.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final


class State(IntEnum):
    """The number is the state's in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name on the wire (DescribeTransactions, ListTransactions)."""
        return self.name.title().replace("_", "")


class Cause(Enum):
    """Why a transactional id changes its state."""

    INITIALIZED = "a producer asked for its id"
    PARTITIONS_ADDED = "partitions were added"
    COMMITTED = "the producer commits"
    ABORTED = "the producer aborts, or is fenced"
    FENCED = "another producer came, or the time is up"
    MARKED = "every partition has its marker"
    EXPIRED = "nobody has used the id for long"


_IDLE: Final[Mapping[Cause, State]] = {
    Cause.INITIALIZED: State.EMPTY,
    Cause.PARTITIONS_ADDED: State.ONGOING,
    Cause.ABORTED: State.PREPARE_ABORT,
    Cause.EXPIRED: State.DEAD,
}

TRANSITIONS: Final[Mapping[State, Mapping[Cause, State]]] = {
    State.EMPTY: _IDLE,
    State.ONGOING: {
        Cause.PARTITIONS_ADDED: State.ONGOING,
        Cause.COMMITTED: State.PREPARE_COMMIT,
        Cause.ABORTED: State.PREPARE_ABORT,
        Cause.FENCED: State.PREPARE_EPOCH_FENCE,
    },
    State.PREPARE_COMMIT: {Cause.MARKED: State.COMPLETE_COMMIT},
    State.PREPARE_ABORT: {Cause.MARKED: State.COMPLETE_ABORT},
    State.COMPLETE_COMMIT: _IDLE,
    State.COMPLETE_ABORT: _IDLE,
    State.PREPARE_EPOCH_FENCE: {Cause.ABORTED: State.PREPARE_ABORT},
    State.DEAD: {},
}

PREPARED: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
STORED: Final = frozenset(State) - {State.DEAD, State.PREPARE_EPOCH_FENCE}  # what a record may say
COMPLETE: Final = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})


class TransitionError(AssertionError):
    """The machine tried a move that the table does not have: a mistake in this package, never a client's."""


def after(state: State, cause: Cause) -> State:
    """The state that follows. Raises TransitionError."""
    try:
        return TRANSITIONS[state][cause]
    except KeyError:
        raise TransitionError(
            f"a transactional id in state {state.title} cannot change because {cause.value}"
        ) from None
