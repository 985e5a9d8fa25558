"""For tests with crowds of connections: descriptors for them, how many a broker has, and neighbours, who are served
meanwhile."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any

from support.broker_process import BrokerProcess
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient


@contextmanager
def many_descriptors(wanted: int) -> Iterator[int]:
    """As many descriptors for this process as it may have; how many of those `wanted` can be used."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield min(wanted, hard // 2 - 200)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def sockets(broker: BrokerProcess) -> int:
    """How many the broker has open."""
    found = 0
    for path in Path(f"/proc/{broker.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(path.readlink()).startswith("socket:")
    return found


class Neighbour:
    """Produces and reads one record after the other, and remembers how long each pair took."""

    def __init__(self, address: str) -> None:
        self.took: list[float] = []
        self.address = address
        self._over = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Neighbour:
        self._thread.start()
        until(lambda: self.took or self._error, f"the first turn of the {type(self).__name__}")
        return self

    def __exit__(self, *_: object) -> None:
        done = len(self.took)
        until(lambda: len(self.took) > done or self._error, f"the {type(self).__name__} to be served still")
        self._over.set()
        self._thread.join()
        assert self._error is None, self._error

    def p99_ms(self) -> float:
        return sorted(self.took)[int(0.99 * len(self.took))] * 1000

    def turns(self) -> Iterator[None]:
        """Each step is one that is timed. Without end."""
        with WireClient(self.address) as client:
            for number in count():
                answer = client.produce("neighbour", batch())
                assert (answer.error_code, answer.base_offset) == (0, number), answer
                fetched = client.fetch("neighbour", number)
                assert fetched.records, fetched
                yield

    def _run(self) -> None:
        turns: Any = self.turns()
        try:
            with closing(turns):
                while not self._over.is_set():
                    began = perf_counter()
                    next(turns)
                    self.took.append(perf_counter() - began)
                    self._over.wait(0.002)
        except BaseException as error:
            self._error = error
