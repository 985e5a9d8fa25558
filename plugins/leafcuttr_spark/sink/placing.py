"""Which partition of its topic each row goes to: as its column `partition` says, as Java's partitioner hashes its key,
or for a row without a key one partition after the other, some rows at a time."""

from typing import Final

import numpy as np
import pyarrow as pa

from leafcuttr_sdk.errors import PluginError
from leafcuttr_spark.codec.murmur2 import partitions_of
from leafcuttr_spark.codec.varints import Longs

_STICKS: Final = 256
"""Rows without a key that go to one partition before the next one is taken, so that batches are not tiny."""


class PlacingError(PluginError):
    """Rows that can go to no partition."""


def placed(keys: pa.Array, chosen: pa.Array | None, partitions: int, salt: int = 0) -> Longs:
    """The partition of each row, of this number of them. `chosen` is what the column `partition` says, null for
    nothing; `salt` says where rows without a key begin. Raises PlacingError for a partition that the topic does not
    have."""
    found = partitions_of(keys, partitions)
    if keys.null_count:
        null = np.asarray(keys.is_null())
        turns = np.arange(int(null.sum()), dtype=np.int64) // _STICKS
        found[null] = (turns + salt) % partitions
    if chosen is not None and chosen.null_count < len(chosen):
        given = ~np.asarray(chosen.is_null())
        wanted = np.asarray(chosen.fill_null(0), np.int64)
        if (given & ((wanted < 0) | (wanted >= partitions))).any():
            wrong = wanted[given & ((wanted < 0) | (wanted >= partitions))][0]
            raise PlacingError(f"a row is for partition {wrong}, and the topic has {partitions}")
        found[given] = wanted[given]
    return found
