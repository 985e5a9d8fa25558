"""The chains of topics: what is made for a topic ends with it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio

from leafcuttr.errors import StorageError
from leafcuttr.state.broker import Broker
from leafcuttr.state.chains import Instance, Tables
from support.waiting import eventually


async def test_filters_made_for_topics_that_could_not_be_created(
    start: Callable[..., Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start()
    ended: list[str] = []

    def make(topic: str, _: object) -> Instance:
        return Instance("tests", lambda record: record, [lambda: ended.append(topic)])

    def full(*_: object) -> None:
        raise StorageError("no space left on device")

    broker.chains.equip(Tables({"keep": make}))
    monkeypatch.setattr(broker.topics._logs, "prepare", full)
    for number in range(20):
        with pytest.raises(StorageError):
            await broker.topics.create(f"t{number}", 1, {"lc.filters": "keep"})
    assert len(ended) == 20
    assert not broker.chains._prepared and not broker.chains.tallies


async def test_a_filter_that_takes_long_to_be_made_is_not_waited_for(start: Callable[..., Broker]) -> None:
    """Cancelled, as at the end of the broker; what is made later is let go of."""
    broker = start()
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def make(topic: str, _: object) -> Instance:
        begun.set()
        go.wait()
        return Instance("tests", lambda record: record, [ended.set])

    broker.chains.equip(Tables({"keep": make}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.topics.create, "t", 1, {"lc.filters": "keep"})
        await eventually(begun.is_set, "the filter to be made")
        nursery.cancel_scope.cancel()
    assert not ended.is_set()
    go.set()
    await eventually(ended.is_set, "the filter to be let go of")
    assert not broker.chains._prepared and "t" not in broker.topics.by_name
