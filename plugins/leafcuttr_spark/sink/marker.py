"""Which micro-batch a transaction has carried: the offset of a group that has the transactional id as its name, on
partition 0 of one of the transaction's topics, with the query in its metadata.

    offset 18, metadata {"query": "b0a3c1d2-...", "batch": 17, "offsets": "5f1d..."}

`offsets` tells batches of one number apart: a query whose checkpoint was restored from a backup makes a batch 17 anew,
with what there is then. Such a batch can be neither skipped, or records were lost, nor written, or some came twice.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition

_LONGEST: Final = 4096
"""Characters: a broker takes no more metadata by default, and ours are fewer."""


class MicroBatch(NamedTuple):
    """One micro-batch of a query."""

    query: str
    """The id that is in the query's checkpoint."""
    batch: int
    offsets: str
    """A digest of the offsets that it reads."""


class StaleCheckpointError(PluginError):
    """The query's checkpoint is older than what the query has written."""


def mark(done: MicroBatch, topics: Iterable[str]) -> dict[TopicPartition, CommittedOffset]:
    """What is committed with the transaction of this batch, which wrote to these topics."""
    return {TopicPartition(min(topics), 0): CommittedOffset(done.batch + 1, json.dumps(done._asdict()))}


def last_done(
    committed: Mapping[TopicPartition, CommittedOffset], query: str
) -> tuple[MicroBatch | None, MicroBatch | None]:
    """The last batch of this query, and the last one of another query, by what the group has committed. A query whose
    batches went to other topics has left more than one mark."""
    own: MicroBatch | None = None
    other: MicroBatch | None = None
    for each in committed.values():
        found = _read(each)
        if found is None:
            continue
        if found.query == query:
            own = found if own is None or found.batch > own.batch else own
        else:
            other = found if other is None or found.batch > other.batch else other
    return own, other


def is_done(this: MicroBatch, last: MicroBatch | None) -> bool:
    """Whether this batch is the last one that its query has committed. Raises StaleCheckpointError for a batch that
    comes before that one, or has its number and other offsets."""
    if last is None or this.batch > last.batch:
        return False
    if this == last:
        return True
    raise StaleCheckpointError(
        f"batch {this.batch} of query {this.query} cannot be written: batch {last.batch} was, and the checkpoint does"
        " not know of it, as after it was restored from a backup. Restore a later one; or begin with another checkpoint"
        " and startingOffsets behind what was written"
    )


def _read(committed: CommittedOffset) -> MicroBatch | None:
    try:
        kept = json.loads(committed.metadata[:_LONGEST])
        found = MicroBatch(str(kept["query"]), int(kept["batch"]), str(kept["offsets"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if committed.offset == found.batch + 1 else None
