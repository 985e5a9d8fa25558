"""A program that notes turns in a store, says after each that it is settled, and is killed at a crash point that its
environment names: `killed_program.py FOLDER TURNS SYNC`. What the turns are is known without running it: `Script`."""

import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Final
from unittest import mock

import trio

import leafcuttr_mqtt
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import open_broker
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import checkpoint
from leafcuttr_mqtt.storage.recovery import NUMBER_HEADER
from leafcuttr_mqtt.storage.state import SessionRecord, StoredSession
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_sdk import Broker
from mqtt.storage.model import SessionModel
from support.live_broker import close, without_sockets

CLIENTS: Final = ("one", "two")
MAPPED: Final = "k"
TRUNCATE_BYTES: Final = 2_000


class Script:
    """Turn 0 begins the sessions. In each turn each session gets a message with QoS 1 and one with QoS 2, those of the
    turn before go on, and a QoS 2 message comes that is mapped; the retained message changes."""

    def __init__(self) -> None:
        self.models = {name: SessionModel() for name in CLIENTS}
        self.number = 0

    def states(self, turns: int) -> Iterator[dict[str, SessionModel]]:
        """What the sessions are after each turn."""
        yield deepcopy(self.models)
        for turn in range(1, turns):
            for name in CLIENTS:
                model = self.models[name]
                for qos in (1, 2):
                    model.queued(Delivery(None, qos, False, (), 10, -1, sequence_of(turn, qos)))
                if turn > 1:
                    model.delivered(sequence_of(turn - 1, 1))
                    model.release(sequence_of(turn - 1, 2))
                if turn > 2:
                    model.delivered(sequence_of(turn - 2, 2))
                model.receive(number_of(turn))
                if turn > 1:
                    model.complete(number_of(turn - 1))
            yield deepcopy(self.models)


def sequence_of(turn: int, qos: int) -> int:
    return (turn - 1) * 2 + qos - 1


def number_of(turn: int) -> int:
    return turn << 16 | turn


def retained_of(turn: int) -> bytes:
    return b"%d" % turn


async def append_mapped(broker: Broker, number: int) -> None:
    await broker.produce(MAPPED, b"", b"", headers=((NUMBER_HEADER, b"%d" % number),))


async def main(folder: Path, turns: int, sync: bool) -> None:
    core = open_broker(without_sockets(folder), SystemClock())
    broker = make_broker_view(core, leafcuttr_mqtt.PLUGIN)
    if broker.topics.get(MAPPED) is None:
        configs = {"lc.log.sync.always": str(sync).lower()}
        await broker.topics.create(MAPPED, partitions=1, configs=configs)
    store = Store(broker, sync=sync, mapped=lambda: (MAPPED,))
    await store.open()
    sessions: dict[str, StoredSession] = {}
    deliveries: dict[tuple[str, int], Delivery] = {}
    for name in CLIENTS:
        stored = sessions[name] = store.begin_session(name)
        store.note_session(SessionRecord(name, stored.number, 60))
    assert store.settle(await broker.append(store.batches()))
    print(0, flush=True)
    for turn in range(1, turns):
        for name in CLIENTS:
            await append_mapped(broker, store.begin_number(sessions[name], number_of(turn)))
        for qos in (1, 2):
            receivers: list[tuple[StoredSession, Delivery]] = []
            for name in CLIENTS:
                delivery = Delivery(None, qos, False, (), 10, -1, sequence_of(turn, qos))
                deliveries[name, delivery.sequence] = delivery
                receivers.append((sessions[name], delivery))
            store.note_queued(Message("a", b"%d" % turn, qos), receivers)
        for name in CLIENTS:
            stored = sessions[name]
            if turn > 1:
                store.note_delivered(stored, deliveries[name, sequence_of(turn - 1, 1)])
                store.note_released(stored, deliveries[name, sequence_of(turn - 1, 2)])
            if turn > 2:
                store.note_delivered(stored, deliveries[name, sequence_of(turn - 2, 2)])
            store.note_received(stored, number_of(turn))
            if turn > 1:
                store.note_completed(stored, turn - 1)
        store.note_retained(Message("r", retained_of(turn), 1, True))
        assert store.settle(await broker.append(store.batches()))
        print(turn, flush=True)
        await store._checkpoints.delete_due()
    close(core)


if __name__ == "__main__":
    with (
        mock.patch.object(checkpoint, "TRUNCATE_BYTES", TRUNCATE_BYTES),
        mock.patch.object(checkpoint, "GROUP_BITS", 0),
    ):
        trio.run(main, Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "sync")
