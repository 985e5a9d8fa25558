"""Latencies, counted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.perf.latency import Latencies


@given(st.lists(st.floats(0, 5000), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_percentiles_are_those_of_the_sorted_list(latencies: list[float], share: float) -> None:
    counted = Latencies()
    for ms in latencies:
        counted.add(ms)
    expected = sorted(latencies)[math.ceil(share * len(latencies)) - 1]
    (found,) = counted.percentiles(share)
    assert expected - 1e-9 <= found + 1e-9
    assert found <= expected + 0.1 + 1e-9
    assert counted.longest == max(latencies)
    assert counted.average == pytest.approx(sum(latencies) / len(latencies))
    assert Latencies().percentiles(share) == [0.0]
