"""Reads that would wait for the disk, done so that the event loop does not wait."""

from collections.abc import Callable
from typing import TypeVar

import trio

from leafcuttr.log.files.open_file import NotCached

T = TypeVar("T")


async def off_loop(attempt: Callable[[bool], T]) -> T:
    """Call `attempt(False)` (its argument is `may_block`) until what it needs is in the page cache, reading that in
    worker threads."""
    while True:
        try:
            return attempt(False)
        except NotCached as cold:
            await trio.to_thread.run_sync(cold.warm)
