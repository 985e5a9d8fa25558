"""replication_settings"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, INT, LONG, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, "", minimum=1),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, ""),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, "", unit="seconds", minimum=1),
    Setting("num.replica.alter.log.dirs.threads", INT, None, ""),
    Setting("num.replica.fetchers", INT, 1, "", minimum=1, dynamic=True),
    Setting("replica.fetch.backoff.ms", INT, 1000, "", unit="ms", minimum=0),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, "", unit="bytes", minimum=0),
    Setting("replica.fetch.min.bytes", INT, 1, "", unit="bytes"),
    Setting("replica.fetch.response.max.bytes", INT, 10_485_760, "", unit="bytes", minimum=0),
    Setting("replica.fetch.wait.max.ms", INT, 500, "", unit="ms"),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "", unit="ms"),
    Setting("replica.lag.time.max.ms", LONG, 30_000, "", unit="ms"),
    Setting("replica.selector.class", STRING, None, ""),
    Setting("replica.socket.receive.buffer.bytes", INT, 65_536, "", unit="bytes"),
    Setting("replica.socket.timeout.ms", INT, 30_000, "", unit="ms"),
    Setting("replication.quota.window.num", INT, 11, "", minimum=1),
    Setting("replication.quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
)
