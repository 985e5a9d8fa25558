"""metric_settings"""

from typing import Final

from leafcuttr.config.setting import INT, LIST, LONG, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("kafka.metrics.polling.interval.secs", INT, 10, "", minimum=1),
    Setting("kafka.metrics.reporters", LIST, (), ""),
    Setting("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), "", dynamic=True),
    Setting("metrics.num.samples", INT, 2, "", minimum=1),
    Setting("metrics.recording.level", STRING, "INFO", ""),
    Setting("metrics.sample.window.ms", LONG, 30_000, "", unit="ms", minimum=1),
    Setting("telemetry.max.bytes", INT, 1_048_576, "", unit="bytes", minimum=1),
)
