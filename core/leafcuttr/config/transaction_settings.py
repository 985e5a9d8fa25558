"""transaction_settings"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, INT, SHORT, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, "", unit="ms", minimum=0),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, "", unit="ms", minimum=1),
    Setting("producer.id.expiration.ms", INT, 86_400_000, "", unit="ms", minimum=1, dynamic=True),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, "", unit="ms", minimum=1
    ),
    Setting("transaction.max.timeout.ms", INT, 900_000, "", unit="ms", minimum=1),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, "", dynamic=True),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, "", unit="ms", minimum=1
    ),
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, "", minimum=1),
    Setting("transaction.state.log.min.isr", INT, 2, "", minimum=1),
    Setting("transaction.state.log.num.partitions", INT, 50, "", minimum=1),
    Setting("transaction.state.log.replication.factor", SHORT, 3, "", minimum=1),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, "", unit="bytes", minimum=1),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, ""),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, "", unit="ms", minimum=1),
)
