"""cluster_settings"""

from typing import Final

from leafcuttr.config.checks import not_empty
from leafcuttr.config.setting import BOOLEAN, INT, LIST, LONG, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("broker.heartbeat.interval.ms", INT, 2000, "", unit="ms"),
    Setting("broker.id", INT, -1, ""),
    Setting("broker.rack", STRING, None, ""),
    Setting("broker.session.timeout.ms", INT, 9000, "", unit="ms"),
    Setting("controlled.shutdown.enable", BOOLEAN, True, ""),
    Setting("controller.listener.names", LIST, ("CONTROLLER",), ""),
    Setting("controller.quorum.append.linger.ms", INT, 25, "", unit="ms", minimum=0),
    Setting("controller.quorum.auto.join.enable", BOOLEAN, False, ""),
    Setting("controller.quorum.bootstrap.servers", LIST, (), "", check=not_empty),
    Setting("controller.quorum.election.backoff.max.ms", INT, 1000, "", unit="ms", minimum=0),
    Setting("controller.quorum.election.timeout.ms", INT, 1000, "", unit="ms", minimum=0),
    Setting("controller.quorum.fetch.max.bytes", INT, 1_048_576, "", unit="bytes", minimum=1),
    Setting("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, "", unit="bytes", minimum=1),
    Setting("controller.quorum.fetch.timeout.ms", INT, 2000, "", unit="ms", minimum=0),
    Setting("controller.quorum.request.timeout.ms", INT, 2000, "", unit="ms", minimum=0),
    Setting("controller.quorum.retry.backoff.ms", INT, 20, "", unit="ms", minimum=0),
    Setting("controller.quorum.voters", LIST, (), "", check=not_empty),
    Setting("controller.quota.window.num", INT, 11, "", minimum=1),
    Setting("controller.quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
    Setting("controller.socket.timeout.ms", INT, 30_000, "", unit="ms"),
    Setting("delete.records.purgatory.purge.interval.requests", INT, 1, ""),
    Setting("fetch.purgatory.purge.interval.requests", INT, 1000, ""),
    Setting("initial.broker.registration.timeout.ms", INT, 60_000, "", unit="ms"),
    Setting("metadata.log.dir", STRING, None, ""),
    Setting("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, "", unit="bytes", minimum=1),
    Setting("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, "", unit="ms", minimum=0),
    Setting("metadata.log.segment.bytes", INT, 1_073_741_824, "", unit="bytes", minimum=8_388_608),
    Setting("metadata.log.segment.ms", LONG, 604_800_000, "", unit="ms"),
    Setting("metadata.max.idle.interval.ms", INT, 500, "", unit="ms", minimum=0),
    Setting("metadata.max.retention.bytes", LONG, 104_857_600, "", unit="bytes"),
    Setting("metadata.max.retention.ms", LONG, 604_800_000, "", unit="ms"),
    Setting("node.id", INT, 1, "", minimum=0),
    Setting("process.roles", LIST, ("broker", "controller"), "", choices=("broker", "controller")),
    Setting("producer.purgatory.purge.interval.requests", INT, 1000, ""),
    Setting("quota.window.num", INT, 11, "", minimum=1),
    Setting("quota.window.size.seconds", INT, 1, "", unit="seconds", minimum=1),
)
