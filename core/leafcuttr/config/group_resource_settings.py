"""Settings of one group, as GROUP resources show them: overrides of what the broker has for every group."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, INT, STRING, Effect, Setting

_unused: Final = partial(
    Setting, dynamic=True, effect=Effect.REFUSED, reason="this kind of group comes in a later version"
)


def _of_broker(name: str, default: int, help_: str, unit: str = "ms") -> Setting:
    return _unused(name, INT, default, help_, unit=unit, synonyms=((f"group.{name}", 1),))


SETTINGS: Final[tuple[Setting, ...]] = (
    _of_broker("consumer.assignment.interval.ms", 1000, "The least time between two assignments."),
    _of_broker("consumer.heartbeat.interval.ms", 5000, "How often members report."),
    _of_broker("consumer.session.timeout.ms", 45_000, "When a silent member is taken for gone."),
    _of_broker("share.assignment.interval.ms", 1000, "The least time between two assignments."),
    _unused("share.auto.offset.reset", STRING, "latest", "Where a share group begins to read."),
    _of_broker("share.delivery.count.limit", 5, "How often one record is delivered at most.", "deliveries"),
    _of_broker("share.heartbeat.interval.ms", 5000, "How often members report."),
    _unused(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Whether a share group sees records of transactions that are open or were aborted.",
    ),
    _of_broker("share.partition.max.record.locks", 2000, "Records of a partition held at once.", "records"),
    _of_broker("share.record.lock.duration.ms", 30_000, "How long a member may hold a record."),
    _unused("share.renew.acknowledge.enable", BOOLEAN, True, "Let members hold a record for longer."),
    _of_broker("share.session.timeout.ms", 45_000, "When a silent member is taken for gone."),
    _of_broker("streams.assignment.interval.ms", 1000, "The least time between two assignments."),
    _of_broker("streams.heartbeat.interval.ms", 5000, "How often members report."),
    _of_broker("streams.initial.rebalance.delay.ms", 3000, "How long a new group waits for more members."),
    _of_broker("streams.num.standby.replicas", 0, "Standby replicas of the group's tasks.", "replicas"),
    _of_broker("streams.session.timeout.ms", 45_000, "When a silent member is taken for gone."),
)
