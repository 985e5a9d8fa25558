"""The output of both commands of `perf`: lines for people or one JSON object, with librdkafka's figures if
they are wanted. What is measured, and in which columns, is decided in each.
"""

import json
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Measured(Protocol):
    """A run that is over."""

    def say(self) -> None:
        """Print it for people."""
        ...

    def figures(self) -> dict[str, Any]:
        """The same for JSON."""
        ...


def figure_options(function: F) -> F:
    """`--reporting-interval`, `--print-metrics` and `--json`."""
    options = [
        click.option(
            "--reporting-interval",
            type=click.IntRange(1),
            default=5000,
            show_default=True,
            metavar="MS",
            help="Between lines.",
        ),
        click.option(
            "--print-metrics", "with_metrics", is_flag=True, help="Print the client's own figures at the end."
        ),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="Print the figures as one JSON object at the end, nothing before.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


class ClientFigures:
    """The last statistics of a librdkafka client that is made with `settings`."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._latest: dict[str, Any] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """To be given to the client; empty if its figures are not wanted."""
        if not self._wanted:
            return {}
        return {
            "statistics.interval.ms": 500,
            "stats_cb": lambda text: self._latest.update(json.loads(text)),
        }

    def print_with(self, run: Measured, as_json: bool) -> None:
        """Print what was measured, and then the client's figures."""
        metrics = _flat(self._latest) if self._wanted else {}
        if as_json:
            click.echo(json.dumps(run.figures() | ({"metrics": metrics} if self._wanted else {})))
            return
        run.say()
        width = max(map(len, metrics), default=0)
        for name, value in metrics.items():
            click.echo(f"{name.ljust(width)} : {value}")


def _flat(statistics: dict[str, Any]) -> dict[str, float]:
    """The counters of librdkafka's statistics, and the times of each broker."""
    found: dict[str, float] = {
        name: value
        for name, value in statistics.items()
        if isinstance(value, int | float) and name not in ("ts", "time")
    }
    for broker in statistics.get("brokers", {}).values():
        if broker.get("nodeid", -1) < 0:
            continue
        for window in ("rtt", "int_latency", "outbuf_latency", "throttle"):
            for measure in ("avg", "p50", "p95", "p99", "max"):
                if measure in broker.get(window, {}):
                    found[f"broker-{broker['nodeid']}.{window}.{measure}"] = broker[window][measure]
    return found
