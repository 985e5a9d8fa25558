"""Ten thousand partitions: made, written to and deleted while another client notices nothing of it.

How long the neighbour waits is compared with what the whole work takes, not with a clock. In the gate that is its usual
wait: a machine that others use may stop it at any moment.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from support import librdkafka
from support.broker_process import running_broker
from support.logs import batch
from support.wire_client import WireClient


class Neighbour(threading.Thread):
    """Produces to a topic of its own until told to stop, and keeps how long each answer took (s)."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__()
        self._address, self._topic = address, topic
        self._over = threading.Event()
        self.waits: list[float] = []
        self.failures = 0

    def run(self) -> None:
        with WireClient(self._address) as client:
            while not self._over.is_set():
                began = time.perf_counter()
                self.failures += client.produce(self._topic, batch()).error_code != 0
                self.waits.append(time.perf_counter() - began)

    def stop(self) -> None:
        self._over.set()
        self.join()


@pytest.mark.alone
@pytest.mark.parametrize("partitions", [1000, pytest.param(10_000, marks=pytest.mark.long)])
def test_creation_and_deletion_do_not_stall_others(
    tmp_path: Path, partitions: int, request: pytest.FixtureRequest
) -> None:
    with running_broker(tmp_path, {"log.segment.delete.delay.ms": "0"}) as broker:
        librdkafka.create(broker.address, "other")
        neighbour = Neighbour(broker.address, "other")
        neighbour.start()
        try:
            began = time.perf_counter()
            librdkafka.create(broker.address, "wide", partitions)
            with WireClient(broker.address) as client:
                for partition in range(0, partitions, 7):
                    assert client.produce("wide", batch(), partition=partition).base_offset == 0
            librdkafka.delete(broker.address, "wide")
            took = time.perf_counter() - began
        finally:
            neighbour.stop()
        waits = sorted(neighbour.waits)
        p99 = waits[len(waits) * 99 // 100]
        print(
            f"{partitions} partitions made, used and deleted in {took:.1f} s; meanwhile {len(waits)} answers: "
            f"p50 {waits[len(waits) // 2] * 1e3:.2f} ms, p99 {p99 * 1e3:.1f} ms, longest {waits[-1] * 1e3:.0f} ms"
        )
        assert not neighbour.failures
        assert waits[len(waits) // 2] < took / 20
        if request.config.getoption("--long"):
            assert p99 < took / 20
            assert waits[-1] < took / 2
        descriptors = len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))
        assert descriptors < 40_000
