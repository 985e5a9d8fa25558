"""What a metric is: its name, kind, labels and help. How its value is found is not here."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

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
    return Metric(name, Kind.GAUGE, help, labels)


def counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, help, labels)


def histogram(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, help, labels)


def info(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.INFO, help, labels)
