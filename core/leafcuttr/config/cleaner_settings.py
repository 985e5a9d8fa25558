"""cleaner_settings"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, DOUBLE, DOUBLE_MAX, INT, LONG, LONG_MAX, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("log.cleaner.backoff.ms", LONG, 15_000, "", unit="ms", minimum=0, dynamic=True),
    Setting("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, "", dynamic=True),
    Setting("log.cleaner.delete.retention.ms", LONG, 86_400_000, "", unit="ms", minimum=0, dynamic=True),
    Setting("log.cleaner.enable", BOOLEAN, True, ""),
    Setting("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "", dynamic=True),
    Setting("log.cleaner.io.buffer.size", INT, 524_288, "", minimum=0, dynamic=True),
    Setting("log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, "", unit="bytes", dynamic=True),
    Setting("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, "", unit="ms", minimum=1, dynamic=True),
    Setting("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, "", minimum=0.0, maximum=1.0, dynamic=True),
    Setting("log.cleaner.min.compaction.lag.ms", LONG, 0, "", unit="ms", minimum=0, dynamic=True),
    Setting("log.cleaner.threads", INT, 1, "", minimum=0, dynamic=True),
)
