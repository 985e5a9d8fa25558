"""tiered_settings"""

from typing import Final

from leafcuttr.config.checks import not_empty
from leafcuttr.config.setting import BOOLEAN, INT, LONG, LONG_MAX, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, "", dynamic=True),
    Setting("log.local.retention.bytes", LONG, -2, "", unit="bytes", minimum=-2, dynamic=True),
    Setting("log.local.retention.ms", LONG, -2, "", unit="ms", minimum=-2, dynamic=True),
    Setting("remote.fetch.max.wait.ms", INT, 500, "", unit="ms", minimum=1, dynamic=True),
    Setting("remote.list.offsets.request.timeout.ms", LONG, 30_000, "", unit="ms", minimum=1, dynamic=True),
    Setting(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1_073_741_824,
        "",
        unit="bytes",
        minimum=1,
        dynamic=True,
    ),
    Setting("remote.log.manager.copier.thread.pool.size", INT, 10, "", minimum=1, dynamic=True),
    Setting(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "",
        unit="bytes",
        minimum=1,
        dynamic=True,
    ),
    Setting("remote.log.manager.copy.quota.window.num", INT, 11, "", minimum=1),
    Setting("remote.log.manager.copy.quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
    Setting("remote.log.manager.expiration.thread.pool.size", INT, 10, "", minimum=1, dynamic=True),
    Setting(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "",
        unit="bytes",
        minimum=1,
        dynamic=True,
    ),
    Setting("remote.log.manager.fetch.quota.window.num", INT, 11, "", minimum=1),
    Setting("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
    Setting("remote.log.manager.follower.thread.pool.size", INT, 2, "", minimum=1, dynamic=True),
    Setting("remote.log.manager.task.interval.ms", LONG, 30_000, "", unit="ms", minimum=1),
    Setting("remote.log.manager.thread.pool.size", INT, 2, "", minimum=1),
    Setting("remote.log.metadata.custom.metadata.max.bytes", INT, 128, "", unit="bytes", minimum=0),
    Setting(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        "",
        check=not_empty,
    ),
    Setting("remote.log.metadata.manager.class.path", STRING, None, ""),
    Setting("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", "", check=not_empty),
    Setting("remote.log.metadata.manager.listener.name", STRING, None, "", check=not_empty),
    Setting("remote.log.reader.max.pending.tasks", INT, 100, "", minimum=1),
    Setting("remote.log.reader.threads", INT, 10, "", minimum=1, dynamic=True),
    Setting("remote.log.storage.manager.class.name", STRING, None, "", check=not_empty),
    Setting("remote.log.storage.manager.class.path", STRING, None, ""),
    Setting("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", "", check=not_empty),
    Setting("remote.log.storage.system.enable", BOOLEAN, False, ""),
)
