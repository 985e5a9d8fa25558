"""Nothing is kept, by the same calls."""

import inspect

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage.none import NoStore
from leafcuttr_mqtt.storage.state import Recovered, SessionRecord, record_number
from leafcuttr_mqtt.storage.store import Store


def test_the_same_interface() -> None:
    names = [name for name in vars(Store) if not name.startswith("_")]
    assert len(names) > 15
    for name in names:
        mine, theirs = getattr(NoStore, name), getattr(Store, name)
        if callable(theirs):
            assert inspect.signature(mine).parameters == inspect.signature(theirs).parameters, name
            assert inspect.iscoroutinefunction(mine) is inspect.iscoroutinefunction(theirs)


async def test_nothing_is_kept(autojump_clock: trio.abc.Clock) -> None:
    store = NoStore()
    assert not store.keeps
    assert await store.open() == Recovered()
    first, second = store.begin_session("c"), store.begin_session("c")
    assert first.number != second.number
    store.note_session(SessionRecord("c", first.number))
    delivery = Delivery(None, 1, False, sequence=0)
    store.note_queued(Message("a", b""), [(first, delivery)])
    store.note_released(first, delivery)
    store.note_delivered(first, delivery)
    assert store.begin_number(first, 7) == record_number(first.number, 7)
    store.note_received(first, 7)
    store.number_done(first, 7)
    store.number_refused(first, 7)
    store.note_completed(first, 7)
    store.note_retained(Message("a", b"x"))
    store.note_retained_ended("a")
    store.note_will_done("c")
    store.note_session_ended(first, [delivery])
    assert not store.has_notes
    assert store.batches() == []
    assert store.settle([])
    assert store.overtaken() is None
    assert await store.load([1]) == {}
    with pytest.raises(trio.TooSlowError), trio.fail_after(1):
        await store.run()
