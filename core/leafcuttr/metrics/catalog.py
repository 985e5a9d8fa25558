"""All metrics, by theme: the order of the reference page and of an exposition."""

from typing import Final

from leafcuttr.metrics import broker_metrics, group_metrics, plugin_metrics, request_metrics, topic_metrics
from leafcuttr_sdk.metrics import Metric

THEMES: Final[tuple[tuple[str, tuple[Metric, ...]], ...]] = (
    ("Topics and partitions", topic_metrics.METRICS),
    ("Requests and connections", request_metrics.METRICS),
    ("Groups and transactions", group_metrics.METRICS),
    ("Plugins", plugin_metrics.METRICS),
    ("The broker", broker_metrics.METRICS),
    ("The process", broker_metrics.PROCESS),
)

METRICS: Final[dict[str, Metric]] = {metric.name: metric for _, table in THEMES for metric in table}
