"""Metrics of groups and transactions. Their values are read in `leafcuttr.server.admin.read_groups`."""

from leafcuttr_sdk.metrics import counter, gauge

_PARTITION = ("consumergroup", "topic", "partition")

CURRENT_OFFSET = gauge(
    "kafka_consumergroup_current_offset",
    "The offset that a group has committed for a partition.",
    *_PARTITION,
)
LAG = gauge(
    "kafka_consumergroup_lag",
    "Records between the offset that a group has committed and the end of the partition.",
    *_PARTITION,
)
LAG_SECONDS = gauge(
    "kafka_consumergroup_lag_seconds",
    "Age of the first record that a group has not committed, by the timestamp of its batch; 0 where the group has "
    "committed all.",
    *_PARTITION,
)
MEMBERS = gauge(
    "kafka_consumergroup_members",
    "Members of a group.",
    "consumergroup",
)
GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "Groups by state.",
    "state",
)
OFFSETS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numoffsets",
    "Offsets that groups have committed and that have not expired.",
)
REBALANCES = counter(
    "leafcuttr_group_rebalances_total",
    "Generations that groups have begun since the broker started.",
)
UNNAMED_GROUPS = gauge(
    "leafcuttr_metrics_unnamed_groups",
    "Groups that have no series of their own because of lc.metrics.max.group.partitions.",
)
TRANSACTIONS = gauge(
    "leafcuttr_transactions",
    "Transactional ids by the state of their transaction.",
    "state",
)
TRANSACTIONS_ENDED = counter(
    "leafcuttr_transactions_ended_total",
    "Transactions whose end was decided since the broker started; outcome is commit or abort.",
    "outcome",
)
TRANSACTIONS_TIMED_OUT = counter(
    "leafcuttr_transactions_timed_out_total",
    "Transactions that the broker aborted because they took longer than their producer had said.",
)

METRICS = (
    CURRENT_OFFSET,
    LAG,
    LAG_SECONDS,
    MEMBERS,
    GROUPS,
    OFFSETS,
    REBALANCES,
    UNNAMED_GROUPS,
    TRANSACTIONS,
    TRANSACTIONS_ENDED,
    TRANSACTIONS_TIMED_OUT,
)
