"""How long a test waits for the broker of `leafcuttr_broker`, once the first one has imported everything."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from leafcuttr_sdk.testing import RunningBroker

STARTS = 20
LIMIT_S = 0.15


@pytest.mark.long
def test_a_broker_of_the_fixture_starts_within_150_ms(tmp_path: Path) -> None:
    taken: list[float] = []
    for number in range(STARTS + 1):
        broker = RunningBroker(tmp_path / str(number))
        began = time.perf_counter()
        broker.start()
        taken.append(time.perf_counter() - began)
        broker.stop()
    warm = taken[1:]
    print(
        f"first {taken[0] * 1000:.0f} ms, then median {statistics.median(warm) * 1000:.0f} ms, "
        f"slowest {max(warm) * 1000:.0f} ms of {STARTS}"
    )
    assert statistics.median(warm) <= LIMIT_S
