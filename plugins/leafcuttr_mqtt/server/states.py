"""The states of a connection and of a read, as tables. What is done in them is in `connection` and `read`; the protocol
has tables of its own (`session.states`).

Theory of operation
-------------------
Two things have a state, and live for different times:

- A connection. Its task reads; what it has to say is said in turns, by whichever task takes the turn.

      OPENING    CONNECT is waited for, or is being decided on: the time for a handshake counts.
      ACCEPTED   The client is in, its keep alive counts. CONNACK waits until what is noted of the session is stored:
                 nothing else may come before it ([MQTT-3.2.0-1]).
      OPEN       CONNACK is sent.
      LEAVING    DISCONNECT has come. What came before it is answered, then the connection ends.
      ENDED      The client has gone, or was told to go: nothing is read any more. What was answered before still goes
                 to a client that is slow, with why it has to go behind it. What of its last read is being stored is
                 published all the same, and subscribers get it.

- A read: the packets that one read has brought. A connection has at most one, and takes the next read once it is over.

      ANSWERING  Its messages are being stored, or its packets are answered in their order.
      PAUSED     An answer takes long: other connections have their turns before it goes on.
      HELD       A message cannot be stored for now. It is tried again, for a while.
      ANSWERED   All answers are gathered.
      SEALED     A turn has taken the answers, and stores what they depend on. What is gathered from now on is of the
                 next turn: so this is another state than ANSWERED.
      OVER       The answers are sent, or the read was given up: its client sends again what was not acknowledged.

  A connection may let go of a read that is not over (`Outgoing.give_up`): that one goes on by itself, for what is
  stored has to be published, and its answers are not sent.

What is not in a table is a mistake of the broker: `TransitionError`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, Never


class TransitionError(AssertionError):
    """A connection or a read tried a move that its table does not have."""


class Life(Enum):
    """Of a connection."""

    OPENING = "opening"
    ACCEPTED = "accepted"
    OPEN = "open"
    LEAVING = "leaving"
    ENDED = "ended"

    # Members are looked up for each read; the hash of Enum is that of the name, made anew each time.
    __hash__ = object.__hash__


class Event(Enum):
    """What moves a connection."""

    ACCEPT = "its client is let in"
    GREET = "CONNACK is sent"
    LEAVE = "DISCONNECT has come"
    END = "it was ended, or has broken"

    __hash__ = object.__hash__


class Stage(Enum):
    """Of a read."""

    ANSWERING = "answering"
    PAUSED = "paused"
    HELD = "held"
    ANSWERED = "answered"
    SEALED = "sealed"
    OVER = "over"

    __hash__ = object.__hash__


class Step(Enum):
    """What moves a read."""

    PAUSE = "an answer takes long"
    HOLD = "a message cannot be stored for now"
    RESUME = "it goes on"
    FINISH = "all is answered"
    SEAL = "a turn has taken the answers"
    SEND = "the answers are sent"
    GIVE_UP = "it is given up"

    __hash__ = object.__hash__


class _Moves(dict[Enum, Enum]):
    """Those out of one state. A lookup costs no more than in any dictionary."""

    def __init__(self, state: Enum, moves: Mapping[Enum, Enum]) -> None:
        super().__init__(moves)
        self._state = state

    def __missing__(self, key: Enum) -> Never:
        kind = "connection" if isinstance(self._state, Life) else "read"
        raise TransitionError(f"a {kind} that is {self._state.value}: {key.value}")


def _table(table: Mapping[Enum, Mapping[Enum, Enum]]) -> dict[Enum, Mapping[Enum, Enum]]:
    return {state: _Moves(state, moves) for state, moves in table.items()}


LIVES: Final[Mapping[Life, Mapping[Event, Life]]] = _table(  # type: ignore[assignment]
    {
        Life.OPENING: {Event.ACCEPT: Life.ACCEPTED, Event.END: Life.ENDED},
        Life.ACCEPTED: {Event.GREET: Life.OPEN, Event.LEAVE: Life.LEAVING, Event.END: Life.ENDED},
        Life.OPEN: {Event.LEAVE: Life.LEAVING, Event.END: Life.ENDED},
        Life.LEAVING: {Event.END: Life.ENDED},
        # It may end while its client is being let in, and DISCONNECT be found in a read that is answered after the end.
        Life.ENDED: {Event.ACCEPT: Life.ENDED, Event.LEAVE: Life.ENDED, Event.END: Life.ENDED},
    }
)
"""`LIVES[state][event]` is the state that follows. Raises TransitionError."""

STAGES: Final[Mapping[Stage, Mapping[Step, Stage]]] = _table(  # type: ignore[assignment]
    {
        Stage.ANSWERING: {
            Step.PAUSE: Stage.PAUSED,
            Step.HOLD: Stage.HELD,
            Step.FINISH: Stage.ANSWERED,
            Step.GIVE_UP: Stage.OVER,
        },
        Stage.PAUSED: {Step.RESUME: Stage.ANSWERING, Step.GIVE_UP: Stage.OVER},
        Stage.HELD: {Step.RESUME: Stage.ANSWERING, Step.GIVE_UP: Stage.OVER},
        Stage.ANSWERED: {Step.SEAL: Stage.SEALED, Step.GIVE_UP: Stage.OVER},
        Stage.SEALED: {Step.SEND: Stage.OVER, Step.GIVE_UP: Stage.OVER},
        Stage.OVER: {Step.GIVE_UP: Stage.OVER},
    }
)
"""As `LIVES`, of a read. It may be given up in every state: that is what is left where an answer has failed."""

# Those of every read have names of their own: to get a member from its class takes as long as a lookup in a table.
ACCEPTED: Final = Life.ACCEPTED
ENDED: Final = Life.ENDED
ANSWERING: Final = Stage.ANSWERING
ANSWERED: Final = Stage.ANSWERED
SEALED: Final = Stage.SEALED
FINISH: Final = Step.FINISH
