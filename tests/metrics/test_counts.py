"""Counters and histograms of the data path."""

from __future__ import annotations

from leafcuttr.metrics.counts import Counts, Times


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
