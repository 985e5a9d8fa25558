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

from leafcuttr.runtime.transitions import TransitionError


class TransactionState(IntEnum):
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


class TransactionCause(Enum):
    """Why a transactional id changes its state."""

    INITIALIZED = "a producer requested its id"
    PARTITIONS_ADDED = "partitions were added"
    COMMITTED = "the producer commits"
    ABORTED = "the producer aborts, or is fenced"
    FENCED = "another producer came, or the time is up"
    MARKED = "every partition has its marker"
    EXPIRED = "the id has been unused for long"


_IDLE: Final[Mapping[TransactionCause, TransactionState]] = {
    TransactionCause.INITIALIZED: TransactionState.EMPTY,
    TransactionCause.PARTITIONS_ADDED: TransactionState.ONGOING,
    TransactionCause.ABORTED: TransactionState.PREPARE_ABORT,
    TransactionCause.EXPIRED: TransactionState.DEAD,
}

TRANSITIONS: Final[Mapping[TransactionState, Mapping[TransactionCause, TransactionState]]] = {
    TransactionState.EMPTY: _IDLE,
    TransactionState.ONGOING: {
        TransactionCause.PARTITIONS_ADDED: TransactionState.ONGOING,
        TransactionCause.COMMITTED: TransactionState.PREPARE_COMMIT,
        TransactionCause.ABORTED: TransactionState.PREPARE_ABORT,
        TransactionCause.FENCED: TransactionState.PREPARE_EPOCH_FENCE,
    },
    TransactionState.PREPARE_COMMIT: {TransactionCause.MARKED: TransactionState.COMPLETE_COMMIT},
    TransactionState.PREPARE_ABORT: {TransactionCause.MARKED: TransactionState.COMPLETE_ABORT},
    TransactionState.COMPLETE_COMMIT: _IDLE,
    TransactionState.COMPLETE_ABORT: _IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: {TransactionCause.ABORTED: TransactionState.PREPARE_ABORT},
    TransactionState.DEAD: {},
}

PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
STORED: Final = frozenset(TransactionState) - {
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
}  # what a record may say
COMPLETE: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


def after(state: TransactionState, cause: TransactionCause) -> TransactionState:
    """The state that follows. Raises TransitionError."""
    try:
        return TRANSITIONS[state][cause]
    except KeyError:
        raise TransitionError(
            f"a transactional id in state {state.title} cannot change because {cause.value}"
        ) from None
