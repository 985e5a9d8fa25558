"""The differences between Apache Kafka and LeafCuttr that are right, each with its reason.

An entry that no difference needs any more fails the full run, so that the list says what is true.
Values that no two brokers could share (uuids, ports) are renamed in `compare.py` and need no entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from parity.compare import Difference


class _Any:
    """Any value at all."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "any"


ANY = _Any()


@dataclass(frozen=True, eq=False)
class Allowed:
    """One allowed difference. `api`, `place` and `case` are patterns; a place is a path with `[]` for any position,
    or the whole path where a key in it matters: `results[].configs[log.dirs].value` is spelt `*configs[log.dirs]*`.
    It names a field, not an answer. `kafka` and `ours` are the values, where only these are right.

    `by_chance`: whether it is needed differs from run to run, because ids that the broker draws decide. `as_asked`: of
    an order, ours has to be that of the request. `variant`: only where the scenario runs with these settings (a key of
    its `also_with`, or "" without any); by default in all. `walked`: only the walk over rights needs it.
    """

    reason: str
    api: str
    place: str
    case: str = "*"
    kafka: object = ANY
    ours: object = ANY
    by_chance: bool = False
    as_asked: bool = False
    variant: str | None = None
    walked: bool = False

    def covers(self, row: Difference, variant: str = "") -> bool:
        def fits(value: str, pattern: str) -> bool:
            # fnmatch gives brackets a meaning that paths do not want.
            return fnmatchcase(value.replace("[", "<"), pattern.replace("[", "<"))

        place = fits(row.place, self.place) or fits(row.path, self.place)
        values = self.kafka == row.kafka and self.ours == row.ours
        order = (row.as_asked or not self.as_asked) and self.variant in (None, variant)
        return place and values and order and fits(row.api, self.api) and fits(row.case, self.case)


def each(
    reason: str, api: str, prefix: str, fields: Iterable[str], cases: Iterable[str] = ("*",), **more: Any
) -> tuple[Allowed, ...]:
    """One entry for every field in every case."""
    return tuple(Allowed(reason, api, prefix + field, case, **more) for field, case in product(fields, cases))


CLOCK = "the wall clock of the moment of the append"
RAFT = "there is no Raft log: the numbers of the metadata store are its own"
CLUSTER = "each cluster has an id of its own"
AT_ONCE = "a topic that a request creates is there when it is answered; Kafka lets the client ask again"
FEATURES = "feature levels speak of KRaft and new groups; nothing is announced before it works"
PATTERNS = "of RE2's syntax flags and named classes are refused"
SHARE = "share groups are not served yet"
OPAQUE = "a compressed batch is not opened on the way in, unless lc.records.check is full"
LENGTHS = "of records only the lengths are looked at, unless lc.records.check is full"
STRICT = "with lc.records.check=full a batch is refused that Kafka stores and its readers would misunderstand"
NAMELESS = "Kafka fails with UNKNOWN_SERVER_ERROR where the request can be served or refused by name"
ALONE = "a follower is refused; there is no other leader to send it to"
INTERNAL = "an internal setting of Kafka's, given so that nobody waits for its first check of retention"
AUTHORIZERS_OWN = "settings of the authorizer, which Kafka does not describe: the class reads them itself"
OWN_SETTING = "a setting that only LeafCuttr has"
DEFAULTS = "a default of LeafCuttr's own (data directory, one node), said in the docs"
SPACE = "Kafka's words lack a space between two of them"
HASHED = "Kafka keeps these in a hash table and tells them as they come out of it"
PRODUCED = "responses[].partition_responses[]."
FETCHED = "responses[].partitions[]."
LISTED = "topics[].partitions[]."
OUTCOME = ("error_code", "base_offset", "record_errors[]", "error_message")
STORED = (
    "*: a key of minus five bytes*",
    "*: a header's value of minus five bytes*",
    "inside: an offset delta of five*",
    "compressed: a negative length*",
    "compressed: a length of more than is left*",
    "compressed: a record shorter than its fields*",
)
MISREAD = (*STORED, "compressed: an offset delta of five*")
UNSERVED = ("negative limit", "negative partition limit", "isolation level 2")  # of Fetch, by Kafka
WHAT_IS_THERE = ("high_watermark", "last_stable_offset", "log_start_offset", "records", "batches[]")
ALLOWED: tuple[Allowed, ...] = (
    Allowed(CLOCK, "produce", "responses[].partition_responses[].log_append_time", "log append time"),
    Allowed(CLUSTER, "metadata", "cluster_id"),
    Allowed(CLUSTER, "describe_cluster", "cluster_id"),
    Allowed(AT_ONCE, "metadata", "topics[].error_code", "created by asking", kafka=3, ours=0),
    *each(AT_ONCE, "metadata", "topics[].", ("topic_id", "partitions[]"), ("created by asking",)),
    Allowed(FEATURES, "api_versions", "supported_features[]", ours="absent"),
    Allowed(FEATURES, "api_versions", "finalized_features[]", ours="absent"),
    Allowed(FEATURES, "update_features", "*error_message", "too high"),
    Allowed(AT_ONCE, "find_coordinator", "*error_code", "*transaction", kafka=15, ours=0),
    *each(AT_ONCE, "find_coordinator", "*", ("error_message", "node_id", "host", "port"), ("*transaction",)),
    Allowed(PATTERNS, "list_transactions", "error_code", "pattern '(?i)*", kafka=0, ours=128),
    Allowed(PATTERNS, "list_transactions", "transaction_states[]", "pattern '(?i)*", ours="absent"),
    Allowed(SHARE, "find_coordinator", "coordinators[].error_code", "a share group", kafka=15, ours=42),
    Allowed(OPAQUE, "produce", PRODUCED + "error_code", "reserved codec", kafka=-1, ours=87),
    Allowed(OPAQUE, "produce", PRODUCED + "log_start_offset", "reserved codec", kafka=-1, ours=0),
    Allowed(OPAQUE, "produce", PRODUCED + "error_code", "compressed garbage", kafka=-1, ours=0, variant=""),
    Allowed(OPAQUE, "produce", PRODUCED + "base_offset", "compressed garbage", kafka=-1, variant=""),
    *each(OPAQUE, "produce", PRODUCED, OUTCOME, ("compressed: *",), variant=""),
    *each(OPAQUE, "fetch", "batches[]", ("", ".max_time", ".count"), ("compressed: *; stored",), variant=""),
    *each(LENGTHS, "produce", PRODUCED, OUTCOME, ("inside: *",), variant=""),
    *each(LENGTHS, "fetch", "batches[]", ("", ".max_time"), ("inside: *; stored",), variant=""),
    *each(STRICT, "produce", PRODUCED, ("error_code",), MISREAD, variant="full"),
    *each(STRICT, "produce", PRODUCED, ("base_offset",), STORED, variant="full"),
    *each(STRICT, "fetch", "", ("batches[]",), (f"{one}; stored" for one in STORED), variant="full"),
    Allowed(
        "Kafka's reader of zstd takes no bytes for a stream without records",
        *("produce", PRODUCED + "error_code", "compressed: nothing, zstd"),
        kafka=87,
        ours=-1,
        variant="full",
    ),
    *each(NAMELESS, "fetch", FETCHED, ("error_code",), UNSERVED, kafka=-1, ours=0),
    *each(NAMELESS, "fetch", FETCHED, WHAT_IS_THERE, UNSERVED),
    Allowed(NAMELESS, "fetch", "error_code", "isolation level 2", kafka=-1, ours=0),
    Allowed(NAMELESS, "fetch", FETCHED + "aborted_transactions", "isolation level 2", kafka=[], ours=None),
    Allowed(NAMELESS, "fetch", "responses[]", "isolation level 2", kafka="absent"),
    *each(ALONE, "fetch", FETCHED + "current_leader.", ("leader_id", "leader_epoch"), ("from a follower",)),
    Allowed(NAMELESS, "list_offsets", LISTED + "error_code", "isolation level 3", kafka=-1, ours=0),
    *each(NAMELESS, "list_offsets", LISTED, ("offset", "leader_epoch"), ("isolation level 3",), kafka=-1),
    Allowed(NAMELESS, "describe_topic_partitions", "topics[].error_code", "empty name", kafka=-1, ours=17),
    Allowed(NAMELESS, "describe_topic_partitions", "topics[].topic_authorized_operations", "empty name"),
    Allowed(
        NAMELESS, "create_acls", "results[].error_code", "impossible ones", kafka=-1, ours=42, walked=True
    ),
    Allowed(NAMELESS, "create_acls", "results[].error_message", "impossible ones", kafka=None, walked=True),
    Allowed(HASHED, "add_partitions_to_txn", "results_by_topic_v3_and_below (order)", as_asked=True),
    Allowed(
        HASHED,
        "add_partitions_to_txn",
        "results_by_topic_v3_and_below[].results_by_partition (order)",
        as_asked=True,
    ),
    Allowed(HASHED, "add_partitions_to_txn", "results_by_transaction[].topic_results (order)", as_asked=True),
    Allowed(HASHED, "delete_groups", "results (order)", as_asked=True),
    Allowed(HASHED, "delete_records", "topics[].partitions (order)", as_asked=True),
    Allowed(HASHED, "delete_topics", "responses (order)", as_asked=True),
    Allowed(HASHED, "describe_configs", "results[].configs (order)"),
    Allowed(HASHED, "describe_groups", "groups (order)", as_asked=True),
    Allowed(HASHED, "describe_log_dirs", "results[].topics[].partitions (order)", as_asked=True),
    Allowed(HASHED, "describe_log_dirs", "topics[].partitions (order)", "all"),
    Allowed(HASHED, "describe_transactions", "transaction_states[].topics[].partitions (order)"),
    Allowed(HASHED, "join_group", "members (order)", by_chance=True),
    Allowed(HASHED, "list_groups", "groups (order)"),
    Allowed(HASHED, "list_offsets", "topics[].partitions (order)", as_asked=True),
    Allowed(HASHED, "list_transactions", "transaction_states (order)"),
    Allowed(HASHED, "offset_fetch", "*topics (order)"),
    Allowed(HASHED, "produce", "responses (order)", as_asked=True),
    Allowed(HASHED, "produce", "responses[].partition_responses (order)", as_asked=True),
    Allowed(HASHED, "write_txn_markers", "markers[].topics[].partitions (order)", as_asked=True),
    Allowed(INTERNAL, "describe_configs", "*configs[log.initial.task.delay.ms]", ours="absent"),
    Allowed(INTERNAL, "describe_configs", "log.initial.task.delay.ms", "documentation there or not*"),
    Allowed(OWN_SETTING, "create_topics", "*configs[lc.*]", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "*configs[lc.*]", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "*configs[mqtt.*]", kafka="absent"),
    Allowed(OWN_SETTING, "create_topics", "*configs[confluent.*]", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "*configs[confluent.*]", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "*configs[unstable.api.versions.enable]", kafka="absent"),
    Allowed(AUTHORIZERS_OWN, "describe_configs", "*configs[super.users]", kafka="absent"),
    Allowed(AUTHORIZERS_OWN, "describe_configs", "*configs[allow.everyone.if.no.acl.found]", kafka="absent"),
    Allowed(
        AUTHORIZERS_OWN, "describe_configs", "super.users", "documentation there or not*", kafka="absent"
    ),
    Allowed(
        AUTHORIZERS_OWN,
        "describe_configs",
        "allow.everyone.if.no.acl.found",
        "documentation there or not*",
        kafka="absent",
    ),
    Allowed(OWN_SETTING, "describe_configs", "lc.*", "documentation there or not*", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "mqtt.*", "documentation there or not*", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "confluent.*", "documentation there or not*", kafka="absent"),
    Allowed(OWN_SETTING, "describe_configs", "unstable.*", "documentation there or not*", kafka="absent"),
    Allowed(DEFAULTS, "describe_configs", "*configs[log.dir].value"),
    Allowed(DEFAULTS, "describe_configs", "*configs[log.dir].synonyms[log.dir].value"),
    Allowed(DEFAULTS, "describe_configs", "*configs[node.id].synonyms[1]", kafka="absent"),
    Allowed(DEFAULTS, "describe_configs", "*configs[process.roles].synonyms[1]", kafka="absent"),
    Allowed(DEFAULTS, "describe_configs", "*configs[controller.listener.names].synonyms[1]", kafka="absent"),
    Allowed(DEFAULTS, "describe_configs", "*configs[listeners].synonyms[1].value"),
    Allowed("the free space of the moment", "describe_log_dirs", "results[].usable_bytes"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].high_watermark"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].log_end_offset"),
    Allowed(RAFT, "describe_quorum", "topics[].partitions[].current_voters[].last_*_timestamp"),
    Allowed(RAFT, "describe_quorum", "nodes[].listeners[]"),
    Allowed(SPACE, "alter_client_quotas", "entries[].error_message", "an address and a user"),
)


def verdict(rows: Iterable[Difference], variant: str = "") -> tuple[list[Difference], set[Allowed]]:
    """What nothing allows in this variant of a scenario, and the entries that were used."""
    left: list[Difference] = []
    used: set[Allowed] = set()
    for row in rows:
        fitting = [entry for entry in ALLOWED if entry.covers(row, variant)]
        if fitting:
            used.add(fitting[0])
        else:
            left.append(row)
    return left, used
