"""The reference page of metrics, written from the declarations: `python -m leafcuttr.metrics.reference` prints it.

A test compares the committed page with what this writes. Nothing else imports it.
"""

import sys
from collections.abc import Iterator
from typing import Final

from leafcuttr.metrics.catalog import THEMES
from leafcuttr.metrics.counts import LONGEST, SHORTEST
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_SAMPLES, MOST_SERIES, OTHER, Kind, Metric

_HEAD: Final = f"""\
# Metrics

<!-- Written by `python -m leafcuttr.metrics.reference`; a test fails when this page and the code differ. -->

What `http://127.0.0.1:9404/metrics` shows (`lc.metrics.host`, `lc.metrics.port`), in Prometheus' text format or in
OpenMetrics, as the request accepts. [Monitoring](../how-to/monitoring.md) says how to use it.

Names that begin with `kafka_` are those that the exporters for Apache Kafka have made common (the JMX exporter, the
exporter of consumer group lag) for the same thing here; what only LeafCuttr has begins with `leafcuttr_`. Durations are
in seconds and sizes in bytes. Counters begin at 0 when the broker starts. There are no metrics of throttling
or replication, because there is nothing of it to measure.

The number of series is bounded:

- Topics and partitions have series of their own until there are `lc.metrics.max.partitions` partitions of them, in the
  order in which they were made; a topic keeps its place as long as it exists. The others are summed under the label
  `{OTHER}`, which no topic can be called, and counted in `leafcuttr_metrics_unnamed_partitions`.
- Groups have series of their own until there are `lc.metrics.max.group.partitions` partitions for which they have
  committed offsets. The others are summed under `{OTHER}` and counted in `leafcuttr_metrics_unnamed_groups`, and so are
  groups whose id is longer than {LONGEST_LABEL} characters.
- All other labels have values of a few, whatever clients send. Nothing else that a client can choose becomes a label.

| label | its values |
|---|---|
{{labels}}

Metrics that plugins add are listed by the plugins. One that a plugin counts (`Broker.metrics`) has at most
{MOST_SERIES:,} series: counts with other labels are summed under `{OTHER}`, other values of a gauge are left out.
One that it looks up (`leafcuttr_register_metrics`) shows at most {MOST_SAMPLES:,} samples. A label has at most
{LONGEST_LABEL} characters.

A histogram has the bounds {2**SHORTEST} µs, and always twice as much, up to {2**LONGEST / 1e6:.1f} s.
"""


LABELS: Final = {
    "topic": "The name of a topic; bounded by `lc.metrics.max.partitions` and `lc.metrics.max.group.partitions`.",
    "partition": "The number of a partition; bounded as `topic` is.",
    "consumergroup": "The id of a group; bounded by `lc.metrics.max.group.partitions`.",
    "request": "One of the [API keys](api-keys.md).",
    "error": "The name of one of Kafka's error codes.",
    "listener": "A name from `listeners`; of a plugin's listener the prefix of its settings.",
    "subject": "The distinguished name of a certificate, of the few that a listener shows.",
    "state": "A state that the help of the metric names, or one of Kafka's states of groups and of transactions.",
    "outcome": "commit or abort.",
    "plugin": "The name of a plugin that is installed.",
    "version": "The version of such a plugin, or of the broker.",
    "service": "The name of a service of a plugin.",
    "child": "The name of a program that a plugin runs beside the broker.",
    "filter": "The name of a record filter that a plugin brings.",
    "validator": "The name of a produce validator that a plugin brings.",
    "verdict": "What the help of the metric names.",
    "end": "What the help of the metric names.",
    "python": "The version of Python.",
    "check": "The name of a health check.",
    "generation": "0, 1 or 2.",
    "quota": "The name of one of Kafka's quotas, as `kafka-configs.sh` has them.",
}
"""What each label can be. A test holds it to what hostile clients bring about."""


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD.format(labels="\n".join(f"| `{label}` | {values} |" for label, values in LABELS.items()))
    for title, metrics in THEMES:
        yield f"## {title}\n"
        yield "| metric | type | labels | what it says |"
        yield "|---|---|---|---|"
        yield from map(_row, metrics)
        yield ""


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    kind = "facts in labels" if metric.kind is Kind.INFO else metric.kind.value
    return f"| `{metric.name}` | {kind} | {labels} | {metric.help} |"


if __name__ == "__main__":
    sys.stdout.write(page())
