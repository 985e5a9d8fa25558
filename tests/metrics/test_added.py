"""Histograms of plugins: what they count, how many series they may have, and how a scrape shows them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from leafcuttr.metrics import added
from leafcuttr.metrics.added import AddedMetrics
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_BOUNDS, MOST_HISTOGRAMS, OTHER, SECONDS
from support.live_broker import opening
from support.logs import HandClock
from support.scraper import Scraper

NAME = "leafcuttr_x_seconds"


def test_the_same_histogram_for_the_same_name() -> None:
    table = AddedMetrics()
    first = table.of("x").histogram(NAME, "Times.", "of")
    assert first.bounds == SECONDS
    assert table.of("x").histogram(NAME, "Times.", "of") is first
    with pytest.raises(ValueError, match="other bounds"):
        table.of("x").histogram(NAME, "Times.", "of", bounds=(1.0,))
    with pytest.raises(ValueError, match="already, of another kind"):
        table.of("x").gauge(NAME, "Times.", "of")
    with pytest.raises(ValueError, match="begins with leafcuttr_y_"):
        table.of("y").histogram("leafcuttr_x_other", "Times.")
    with pytest.raises(ValueError, match="a metric of the plugin x"):
        table.of("y").histogram(NAME, "Times.", "of")
    table.remove("x")
    assert table.readings() == []
    assert table.of("x").histogram(NAME, "Times.", "of", bounds=(1.0,)) is not first


@pytest.mark.parametrize(
    "bounds", [(), (1.0, 1.0), (2.0, 1.0), (1.0, float("inf")), (float("nan"),), range(MOST_BOUNDS + 1)]
)
def test_bounds_that_cannot_be(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="1 to 50 numbers that rise"):
        AddedMetrics().of("x").histogram(NAME, "Times.", bounds=bounds)


def test_values_that_cannot_be_counted() -> None:
    histogram = AddedMetrics().of("x").histogram(NAME, "Times.", "of", bounds=range(MOST_BOUNDS))
    with pytest.raises(ValueError, match="NaN"):
        histogram.observe(float("nan"), "a")
    with pytest.raises(ValueError, match="has 1 labels, not 2"):
        histogram.observe(1, "a", "b")
    assert list(histogram.samples()) == []


def test_its_series_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    histogram = AddedMetrics().of("x").histogram(NAME, "Times.", "of")
    with caplog.at_level(logging.WARNING):
        for number in range(2 * MOST_HISTOGRAMS):
            histogram.observe(number, f"name{number}")
        histogram.observe(1, "x" * (LONGEST_LABEL + 1))
        histogram.observe(1, "name0")
    found = dict(histogram.samples())
    assert len(found) == MOST_HISTOGRAMS
    assert (found["name0",].count, found["name0",].total) == (2, 1)
    assert found[OTHER,].count == MOST_HISTOGRAMS + 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{NAME} has labels beyond what it may have ({MOST_HISTOGRAMS} series, {LONGEST_LABEL} characters): their "
        f"values are counted under {OTHER}"
    ]


async def test_a_scrape_shows_it(tmp_path: Path) -> None:
    with opening(tmp_path, HandClock()) as opened:
        await scrape(opened({}))


async def scrape(broker: Broker) -> None:
    histogram = broker.plugged.metrics.of("x").histogram(NAME, "Times.", "of", bounds=(0.5, 2))
    for value in (0.1, 1, 1, 7):
        histogram.observe(value, "a")
    broker.plugged.metrics.of("x").histogram("leafcuttr_x_bytes", "Sizes.", bounds=(1,))
    text, _ = await Scraper(broker).text()
    families = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert families[NAME].type == "histogram"
    assert [(each.name.removeprefix(NAME), each.labels, each.value) for each in families[NAME].samples] == [
        ("_bucket", {"of": "a", "le": "0.5"}, 1),
        ("_bucket", {"of": "a", "le": "2"}, 3),
        ("_bucket", {"of": "a", "le": "+Inf"}, 4),
        ("_sum", {"of": "a"}, 9.1),
        ("_count", {"of": "a"}, 4),
    ]
    assert [each.value for each in families["leafcuttr_x_bytes"].samples] == [0, 0, 0, 0]


class Interrupted(float):
    """A number at whose addition another thread goes on, as far as it is let."""

    def __new__(cls, value: float, other: threading.Thread) -> Interrupted:
        made = super().__new__(cls, value)
        made.other = other
        return made

    other: threading.Thread

    def __radd__(self, before: float) -> float:
        self.other.start()
        self.other.join(0.2)  # it waits for its turn; without one it would be over by now
        return before + float(self)


def test_threads_count_together() -> None:
    """Filters count in workers, two and more at once."""
    metrics = AddedMetrics().of("x")
    counter = metrics.counter("leafcuttr_x_things_total", "Things.", "of")
    counter.add(1, "a")
    other = threading.Thread(target=counter.add, args=(1, "a"))
    counter.add(Interrupted(1, other), "a")
    other.join()
    assert list(counter.samples()) == [(("a",), 3.0)]
    histogram = metrics.histogram(NAME, "Times.", "of")
    histogram.observe(1, "a")
    other = threading.Thread(target=histogram.observe, args=(1, "a"))
    histogram.observe(Interrupted(1, other), "a")
    other.join()
    ((_, times),) = histogram.samples()
    assert (times.count, times.total) == (3, 3.0)


@pytest.mark.parametrize("kind", ["NumberSeries", "HistogramSeries"])
def test_threads_make_one_metric(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = AddedMetrics().of("x")
    found: list[object] = []

    def make() -> None:
        if kind == "NumberSeries":
            found.append(metrics.counter("leafcuttr_x_things_total", "Things."))
        else:
            found.append(metrics.histogram(NAME, "Times."))

    made = getattr(added, kind)
    other = threading.Thread(target=make)

    def interrupted(*arguments: object) -> object:
        if not other.ident:
            other.start()
            other.join(0.2)
        return made(*arguments)

    monkeypatch.setattr(added, kind, interrupted)
    make()
    other.join()
    assert len(found) == 2 and found[0] is found[1]
