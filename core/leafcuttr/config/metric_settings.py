"""Broker settings of Kafka's own metrics."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import INT, LIST, LONG, STRING, ConfigKey, Effect

unused: Final = partial(
    ConfigKey, effect=Effect.NONE, reason="metrics are read from lc.metrics.port, not by JMX"
)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        "How often Kafka's old metrics reporters are called.",
        unit="seconds",
        minimum=1,
    ),
    unused("kafka.metrics.reporters", LIST, (), "Classes that report Kafka's old metrics."),
    unused(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Classes that report metrics.",
        dynamic=True,
    ),
    unused("metrics.num.samples", INT, 2, "Samples kept for a metric's average.", unit="samples", minimum=1),
    unused("metrics.recording.level", STRING, "INFO", "How much is measured: INFO, DEBUG or TRACE."),
    unused(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        "Length of a sample for a metric's average.",
        unit="ms",
        minimum=1,
    ),
    unused(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        "The largest set of metrics that a client may push.",
        unit="bytes",
        minimum=1,
    ),
)
