"""Metrics: name, kind, labels and help; counters, gauges and histograms of plugins, and readings at each scrape."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from leafcuttr_sdk._described import described

OTHER: Final = "(other)"
"""The label under which is summed what has no series of its own."""
MOST_SERIES: Final = 1000
"""Series that a `Counter` or `Gauge` may have."""
MOST_HISTOGRAMS: Final = 100
"""Values of its labels that a `Histogram` may have: for each there is a series for every bound, and three more."""
MOST_BOUNDS: Final = 50
"""Bounds that a `Histogram` may have."""
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The bounds of a histogram of times, as Prometheus's own clients have them."""
MOST_SAMPLES: Final = 10_000
"""Samples of a `MetricReading` that a scrape shows."""
LONGEST_LABEL: Final = 249
"""Characters of a label's value: what a topic's name can have."""

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")


class Kind(Enum):
    """How Prometheus treats it. The value is the name of the type in its exposition formats."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `name` is that of its series, with `_total` for a counter and `_info` for facts that are labels; a
    histogram has the series `_bucket`, `_sum` and `_count` of it. Raises ValueError for a name that says otherwise."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        endings = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
        due = endings.get(self.kind, "")
        wrong = [ending for kind, ending in endings.items() if kind is not self.kind]
        if not _NAME.match(self.name) or not self.name.endswith(due) or self.name.endswith(tuple(wrong)):
            raise ValueError(f"{self.name} is no name for a {self.kind.value}")
        if not self.help.endswith("."):
            raise ValueError(f"the help of {self.name} is no sentence")

    @property
    def family(self) -> str:
        """The name without what its kind adds."""
        return self.name.removesuffix("_total").removesuffix("_info")


def gauge(name: str, help: str, *labels: str) -> Metric:
    """A metric that goes up and down, for a `MetricReading`. `help` is a sentence, `labels` are names of labels."""
    return Metric(name, Kind.GAUGE, help, labels)


def counter(name: str, help: str, *labels: str) -> Metric:
    """A metric that only grows, for a `MetricReading`. Its name ends with `_total`."""
    return Metric(name, Kind.COUNTER, help, labels)


def histogram(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, help, labels)


def info(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.INFO, help, labels)


Sample = tuple[tuple[str, ...], float]
"""The values of a metric's labels, in their order, and its value."""


@described
class MetricReading(NamedTuple):
    """A metric whose samples are found when metrics are read: what `leafcuttr_register_metrics` returns. Each
    step of the iterator is short; it runs on the loop's thread. A scrape shows the first MOST_SAMPLES, and none with a
    label longer than LONGEST_LABEL."""

    metric: Metric
    read: Callable[[], Iterable[Sample]]


class Counter(Protocol):
    """One that only grows. It has at most MOST_SERIES series, and labels of at most LONGEST_LABEL characters: what
    comes beyond is counted under OTHER, so that labels which clients choose cannot use memory without bound."""

    def add(self, count: float = 1, *labels: str) -> None:
        """`labels` are the values, in the order of the metric's."""
        ...


class Gauge(Protocol):
    """One that goes up and down. It has the bounds of a Counter; a value beyond them is not kept, because the last one
    of many says nothing."""

    def set(self, value: float, *labels: str) -> None:
        """`labels` are the values, in the order of the metric's."""
        ...


class Histogram(Protocol):
    """How often values were at most as large as each of its bounds. It has the bounds of a Counter, with
    MOST_HISTOGRAMS for MOST_SERIES."""

    def observe(self, value: float, *labels: str) -> None:
        """Count one more value. `labels` are the values, in the order of the metric's. Raises ValueError for NaN."""
        ...


class Metrics(Protocol):
    """Makes counters, gauges and histograms. The same name gives the same object again: a restarted service goes on
    where it was. A name begins with that of the plugin, `leafcuttr_<plugin>_`: ValueError if not."""

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        """`help` is a sentence, `labels` are names of labels. The name ends with `_total`."""
        ...

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        """`help` is a sentence, `labels` are names of labels."""
        ...

    def histogram(self, name: str, help: str, *labels: str, bounds: Sequence[float] = SECONDS) -> Histogram:
        """`help` is a sentence, `labels` are names of labels, `bounds` rise; the last bucket, without a bound, is there
        by itself. ValueError for bounds that do not rise, more than MOST_BOUNDS, and other ones than before."""
        ...
