"""The messages between broker and child: one JSON object a line, its `type` the kind of message.

Broker to child: `round` (a `Round` to do), `rate` (a new limit, also during a round), `go` (the segments of
the last `cleaned` are in their place, or are given up). End of input: end at once.

Child to broker: `cleaned` (a `Cleaned` is on the disk, beside the log; the child waits for `go`), `done` (a `Done`),
`failed` (a `Failed`). Offsets are absolute, times in ms, sizes in bytes.
"""

from typing import Any, Final, NamedTuple

from leafcuttr.log.segment.txn_index import AbortedTransaction

_LAST_MS: Final = 2**63 - 1  # the last delete horizon that the header of a batch can name


class SourceSegment(NamedTuple):
    """A segment to clean: its files are read as far as `size`, its offsets end before `end`."""

    base: int
    size: int
    end: int


class KnownProducer(NamedTuple):
    """A producer that is remembered: the last offset of its data, -1 if it has written none."""

    last_offset: int
    epoch: int


class Round(NamedTuple):
    """All that the child needs to know. `groups` are to become one segment each; offsets from `first_dirty` on have
    not been compacted before. `table_bytes` bounds the table of keys, `rate` reading and writing (bytes/s; 0: none)."""

    directory: str
    groups: list[list[SourceSegment]]
    first_dirty: int
    now_ms: int
    delete_retention_ms: int
    index_interval: int
    chunk: int
    table_bytes: int
    rate: float
    producers: dict[int, KnownProducer]
    aborted: list[AbortedTransaction]

    @property
    def delete_horizon_ms(self) -> int:
        """From when on tombstones and markers that are due in this round may be removed. Kafka's sum wraps beyond the
        last timestamp, and what was to stay for ever is removed in the next round; here it stays."""
        return min(self.now_ms + self.delete_retention_ms, _LAST_MS)


class Cleaned(NamedTuple):
    """One group is done. Not `changed`: nothing of its one segment is removed, and there are no files. `transactions`
    are the entries of its `.txnindex`."""

    group: int
    changed: bool
    size: int
    largest_timestamp: int
    largest_timestamp_offset: int
    transactions: list[AbortedTransaction]


class Done(NamedTuple):
    """The round is over: all before `end` is compacted now. What was read and written, in bytes and records, and the
    seconds that the two passes took (waiting for the limit included)."""

    end: int
    keys: int
    read: int
    written: int
    records: int
    kept: int
    seconds: float


class Failed(NamedTuple):
    """The round has been given up; nothing of it is in place but the groups done before. `damage`: the data are at
    fault, so trying again would not help."""

    reason: str
    damage: bool


def round_of(message: dict[str, Any]) -> Round:
    """The round in a message."""
    return Round(
        message["directory"],
        [[SourceSegment(*source) for source in group] for group in message["groups"]],
        message["first_dirty"],
        message["now_ms"],
        message["delete_retention_ms"],
        message["index_interval"],
        message["chunk"],
        message["table_bytes"],
        message["rate"],
        {int(number): KnownProducer(*rest) for number, rest in message["producers"].items()},
        [AbortedTransaction(*each) for each in message["aborted"]],
    )


def cleaned_of(message: dict[str, Any]) -> Cleaned:
    """The group in a message."""
    transactions = [AbortedTransaction(*each) for each in message["transactions"]]
    return Cleaned(
        message["group"],
        message["changed"],
        message["size"],
        message["largest_timestamp"],
        message["largest_timestamp_offset"],
        transactions,
    )
