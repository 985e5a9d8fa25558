#!/usr/bin/env python3
"""What a record costs in a topic with filters, and that one without them costs what it did.

  filters.py [--rounds N]

Batches are staged and written to a log in a temporary folder, the cases in turn, and the best of all rounds is taken:
what is left is the work itself. No socket, no client. `keep` returns the record, `change` another one with one byte
more, `drop` every second one; `json` parses the value and keeps it. A batch has a hundred records of a hundred bytes,
or one.
"""

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import topic_config
from leafcuttr.log.append.chain.chain import Chain, Step, Tally
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.log import Log
from leafcuttr.log.resources import LogResources
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import Failures, Part
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk.filters import DROP
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.types import TopicPartition
from support.logs import stage_here, write_now

VALUE = (b'{"device":"kitchen","celsius":21.4,"note":"' + b"x" * 100)[:98] + b'"}'
BATCHES = 60


class Alternate:
    """Drops every second record."""

    def __init__(self) -> None:
        self.odd = False

    def __call__(self, record: Record) -> Any:
        self.odd = not self.odd
        return DROP if self.odd else record


def parsed(record: Record) -> Record:
    json.loads(record.value or b"")
    return record


FILTERS: dict[str, Callable[[], list[Callable[[Record], Any]]]] = {
    "none": list,
    "keep": lambda: [lambda record: record],
    "keep twice": lambda: [lambda record: record] * 2,
    "change": lambda: [lambda record: record._replace(value=(record.value or b"") + b"!")],
    "drop": lambda: [Alternate()],
    "json": lambda: [parsed],
}


def chain_of(calls: list[Callable[[Record], Any]]) -> Chain | None:
    part = Part("bench", "filter")
    steps = [Step(f"f{number}", call, Tally(), part) for number, call in enumerate(calls)]
    if not steps:
        return None
    complain = Complaints(logging.getLogger("bench"))
    return Chain("t", filters=steps, post=lambda _: None, complain=complain, failures=Failures())


def once(folder: Path, calls: list[Callable[[Record], Any]], count: int, codec: Codec) -> float:
    """Microseconds a record."""
    clock = SystemClock()
    now = clock.now_ms()
    partition = TopicPartition("t", 0)
    resources = LogResources(Runtime.new(clock), FilePool(), WritePressure())
    log = Log.create(partition, folder, topic_config(Settings(), {}), resources=resources)
    log.use_chain(chain_of(calls))
    batch = encode_batch([Stored(n, now, b"key-%d" % n, VALUE) for n in range(count)], codec=codec)
    views = [memoryview(bytearray(batch)) for _ in range(BATCHES)]
    began = time.thread_time()
    for view in views:
        stage_here(log, view, now)
        write_now(log)
    seconds = time.thread_time() - began
    log.close()
    return seconds / (BATCHES * count) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    measure(parser.parse_args().rounds)


def measure(rounds: int) -> None:
    """Print the table."""
    shapes = ((100, Codec.NONE), (100, Codec.ZSTD), (1, Codec.NONE))
    best: dict[tuple[str, int, Codec], float] = {}
    with tempfile.TemporaryDirectory() as root:
        for number in range(rounds):
            for name, calls in FILTERS.items():
                for count, codec in shapes:
                    folder = Path(root) / f"{number}-{name}-{count}-{codec}"
                    folder.mkdir()
                    key = name, count, codec
                    best[key] = min(best.get(key, 1e9), once(folder, calls(), count, codec))
    print("| filter | 100 a batch | 100 a batch, zstd | 1 a batch |")
    print("|---|---|---|---|")
    for name in FILTERS:
        cells = (f"{best[name, count, codec]:.2f} µs" for count, codec in shapes)
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
