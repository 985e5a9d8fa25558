"""The staging of partitions: those of a new topic, and those that a topic grows by.

No client sees a topic of which only a part exists, and no crash leaves one. Therefore there is one moment at which the
partitions come to exist, the commit of the metadata; the steps before it can be taken back, those after it
cannot fail as a whole:

    1  prepared    the folders are made under names of deleted ones            worker     may fail, taken back
    2  committed   the metadata has the topic, or its new number of partitions   worker     may fail, taken back
    3  adopted     the folders get their names, the logs are open              loop       each for itself
    4  published   `Topics` has them, and tells of it                          loop       cannot fail

1 and 3 are done 64 partitions at a time, because a request may create thousands. Where a step ends early:

    an error in 1 or 2        the folders made so far are removed (`staged`), and the caller gets the error. That a full
                              disk may keep them from being removed does no harm: their names say that they can go.
    a cancelled caller        is noticed before the commit only, and is then an error like any other. Step 2 is one call
                              of a worker, which trio waits for; 3 is shielded, and 4 does not wait.
    a folder that gets no     the partition is offline, and says why when it is written to or read. The topic exists,
    name in 3                 so its other partitions work, and the next start tries again.
    a crash before the commit the next start removes folders with such names.
    a crash behind it         the next start finds the topic in the metadata, makes the folders that have not got their
                              names anew, and takes the others as they are. All are empty: they had not been published.

The caller holds the topic's turn from before 1 to after 4, so no other change of the topic sees it in between.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from leafcuttr import crashpoints
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager, LogSpec

_Item = TypeVar("_Item")

# How many partitions are worked on between two checkpoints of the loop or the worker.
_CHUNK: Final = 64


@asynccontextmanager
async def staged(logs: LogManager, specs: Sequence[LogSpec]) -> AsyncIterator[None]:
    """Prepare partitions around their commit, and take them back if it, or the preparation, does not come about.

    Raises StorageError.
    """
    made: list[LogSpec] = []
    try:
        for chunk in in_chunks(specs):
            # Before the worker begins: a partition of a chunk that fails halfway may be there, and `discard` takes one
            # that is not there for removed.
            made.extend(chunk)
            await trio.to_thread.run_sync(_prepare, logs, chunk)
        crashpoints.reach("topic-create.folders")
        yield
    except BaseException:
        with trio.CancelScope(shield=True):
            for chunk in in_chunks(made):
                await trio.to_thread.run_sync(_discard, logs, chunk)
        raise


async def adopted(logs: LogManager, specs: Sequence[LogSpec]) -> list[Log]:
    """The logs of partitions that the metadata has now. Not cancelled: there is no way back any more."""
    found: list[Log] = []
    with trio.CancelScope(shield=True):
        for chunk in in_chunks(specs):
            found.extend(logs.adopt(spec) for spec in chunk)
            await trio.lowlevel.checkpoint()
    return found


def in_chunks(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """As many of them as may be worked on in one go."""
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def _prepare(logs: LogManager, specs: Sequence[LogSpec]) -> None:
    for spec in specs:
        logs.prepare(spec)


def _discard(logs: LogManager, specs: Sequence[LogSpec]) -> None:
    for spec in specs:
        logs.discard(spec)
