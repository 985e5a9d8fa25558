"""A nursery for what lasts as long as a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_block_nursery() -> AsyncIterator[trio.Nursery]:
    """Its tasks are cancelled at the end of the block. What the block raises is raised as it is, and in no group."""
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except BaseException as error:
            raised = error
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
