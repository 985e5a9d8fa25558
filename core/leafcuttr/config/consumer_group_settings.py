"""Broker settings of consumer groups (KIP-848)."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import INT, INT_MAX, LIST, STRING, ConfigKey, Effect

unused: Final = partial(ConfigKey, effect=Effect.NONE, reason="this kind of group comes in a later version")

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        "The least time between two assignments of a consumer group.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    unused(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "The assignors that a consumer group may use, the default first.",
    ),
    unused(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often members of a consumer group report.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "The longest assignment interval that one consumer group may set.",
        unit="ms",
        minimum=0,
    ),
    unused(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The longest heartbeat interval that one consumer group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "The longest session timeout that one consumer group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        "The most members of one consumer group.",
        unit="members",
        minimum=1,
    ),
    unused(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Between which protocols a group may change while it has members.",
        choices=("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        ignore_case=True,
    ),
    unused(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The shortest assignment interval that one consumer group may set.",
        unit="ms",
        minimum=0,
    ),
    unused(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest heartbeat interval that one consumer group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "The shortest session timeout that one consumer group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "How long a member of a consumer group may be silent before it is removed.",
        unit="ms",
        minimum=1,
    ),
)
