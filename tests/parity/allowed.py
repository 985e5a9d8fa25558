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
CLUSTER = "each cluster has an id of its own"
AT_ONCE = "a topic that a request creates is there when it is answered; Kafka lets the client ask again"
FEATURES = "feature levels speak of KRaft and new groups; nothing is announced before it works"
PATTERNS = "of RE2's syntax flags and named classes are refused"
SHARE = "share groups come with a later issue"
OPAQUE = "what is inside a compressed batch is not opened on the way in"
NAMELESS = "Kafka fails with UNKNOWN_SERVER_ERROR where the request can be served or refused by name"
ALONE = "a follower is refused; there is no other leader to send it to"
INTERNAL = "an internal setting of Kafka's, given so that nobody waits for its first check of retention"
OWN_SETTING = "a setting that only LeafCuttr has"
DEFAULTS = "a default of LeafCuttr's own (data directory, one node), said in the docs"
ALLOWED: tuple[Allowed, ...] = (
    Allowed(CLOCK, "produce", "responses[].partition_responses[].log_append_time", "log append time"),
    Allowed(CLUSTER, "metadata", "cluster_id"),
    Allowed(CLUSTER, "describe_cluster", "cluster_id"),
    Allowed(AT_ONCE, "metadata", "topics[].*", "created by asking"),
    Allowed(FEATURES, "api_versions", "supported_features[]"),
    Allowed(FEATURES, "api_versions", "finalized_features[]"),
    Allowed(FEATURES, "update_features", "*error_message", "too high"),
    Allowed(AT_ONCE, "find_coordinator", "*", "*transaction"),
    Allowed(PATTERNS, "list_transactions", "*", "pattern '(?i)*"),
    Allowed(SHARE, "find_coordinator", "coordinators[].*", "a share group"),
    Allowed(OPAQUE, "produce", "responses[].partition_responses[].*", "reserved codec"),
    Allowed(OPAQUE, "produce", "responses[].partition_responses[].*", "compressed garbage"),
    Allowed(NAMELESS, "fetch", "*", "negative limit"),
    Allowed(NAMELESS, "fetch", "*", "negative partition limit"),
    Allowed(NAMELESS, "fetch", "*", "isolation level 2"),
    Allowed(ALONE, "fetch", "responses[].partitions[].current_leader.*", "from a follower"),
    Allowed(NAMELESS, "list_offsets", "*", "isolation level 3"),
    Allowed(NAMELESS, "describe_topic_partitions", "topics[].*", "empty name"),
    Allowed(INTERNAL, "describe_configs", "*configs[log.initial.task.delay.ms]*"),
    Allowed(INTERNAL, "describe_configs", "log.initial.task.delay.ms", "documentation there or not*"),
    Allowed(OWN_SETTING, "create_topics", "*configs[lc.*"),
    Allowed(OWN_SETTING, "describe_configs", "*configs[lc.*"),
    Allowed(OWN_SETTING, "describe_configs", "lc.*", "documentation there or not*"),
    Allowed(DEFAULTS, "describe_configs", "*configs[log.dir].*"),
    Allowed(DEFAULTS, "describe_configs", "*configs[node.id].synonyms*"),
    Allowed(DEFAULTS, "describe_configs", "*configs[process.roles].synonyms*"),
    Allowed(DEFAULTS, "describe_configs", "*configs[controller.listener.names].synonyms*"),
    Allowed(DEFAULTS, "describe_configs", "*configs[listeners].synonyms*"),
    Allowed("the free space of the moment", "describe_log_dirs", "results[].usable_bytes"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].high_watermark"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].log_end_offset"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].last_*_timestamp"),
    Allowed(RAFT, "describe_quorum", "nodes[].listeners[]*"),
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
