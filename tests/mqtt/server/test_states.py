"""The tables of a connection's life and of a read: every pair of state and event, and what holds for all sequences."""

from __future__ import annotations

import itertools
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.packets.types import (
    Connect,
    Disconnect,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from leafcuttr_mqtt.server import states
from leafcuttr_mqtt.server.connection import Connection
from leafcuttr_mqtt.server.read import Read
from leafcuttr_mqtt.server.states import LIVES, STAGES, Event, Life, Stage, Step, TransitionError
from support.mqtt import V5, RunningMqtt

L, E, S = Life, Event, Stage
# Written once more, by event, so that a slip in a table is one here too or is seen.
MOVES: dict[Enum, dict[Enum, Enum]] = {
    E.ACCEPT: {L.OPENING: L.ACCEPTED, L.ENDED: L.ENDED},
    E.GREET: {L.ACCEPTED: L.OPEN},
    E.LEAVE: {L.ACCEPTED: L.LEAVING, L.OPEN: L.LEAVING, L.ENDED: L.ENDED},
    E.END: dict.fromkeys(L, L.ENDED),
    Step.PAUSE: {S.ANSWERING: S.PAUSED},
    Step.HOLD: {S.ANSWERING: S.HELD},
    Step.RESUME: {S.PAUSED: S.ANSWERING, S.HELD: S.ANSWERING},
    Step.FINISH: {S.ANSWERING: S.ANSWERED},
    Step.SEAL: {S.ANSWERED: S.SEALED},
    Step.SEND: {S.SEALED: S.OVER},
    Step.GIVE_UP: dict.fromkeys(S, S.OVER),
}


@pytest.mark.parametrize(
    ("table", "state", "event"),
    [
        *[("LIVES", *pair) for pair in itertools.product(Life, Event)],
        *[("STAGES", *pair) for pair in itertools.product(Stage, Step)],
    ],
)
def test_every_pair(table: str, state: Enum, event: Enum) -> None:
    expected = MOVES[event].get(state)
    moves = getattr(states, table)
    if expected is None:
        with pytest.raises(TransitionError, match=f"that is {state.value}: {event.value}"):
            moves[state][event]
    else:
        assert moves[state][event] is expected


def test_the_theory_names_every_state() -> None:
    assert states.__doc__ is not None
    for state in (*Life, *Stage):
        assert f"      {state.name} " in states.__doc__


@given(st.lists(st.sampled_from(Event)))
def test_an_end_is_an_end(events: list[Event]) -> None:
    state, ended = Life.OPENING, False
    for event in events:
        try:
            state = LIVES[state][event]
        except TransitionError:
            assert event is not Event.END
            continue
        ended |= event is Event.END
        assert (state is Life.ENDED) is ended


@given(st.lists(st.sampled_from(Step)))
def test_answers_are_sent_once_and_not_before_they_are_sealed(steps: list[Step]) -> None:
    stage, taken = Stage.ANSWERING, list[Step]()
    for step in steps:
        try:
            stage = STAGES[stage][step]
        except TransitionError:
            continue
        taken.append(step)
    if Step.SEND in taken:
        assert Step.FINISH in taken[: taken.index(Step.SEAL)]
        assert taken.count(Step.SEND) == 1
        assert set(taken[taken.index(Step.SEND) + 1 :]) <= {Step.GIVE_UP}


async def test_a_connection_takes_these_moves(mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[type, list[Enum]] = {Connection: [], Read: []}

    class Watched:
        """In the place of a slot, whose changes it writes down."""

        def __init__(self, owner: type, name: str) -> None:
            self.slot, self.owner = getattr(owner, name), owner
            monkeypatch.setattr(owner, name, self, raising=False)

        def __get__(self, instance: object, owner: type) -> object:
            return self.slot.__get__(instance, owner)

        def __set__(self, instance: object, value: Enum) -> None:
            self.slot.__set__(instance, value)
            seen[self.owner].append(value)

    Watched(Connection, "state")
    Watched(Read, "stage")
    client = await mqtt.dial(V5)
    await client.send(Connect(V5, "c", True, 0))
    await client.next()
    await client.send(Publish("a", b"", 1, packet_id=1), Subscribe(2, (SubscriptionRequest("b", 1),)))
    await client.expect(PubAck)
    await client.expect(SubAck)
    await client.send(Disconnect())
    await client.closed()
    assert seen[Connection] == [L.OPENING, L.ACCEPTED, L.OPEN, L.LEAVING, L.ENDED]
    assert seen[Read] == [S.ANSWERING, S.ANSWERED, S.SEALED, S.OVER] * 2
