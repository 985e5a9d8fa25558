"""A nursery for what lasts as long as a block."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from leafcuttr.runtime.block_nursery import open_block_nursery


async def test_its_tasks_end_with_the_block() -> None:
    ended = []

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(True)

    async with open_block_nursery() as nursery:
        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        assert not ended
    assert ended


@pytest.mark.parametrize("raised", [ValueError("no"), KeyboardInterrupt("no")])
async def test_what_the_block_raises_is_in_no_group(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught:
        async with open_block_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise raised
    assert caught.value is raised


async def test_a_task_that_fails_ends_the_block() -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises((ValueError, BaseExceptionGroup)) as caught:
        async with open_block_nursery() as nursery:
            nursery.start_soon(fails)
            await trio.sleep_forever()
    assert caught.group_contains(ValueError)
