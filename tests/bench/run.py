#!/usr/bin/env python3
"""Measure LeafCuttr beside Apache Kafka and write docs/explanation/performance.md.

  run.py [--runs 3] [--only CASE ...] [--add] [--no-kafka] [--write]     cases: see `--list`
  run.py --only --add --write                                            only write the page anew

Both brokers take turns within one run, on fresh directories, with the same client; medians are compared. Needs a C
compiler with librdkafka's header (Debian: librdkafka-dev) and, for the peer, Java and Maven. `--write` replaces the
page; without it the figures are only printed.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import load
import page
from coordinators import remembered
from load import Figures
from peers import Kafka, LeafCuttr, Peer
from rawclient import seconds_to_first_ack


@dataclass(frozen=True)
class Case:
    """One measurement. `fresh` cases start the broker themselves; the others find it running and warm.

    `ours_only`: 10,000 partitions need more descriptors than Kafka is given here.
    """

    name: str
    what: str
    measure: Callable[[Peer, int], Figures]
    runs: int | None = None
    fresh: bool = False
    ours_only: bool = False


CASES = (
    Case("start", "start on an empty directory, then at rest", load.start, fresh=True),
    Case("produce-1000", "produce, acks=all, 1000 bytes a record", load.produce_1000),
    Case("consume-1000", "consume, 1000 bytes a record", load.consume_1000),
    Case("produce-100", "produce, acks=all, 100 bytes a record", load.produce_100),
    Case("one-a-batch", "produce, one record a batch, 100 in flight", load.one_a_batch),
    Case("eight-clients", "produce, 8 clients, one record at a time", load.eight_clients),
    Case("synced-1", "on the disk at the answer, 1 client", lambda p, run: load.synced(p, run, 1)),
    Case("synced-8", "on the disk at the answer, 8 clients", lambda p, run: load.synced(p, run, 8)),
    Case("synced-32", "on the disk at the answer, 32 clients", lambda p, run: load.synced(p, run, 32)),
    Case("transactions", "transactions of 100 records, librdkafka", load.transactions),
    Case("java-transactions", "transactions of 100 records, Kafka's client", load.java_transactions),
    Case("latency", "produce-to-acknowledge at 1000 records/s", load.latency),
    Case("loaded", "resident memory after this load", lambda peer, run: {"loaded_mb": peer.rss_mb()}, runs=1),
    Case("crowd", "1,000 producing connections, 200 consumers in 20 groups", load.crowd, runs=1),
    Case("after-kill", "start after SIGKILL with a segment of 0.97 GB", load.after_kill, runs=1),
    Case("remembered", "start with 100,000 offsets and 10,000 transactional ids", remembered, runs=1),
    Case(
        "partitions-1000",
        "clean stop and start, 1,000 partitions",
        lambda p, run: load.many_partitions(p, 1000),
        runs=1,
    ),
    Case(
        "partitions-10000",
        "clean stop and start, 10,000 partitions",
        lambda p, run: load.many_partitions(p, 10000),
        runs=1,
        ours_only=True,
    ),
)


Results = dict[str, dict[str, list[Figures]]]
"""Case -> peer -> figures of each run."""

# Kept after every measurement, so that a run that breaks off can be gone on with (`--add`).
KEPT = Path(__file__).parent / "results" / "last.json"


def measure(peers: list[Peer], cases: list[Case], runs: int, results: Results) -> None:
    """Add the figures of `cases` to `results`. The peers take turns within a run."""
    KEPT.parent.mkdir(exist_ok=True)
    for case in cases:
        results.pop(case.name, None)
        for run in range(case.runs or runs):
            for peer in peers[:1] if case.ours_only else peers:
                if not peer.pid and not case.fresh:
                    ready(peer)
                began = time.monotonic()
                figures = case.measure(peer, run)
                results.setdefault(case.name, {}).setdefault(peer.name, []).append(figures)
                KEPT.write_text(json.dumps(results))
                shown = json.dumps(
                    {name: round(value, 4) for name, value in figures.items() if not isinstance(value, str)}
                )
                print(
                    f"{case.name} {peer.name} #{run + 1} ({time.monotonic() - began:.0f} s): {shown}",
                    flush=True,
                )
        for peer in peers:
            if case.name in ("loaded", "crowd", "after-kill", "remembered") or case.name.startswith(
                "partitions"
            ):
                peer.stop()
                peer.wipe()


def ready(peer: Peer) -> None:
    """Start a peer on an empty directory and let it serve a little, so that a JVM has compiled its paths."""
    peer.wipe()
    peer.start()
    seconds_to_first_ack(peer.port, "first", time.monotonic())
    for _ in range(2):
        load.kperf("produce", peer.address, "warm", "300000", "1000")
        load.kperf("consume", peer.address, "warm", "300000")


def medians(runs: list[Figures]) -> Figures:
    return {
        name: statistics.median(run[name] for run in runs)
        for name, value in runs[0].items()
        if not isinstance(value, str)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", metavar="CASE", default=None)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-kafka", action="store_true")
    parser.add_argument(
        "--warm-gb", type=int, default=0, help="touch this much memory first (a fresh machine wants 15)"
    )
    parser.add_argument(
        "--add", action="store_true", help="keep the figures of the last run for the other cases"
    )
    parser.add_argument("--write", action="store_true", help="write docs/explanation/performance.md")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{case.name:18} {case.what}" for case in CASES))
        return
    unknown = set(options.only or ()) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; --list shows them")
    cases = [case for case in CASES if options.only is None or case.name in options.only]
    if options.warm_gb:
        load.warm_memory(options.warm_gb * 1024)
    results: Results = json.loads(KEPT.read_text()) if options.add and KEPT.exists() else {}
    with tempfile.TemporaryDirectory(prefix="leafcuttr-bench-") as folder:
        peers: list[Peer] = [LeafCuttr("leafcuttr", Path(folder) / "leafcuttr")]
        if not options.no_kafka:
            peers.append(Kafka("kafka", Path(folder) / "kafka"))
        try:
            measure(peers, cases, options.runs, results)
        finally:
            for peer in peers:
                if peer.pid:
                    peer.stop()
    summary = {
        case: {peer: medians(runs) for peer, runs in by_peer.items()} for case, by_peer in results.items()
    }
    shown = {case.name: case.what for case in CASES if case.name in summary}
    text = page.render(shown, summary, options.runs, platform.platform())
    print(text)
    if options.write:
        page.PATH.write_text(text)


if __name__ == "__main__":
    main()
