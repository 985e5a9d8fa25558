"""Producer ids: each is given once in the life of a data directory, also across SIGKILL.

Ids are taken from the metadata in blocks, as Kafka's controller hands them to its brokers (KIP-730): the
block is durable before its first id is used, and what a crash leaves unused of it is never used.
"""

from typing import Final

import trio

from leafcuttr.state.metadata import MetadataStore

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The ids of this broker. Any number of tasks may take one at once."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._block = iter(range(0))
        self._refill = trio.Lock()

    async def next_id(self) -> int:
        """The next id; without a wait while the block has some. Raises StorageError if no new block can be
        stored."""
        found = next(self._block, None)
        while found is None:
            async with self._refill:
                found = next(self._block, None)
                if found is None:
                    # A cancelled caller only wastes a block; the next one takes a fresh one.
                    block = await trio.to_thread.run_sync(self._metadata.take_producer_ids, BLOCK_SIZE)
                    self._block = iter(block)
                    found = next(self._block, None)
        return found
