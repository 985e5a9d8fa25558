"""The states of a connection, as a table. What is done in them is in `connection` and `reactor`.

Theory of operation
===================

A connection handles one request at a time and answers in order. At each moment one of two tasks does that work. The
reactor's task does it for all connections together, as long as nothing has to wait; a connection's own task takes over
when something does, and gives the connection back when it has caught up. The connection's descriptor is watched by the
reactor exactly in the states in which the reactor's task serves it.

  READING           the reactor watches it, and serves it when something arrives.
  PARKED            the reactor watches it; what it has staged is being written by a worker, or its answer is delayed,
                    and it is answered when that is over. If more arrives meanwhile, its own task takes over.
  WORKING           its own task sends what the peer takes slowly, and handles what has arrived.
  WAITING           its own task waits for a handler (a rebalance, for one), for the disk or for memory.
  DRAINING          the server or the listener stops: its own task handles what has arrived, and nothing after it.
  DRAINING_WAITING  the same, while it waits.
  CLOSING           the stream has ended, or the connection has failed: no request is begun any more, what has been
                    staged before is written, and the answers to it are sent.
  CLOSING_WAITING   the same, while it waits.
  CLOSED            its task has ended. This is final.

A connection begins in WORKING: its own task has it, has nothing to do, and gives it to the reactor.

Whatever comes from outside (STOP, END, CLOSE) is allowed in every state, because it may come at any time. All other
events belong to the task that does the work, and only to the states in which that task may cause them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from leafcuttr.runtime.transitions import TransitionError


class State(Enum):
    READING = "reading"
    PARKED = "parked"
    WORKING = "working"
    WAITING = "waiting"
    DRAINING = "draining"
    DRAINING_WAITING = "draining, waiting"
    CLOSING = "closing"
    CLOSING_WAITING = "closing, waiting"
    CLOSED = "closed"

    # Members are looked up in the table on the data path; the hash of Enum is that of the name, made anew each time.
    __hash__ = object.__hash__


class Event(Enum):
    HAND_OVER = "something has to wait, or more has arrived while it was parked"
    PARK = "a worker writes what is staged, or the answer is delayed"
    AWAKE = "what it is parked for may be over"
    WAIT = "its task begins to wait"
    RESUME = "its task waits no more"
    CAUGHT_UP = "nothing is left to do"
    STOP = "the server or the listener stops"
    END = "the stream has ended, or the connection has failed or is cut"
    CLOSE = "its task ends"

    __hash__ = object.__hash__


TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.READING: {
        Event.HAND_OVER: State.WORKING,
        Event.PARK: State.PARKED,
        Event.STOP: State.DRAINING,
        Event.END: State.CLOSING,
        Event.CLOSE: State.CLOSED,
    },
    State.PARKED: {
        Event.HAND_OVER: State.WORKING,
        Event.AWAKE: State.READING,
        Event.STOP: State.DRAINING,
        Event.END: State.CLOSING,
        Event.CLOSE: State.CLOSED,
    },
    State.WORKING: {
        Event.WAIT: State.WAITING,
        Event.CAUGHT_UP: State.READING,
        Event.STOP: State.DRAINING,
        Event.END: State.CLOSING,
        Event.CLOSE: State.CLOSED,
    },
    State.WAITING: {
        Event.RESUME: State.WORKING,
        Event.STOP: State.DRAINING_WAITING,
        Event.END: State.CLOSING_WAITING,
        Event.CLOSE: State.CLOSED,
    },
    State.DRAINING: {
        Event.WAIT: State.DRAINING_WAITING,
        Event.CAUGHT_UP: State.CLOSED,
        Event.STOP: State.DRAINING,
        Event.END: State.CLOSING,
        Event.CLOSE: State.CLOSED,
    },
    State.DRAINING_WAITING: {
        Event.RESUME: State.DRAINING,
        Event.STOP: State.DRAINING_WAITING,
        Event.END: State.CLOSING_WAITING,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSING: {
        Event.WAIT: State.CLOSING_WAITING,
        Event.CAUGHT_UP: State.CLOSED,
        Event.STOP: State.CLOSING,
        Event.END: State.CLOSING,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSING_WAITING: {
        Event.RESUME: State.CLOSING,
        Event.STOP: State.CLOSING_WAITING,
        Event.END: State.CLOSING_WAITING,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSED: {
        Event.STOP: State.CLOSED,
        Event.END: State.CLOSED,
        Event.CLOSE: State.CLOSED,
    },
}

WATCHED: Final = frozenset({State.READING, State.PARKED})
"""The reactor watches the descriptor and serves the connection; in all others its own task does the work."""

WAITS: Final = frozenset({State.PARKED, State.WAITING, State.DRAINING_WAITING, State.CLOSING_WAITING})
"""Something else than the peer is waited for: the connection is not idle, whatever does not arrive."""

READS: Final = frozenset({State.READING, State.PARKED, State.WORKING, State.WAITING})
"""More requests are received, now or once what is waited for is over."""

ENDED: Final = frozenset({State.CLOSING, State.CLOSING_WAITING, State.CLOSED})
"""No request is begun any more."""


def after(state: State, event: Event) -> State:
    """The state that follows. Raises TransitionError."""
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise TransitionError(f"a connection that is {state.value}: {event.value}") from None
