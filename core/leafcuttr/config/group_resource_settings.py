"""Settings of one group, as GROUP resources show them: overrides of what the broker has for every group."""

from functools import partial
from typing import Final

from leafcuttr.config import consumer_group_settings, share_group_settings, streams_group_settings
from leafcuttr.config.setting import BOOLEAN, STRING, ConfigKey, Effect

_BROKER: Final[dict[str, ConfigKey]] = {
    setting.name: setting
    for module in (consumer_group_settings, share_group_settings, streams_group_settings)
    for setting in module.SETTINGS
}

_unused: Final = partial(
    ConfigKey, dynamic=True, effect=Effect.REFUSED, reason="this kind of group comes in a later version"
)


def _of_broker(name: str, help_: str) -> ConfigKey:
    """One that every group has from the broker. As in Kafka it has no bounds: those are of what a group may set."""
    broker = _BROKER[f"group.{name}"]
    return _unused(name, broker.type, broker.default, help_, unit=broker.unit, synonyms=((broker.name, 1),))


SETTINGS: Final[tuple[ConfigKey, ...]] = (
    _of_broker("consumer.assignment.interval.ms", "The least time between two assignments."),
    _of_broker("consumer.heartbeat.interval.ms", "How often members report."),
    _of_broker("consumer.session.timeout.ms", "How long a member may be silent before it is removed."),
    _of_broker("share.assignment.interval.ms", "The least time between two assignments."),
    _unused("share.auto.offset.reset", STRING, "latest", "Where a share group begins to read."),
    _of_broker("share.delivery.count.limit", "How often one record is delivered at most."),
    _of_broker("share.heartbeat.interval.ms", "How often members report."),
    _unused(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Whether a share group sees records of transactions that are open or were aborted.",
    ),
    _of_broker("share.partition.max.record.locks", "Records of a partition held at once."),
    _of_broker("share.record.lock.duration.ms", "How long a member may hold a record."),
    _unused("share.renew.acknowledge.enable", BOOLEAN, True, "Let members hold a record for longer."),
    _of_broker("share.session.timeout.ms", "How long a member may be silent before it is removed."),
    _of_broker("streams.assignment.interval.ms", "The least time between two assignments."),
    _of_broker("streams.heartbeat.interval.ms", "How often members report."),
    _of_broker("streams.initial.rebalance.delay.ms", "How long a new group waits for more members."),
    _of_broker("streams.num.standby.replicas", "Standby replicas of the group's tasks."),
    _of_broker("streams.session.timeout.ms", "How long a member may be silent before it is removed."),
)
