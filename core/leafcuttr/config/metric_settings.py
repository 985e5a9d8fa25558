"""Broker settings of Kafka's own metrics."""

from typing import Final

from leafcuttr.config.setting import INT, LIST, LONG, STRING, Effect, Setting

NONE: Final = Effect.NONE

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        "How often Kafka's old metrics reporters are called.",
        unit="seconds",
        minimum=1,
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "kafka.metrics.reporters",
        LIST,
        (),
        "Classes that report Kafka's old metrics.",
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Classes that report metrics.",
        dynamic=True,
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "metrics.num.samples",
        INT,
        2,
        "Samples kept for a metric's average.",
        unit="samples",
        minimum=1,
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "metrics.recording.level",
        STRING,
        "INFO",
        "How much is measured: INFO, DEBUG or TRACE.",
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        "Length of a sample for a metric's average.",
        unit="ms",
        minimum=1,
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
    Setting(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        "The largest set of metrics that a client may push.",
        unit="bytes",
        minimum=1,
        effect=NONE,
        reason="metrics come in a later version, and in another form than JMX",
    ),
)
