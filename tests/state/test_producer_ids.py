"""Producer ids come in order from durable blocks, and a restart skips what was left of the last one."""

from pathlib import Path

import trio

from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.producer_ids import BLOCK_SIZE, ProducerIds


async def test_ids_across_blocks_and_a_restart(tmp_path: Path) -> None:
    store = MetadataStore.open(tmp_path)
    ids = ProducerIds(store)
    assert [await ids.next_id() for _ in range(BLOCK_SIZE + 2)] == list(range(BLOCK_SIZE + 2))
    store.close()

    store = MetadataStore.open(tmp_path)
    assert await ProducerIds(store).next_id() == 2 * BLOCK_SIZE
    store.close()


async def test_tasks_at_the_same_time_get_different_ids(tmp_path: Path) -> None:
    store = MetadataStore.open(tmp_path)
    ids = ProducerIds(store)
    given: list[int] = []

    async def ask() -> None:
        for _ in range(30):
            given.append(await ids.next_id())

    async with trio.open_nursery() as nursery:
        for _ in range(70):
            nursery.start_soon(ask)

    assert sorted(given) == list(range(70 * 30))
    store.close()


async def test_a_cancelled_task_leaves_the_ids_usable(tmp_path: Path) -> None:
    store = MetadataStore.open(tmp_path)
    ids = ProducerIds(store)
    with trio.CancelScope() as scope:
        scope.cancel()
        await ids.next_id()
    assert await ids.next_id() == 0
    store.close()
