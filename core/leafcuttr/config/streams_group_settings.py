"""Broker settings of streams groups (KIP-1071)."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import INT, INT_MAX, ConfigKey, Effect

unused: Final = partial(ConfigKey, effect=Effect.NONE, reason="this kind of group comes in a later version")

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "group.streams.assignment.interval.ms",
        INT,
        1000,
        "The least time between two assignments of a streams group.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    unused(
        "group.streams.heartbeat.interval.ms",
        INT,
        5000,
        "How often members of a streams group report.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long a new streams group waits for more members.",
        unit="ms",
        minimum=0,
    ),
    unused(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        "The longest assignment interval that one streams group may set.",
        unit="ms",
        minimum=0,
    ),
    unused(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The longest heartbeat interval that one streams group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.streams.max.session.timeout.ms",
        INT,
        60_000,
        "The longest session timeout that one streams group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.streams.max.size",
        INT,
        INT_MAX,
        "The most members of one streams group.",
        unit="members",
        minimum=1,
    ),
    unused(
        "group.streams.max.standby.replicas",
        INT,
        2,
        "The most standby replicas that one streams group may set.",
        unit="replicas",
        minimum=0,
    ),
    unused(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        "The shortest assignment interval that one streams group may set.",
        unit="ms",
        minimum=0,
    ),
    unused(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest heartbeat interval that one streams group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.streams.min.session.timeout.ms",
        INT,
        45_000,
        "The shortest session timeout that one streams group may set.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "group.streams.num.standby.replicas",
        INT,
        0,
        "Standby replicas of a streams group's tasks.",
        unit="replicas",
        minimum=0,
    ),
    unused(
        "group.streams.session.timeout.ms",
        INT,
        45_000,
        "How long a member of a streams group may be silent before it is removed.",
        unit="ms",
        minimum=1,
    ),
)
