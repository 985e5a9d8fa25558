"""group_settings"""

from typing import Final

from leafcuttr.config.setting import INT, INT_MAX, LIST, LONG, SHORT, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("group.coordinator.append.linger.ms", INT, -1, "", unit="ms", minimum=-1),
    Setting("group.coordinator.background.threads", INT, 2, "", minimum=1),
    Setting(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        "",
        unit="bytes",
        minimum=524_288,
        dynamic=True,
    ),
    Setting(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "",
        choices=("consumer", "classic", "share", "streams"),
    ),
    Setting("group.coordinator.threads", INT, 4, "", minimum=1),
    Setting("group.initial.rebalance.delay.ms", INT, 0, "", unit="ms"),
    Setting("group.max.session.timeout.ms", INT, 1_800_000, "", unit="ms"),
    Setting("group.max.size", INT, INT_MAX, "", minimum=1),
    Setting("group.min.session.timeout.ms", INT, 6000, "", unit="ms"),
    Setting("offset.metadata.max.bytes", INT, 4096, "", unit="bytes"),
    Setting("offsets.commit.timeout.ms", INT, 5000, "", unit="ms", minimum=1),
    Setting("offsets.load.buffer.size", INT, 5_242_880, "", minimum=1),
    Setting("offsets.retention.check.interval.ms", LONG, 600_000, "", unit="ms", minimum=1),
    Setting("offsets.retention.minutes", INT, 10_080, "", unit="minutes", minimum=1),
    Setting("offsets.topic.compression.codec", INT, 0, ""),
    Setting("offsets.topic.num.partitions", INT, 50, "", minimum=1),
    Setting("offsets.topic.replication.factor", SHORT, 3, "", minimum=1),
    Setting("offsets.topic.segment.bytes", INT, 104_857_600, "", unit="bytes", minimum=1),
)
