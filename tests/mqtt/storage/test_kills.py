"""A process with a store is killed between any two steps of a turn. What it has said to be settled is there after the
next start, what it had begun is there or not, and a QoS 2 message that is sent again is in its Kafka topic once."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from leafcuttr_mqtt.storage.recovery import NUMBER_HEADER
from leafcuttr_mqtt.storage.state import record_number
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk import TopicPartition
from mqtt.storage import killed_program
from mqtt.storage.conftest import Start
from mqtt.storage.killed_program import CLIENTS, MAPPED, Script, append_mapped, number_of, retained_of
from mqtt.storage.model import model_of

TURNS = 30
PROGRAM = Path(killed_program.__file__)
TESTS = PROGRAM.parents[2]

# A turn appends twice to the Kafka topic and once to two internal ones; turn 0 and the start to one each.
KILLS = [
    *(("append.staged", count, "plain") for count in (8, 9)),
    *(("append.written", count, "plain") for count in (8, 9, 10)),
    ("append.published", 22, "plain"),
    ("writer.written", 21, "sync"),
    ("delete-records.moved", 1, "plain"),
    ("delete-records.kept", 2, "plain"),
]
LONG = [
    *(("append.staged", count, "plain") for count in range(10, 60)),
    *(("append.written", count, "plain") for count in range(11, 60)),
    *(("append.published", count, "plain") for count in range(20, 30)),
    *(("writer.before-write", count, "sync") for count in range(8, 20)),
    *(("writer.written", count, "sync") for count in range(8, 20)),
]


def settled_before_the_kill(folder: Path, point: str, count: int, mode: str) -> int:
    """The last turn that the program said to be settled; -1: none."""
    environment = {
        **os.environ,
        "LEAFCUTTR_CRASH_POINT": f"{point}:{count}",
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(TURNS), mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    lines = done.stdout.split()
    return int(lines[-1]) if lines else -1


@pytest.mark.parametrize(
    ("point", "count", "mode"), [*KILLS, *(pytest.param(*one, marks=pytest.mark.long) for one in LONG)]
)
async def test_nothing_that_was_settled_is_lost(
    start: Start, tmp_path: Path, point: str, count: int, mode: str
) -> None:
    settled = settled_before_the_kill(tmp_path / "data", point, count, mode)
    assert 0 <= settled < TURNS - 1
    states = list(Script().states(TURNS))
    broker = start()
    info = broker.topics.get(QUEUE.topic)
    assert info is not None
    if point == "delete-records.kept":
        assert info.partitions[0].log_start_offset > 0
    store = Store(broker, mapped=lambda: (MAPPED,))
    found = await store.open()
    assert not found.damaged
    sessions = {one.record.client_id: one for one in found.sessions}
    unfinished = {name: one.unfinished for name, one in sessions.items()}
    state = {name: model_of(one.stored, one.queue) for name, one in sessions.items()}
    for name, model in state.items():
        for one in unfinished[name].values():
            # Of the turn that was under way; its number is taken.
            assert (one.number, one.stored_in, one.queued) == (number_of(settled + 1), {MAPPED}, False)
            assert model.next_number == one.number + 1
            model.next_number = states[settled][name].next_number
    assert state in (states[settled], states[settled + 1])
    retained = [one.payload for one in found.retained]
    assert retained in ([retained_of(turn)] if turn else [] for turn in (settled, settled + 1))

    # All that the clients had under way is sent again.
    turn = settled + 1
    for session in sessions.values():
        number = number_of(turn)
        if session.stored.received.get(turn) == number:
            continue
        if turn not in session.unfinished:
            await append_mapped(broker, store.begin_number(session.stored, number))
        store.note_received(session.stored, number)
    assert store.settle(await broker.append(store.batches()))
    found = await Store(broker, mapped=lambda: (MAPPED,)).open()
    assert len(found.sessions) == len(CLIENTS)
    assert not any(one.unfinished for one in found.sessions)
    read = await broker.fetch({TopicPartition(MAPPED, 0): 0})
    numbers = Counter(int(dict(record.headers)[NUMBER_HEADER] or b"") for record in read.records)
    assert numbers == Counter(
        record_number(session.stored.number, number_of(each))
        for session in sessions.values()
        for each in range(1, turn + 1)
    )
