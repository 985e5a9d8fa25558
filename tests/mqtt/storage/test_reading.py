"""Queued messages that are in the log only."""

from collections.abc import Iterable
from unittest import mock

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import reading
from leafcuttr_mqtt.storage.reading import Reading
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk import Broker
from mqtt.storage.conftest import Start


class Counted:
    """A broker that counts reads."""

    def __init__(self, broker: Broker) -> None:
        self.reads = 0
        self.topics = broker.topics
        self._broker = broker

    async def read_batches(self, *args: object, **more: object) -> object:
        self.reads += 1
        return await self._broker.read_batches(*args, **more)  # type: ignore[arg-type]


async def filled(broker: Broker, turns: int, in_each: int, size: int = 10) -> list[int]:
    """The offsets of queued messages; other records are between the turns."""
    store = Store(broker)
    await store.open()
    stored = store.begin_session("c")
    offsets: list[int] = []
    for number in range(turns):
        deliveries = [Delivery(None, 1, False, sequence=number * in_each + each) for each in range(in_each)]
        for one in deliveries:
            store.note_queued(Message(f"t/{one.sequence}", bytes(size)), [(stored, one)])
        store.note_received(stored, number)
        assert store.settle(await broker.append(store.batches()))
        offsets += [one.offset for one in deliveries]
    return offsets


def topics(found: dict[int, Message], offsets: Iterable[int]) -> list[str]:
    return [found[offset].topic for offset in offsets]


async def test_many_with_few_reads(start: Start) -> None:
    broker = start()
    offsets = await filled(broker, turns=40, in_each=25)
    counted = Counted(broker)
    found = await Reading(counted).load(reversed(offsets))  # type: ignore[arg-type]
    assert topics(found, offsets) == [f"t/{number}" for number in range(1000)]
    assert counted.reads == 1


async def test_those_that_are_far_apart_are_read_one_by_one(start: Start) -> None:
    broker = start()
    offsets = await filled(broker, turns=40, in_each=25, size=2000)
    counted = Counted(broker)
    wanted = [offsets[0], offsets[500], offsets[999]]
    with mock.patch.object(reading, "FAR", 100):
        found = await Reading(counted).load(wanted)  # type: ignore[arg-type]
    assert topics(found, wanted) == ["t/0", "t/500", "t/999"]
    assert counted.reads == 3


async def test_they_are_remembered_for_a_while(start: Start) -> None:
    broker = start()
    offsets = await filled(broker, turns=1, in_each=20, size=1000)
    counted = Counted(broker)
    read = Reading(counted)  # type: ignore[arg-type]
    first = await read.load(offsets[:10])
    assert (await read.load(offsets[:10])) == first
    assert counted.reads == 1
    with mock.patch.object(reading, "REMEMBERED_BYTES", 5000):
        await read.load(offsets)
        assert counted.reads == 2
        assert len(read._remembered) <= 3
    assert topics(await read.load(offsets), offsets) == [f"t/{number}" for number in range(20)]


async def test_what_is_not_there(start: Start) -> None:
    """Offsets below the log start, above its end, and those of other records."""
    broker = start()
    offsets = await filled(broker, turns=3, in_each=5)
    await broker.topics.delete_records(QUEUE.topic, 0, offsets[7])
    others = set(range(offsets[-1])) - set(offsets)
    assert len(others) >= 2
    found = await Reading(broker).load([*offsets, *others, 10_000])
    assert sorted(found) == offsets[7:]
    assert await Reading(broker).load([]) == {}


async def test_deleted_while_it_is_read(start: Start) -> None:
    broker = start()
    offsets = await filled(broker, turns=3, in_each=5)

    class Deleting(Counted):
        async def read_batches(self, *args: object, **more: object) -> object:
            if not self.reads:
                await broker.topics.delete_records(QUEUE.topic, 0, offsets[7])
            return await super().read_batches(*args, **more)

    found = await Reading(Deleting(broker)).load(offsets)  # type: ignore[arg-type]
    assert sorted(found) == offsets[7:]
