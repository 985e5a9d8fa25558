"""The differences between Apache Kafka and LeafCuttr that are right, each with its reason.

An entry that no difference needs any more fails the full run, so that the list says what is true.
Values that no two brokers could share (uuids, ports) are renamed in `compare.py` and need no entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from parity.compare import Difference


@dataclass(frozen=True)
class Allowed:
    """One allowed difference. `api`, `place` and `case` are patterns; a place is a path with `[]` for any position,
    or the whole path where a key in it matters: `results[].configs[log.dirs].value` is spelt `*configs[log.dirs]*`.
    """

    reason: str
    api: str
    place: str
    case: str = "*"

    def covers(self, row: Difference) -> bool:
        def fits(value: str, pattern: str) -> bool:
            # fnmatch gives brackets a meaning that paths do not want.
            return fnmatchcase(value.replace("[", "<"), pattern.replace("[", "<"))

        place = fits(row.place, self.place) or fits(row.path, self.place)
        return place and fits(row.api, self.api) and fits(row.case, self.case)


CLOCK = "the wall clock of the moment of the append"
RAFT = "there is no Raft log: the numbers of the metadata store are its own"
ALLOWED: tuple[Allowed, ...] = (
    Allowed(CLOCK, "produce", "responses[].partition_responses[].log_append_time", "log append time"),
    Allowed("the free space of the moment", "describe_log_dirs", "results[].usable_bytes"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].high_watermark"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].log_end_offset"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].last_*_timestamp"),
    Allowed(RAFT, "describe_quorum", "nodes[].listeners[].port"),
)


def verdict(rows: Iterable[Difference]) -> tuple[list[Difference], set[Allowed]]:
    """What nothing allows, and the entries that were used."""
    left: list[Difference] = []
    used: set[Allowed] = set()
    for row in rows:
        fitting = [entry for entry in ALLOWED if entry.covers(row)]
        if fitting:
            used.add(fitting[0])
        else:
            left.append(row)
    return left, used
