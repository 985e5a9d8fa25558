"""Counters and histograms of the data path."""

from __future__ import annotations

from leafcuttr.metrics.counts import Counts, Distribution, Times


def test_times_by_powers_of_two() -> None:
    times = Times()
    times.add(0.0)
    times.add(0.000_063)
    times.add(0.000_065, 3)
    times.add(1000.0)
    shown = times.cumulative()
    assert shown[:2] == [(0.000_064, 2), (0.000_128, 5)]
    assert shown[-2][1] == 5
    assert shown[-1] == (float("inf"), 6)
    assert times.count == 6
    assert abs(times.seconds - 1000.000_258) < 1e-9


def test_errors_by_api_and_code() -> None:
    counts = Counts()
    counts.failed(3, 5)
    counts.failed(3, 5)
    assert counts.errors == {(3, 5): 2}


def test_a_distribution_by_its_bounds() -> None:
    found = Distribution((0.5, 1.0, 10.0))
    for value in (-1.0, 0.5, 0.6, 1.0, 10.1, float("inf")):
        found.add(value)
    assert found.cumulative() == [(0.5, 2), (1.0, 4), (10.0, 4), (float("inf"), 6)]
    assert found.count == 6
    found = Distribution((1.0,))
    found.add(0.25)
    found.add(3.0)
    assert found.total == 3.25
