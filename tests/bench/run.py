#!/usr/bin/env python3
"""Measure LeafCuttr beside Apache Kafka and write docs/explanation/performance.md.

  run.py [--row NAME ...] [--write]    measure all rows, or these; with --write into the data file and the page
  run.py --list                        the rows, and what the last measurement of each took
  run.py --stale                       the rows whose sources have changed since they were measured
  run.py --page --write                only write the page anew from the data file
  run.py --against TREE [--row ...]    this tree beside another one, in pairs; with --into DIR also to DIR/against.txt

The sides of a row take turns, on directories of their own, with the same client; medians are compared. Needs a C
compiler with librdkafka's header (Debian: librdkafka-dev) and, for Kafka, Java and Maven. `--write` keeps each row as
soon as it is measured, so a run that breaks off is gone on with by `--row`. NAME may be a pattern: `synced-*`.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import against
import data
import load
import page
from load import Figures
from peers import Kafka, LeafCuttr, Peer
from rawclient import seconds_to_first_ack
from rows import ROWS, Row, Side


class Sides:
    """The brokers that run, by side. A row finds its own started and no others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._peers: dict[Side, Peer] = {}

    def of(self, row: Row) -> list[Peer]:
        """The peers of a row; those that it has no use for are stopped."""
        for side, peer in self._peers.items():
            if side not in row.sides:
                peer.stop()
        found = [self._peers.setdefault(side, self._make(side)) for side in row.sides]
        if row.alone:
            self.end(found)
        return found

    def end(self, peers: list[Peer] | None = None) -> None:
        for peer in self._peers.values() if peers is None else peers:
            peer.stop()
            peer.wipe()

    def _make(self, side: Side) -> Peer:
        directory = self._folder / str(len(self._peers))
        if side.kafka:
            return Kafka(side.name, directory)
        return LeafCuttr(side.name, directory, settings=side.settings, interpreter=side.interpreter)


def measure(row: Row, sides: Sides, runs: int) -> data.Entry:
    """All runs of a row."""
    began = time.monotonic()
    samples = sample(row, sides, runs)
    return data.entry(samples, pairs=row.pairs, seconds=time.monotonic() - began)


def sample(row: Row, sides: Sides, runs: int, *, delete: bool = False) -> dict[str, list[Figures]]:
    """The figures of each run by side. Every other run goes through the sides backwards, so that none is always the
    first. `delete`: what a run has written is deleted after it."""
    peers = sides.of(row)
    samples: dict[str, list[Figures]] = {peer.name: [] for peer in peers}
    for run in range(runs):
        for peer in reversed(peers) if run % 2 else peers:
            if not peer.pid and not row.fresh:
                ready(peer)
            at = time.monotonic()
            figures = row.measure(peer, run)
            samples[peer.name].append(figures)
            if delete and not row.fresh:
                load.delete_topics(peer)
            shown = {name: round(value, 4) for name, value in figures.items() if not isinstance(value, str)}
            print(f"{row.name} {peer.name} #{run + 1} ({time.monotonic() - at:.0f} s): {shown}", flush=True)
    if row.alone or row.fresh:
        sides.end(peers)  # a start leaves a broker that is not warm
    return samples


def ready(peer: Peer) -> None:
    """Start a peer on an empty directory and let it serve a little, so that a JVM has compiled its paths."""
    peer.wipe()
    peer.start()
    seconds_to_first_ack(peer.port, "first", time.monotonic())
    count = str(load.scaled(300_000))
    for _ in range(2):
        load.kperf("produce", peer.address, "warm", count, "1000")
        load.kperf("consume", peer.address, "warm", count)


def show(entries: dict[str, data.Entry]) -> None:
    total = 0.0
    for row in ROWS:
        took = entries[row.name].seconds if row.name in entries else None
        total += took or 0.0
        print(f"{row.name:20} {'' if took is None else f'{took:.0f} s':>6}  {row.what}")
    print(f"{'all that have a time':20} {total:>4.0f} s")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", nargs="+", metavar="NAME", action="extend", help="these rows; else all")
    parser.add_argument("--runs", type=int, help="instead of each row's own number")
    parser.add_argument("--list", action="store_true", help="show the rows")
    parser.add_argument("--stale", action="store_true", help="show the rows to be measured anew, and why")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--write", action="store_true", help="write the data file and the page")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="TREE",
        help="a checkout with the project in its .venv: measure both, in five pairs (or --runs), and end with 1 "
        f"if a figure of this tree is below {against.LEAST} of the other's, or a row could not be measured",
    )
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="read and write both there, to try something"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="with --into: this part of each load")
    parser.add_argument(
        "--warm-gb", type=int, default=0, help="touch this much memory first (a fresh machine wants 15)"
    )
    found = parser.parse_args()
    if found.scale != 1.0 and not found.into:
        parser.error("--scale is for trying the machinery, with --into: such figures are none for the page")
    if found.against and (found.write or found.page):
        parser.error("--against is between two trees: its figures are none for the page")
    if found.against and not against.interpreter_of(found.against).exists():
        parser.error(f"there is no {against.interpreter_of(found.against)}")
    unknown = [name for name in found.row or () if not fnmatch.filter([row.name for row in ROWS], name)]
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; --list shows them")
    if found.against and not list(against.rows(chosen(found.row), found.against)):
        parser.error("none of these rows has a side of ours with its defaults")
    return found


def chosen(names: list[str] | None) -> list[Row]:
    """The rows of these names or patterns, in their own order; all if there are no names."""
    return [row for row in ROWS if not names or any(fnmatch.fnmatchcase(row.name, name) for name in names)]


def main() -> int:
    given = options()
    folder: Path | None = given.into
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    file = folder / data.PATH.name if folder else data.PATH
    written = folder / page.PATH.name if folder else page.PATH
    entries = data.load(file)
    if given.list:
        show(entries)
        return 0
    if given.stale:
        found = list(data.stale({row.name: row.paths for row in ROWS}, entries))
        print("\n".join(f"{name:20} {why}" for name, why in found) or "nothing has changed since")
        return 1 if found else 0
    load.Scale.by = given.scale
    if given.warm_gb:
        load.warm_memory(given.warm_gb * 1024)
    rows = chosen(given.row)
    if given.against:
        told = folder / "against.txt" if folder else None
        return compare(list(against.rows(rows, given.against)), given.runs or against.PAIRS, told)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leafcuttr-bench-") as scratch:
        sides = Sides(Path(scratch))
        try:
            for row in () if given.page else rows:
                entries[row.name] = measure(row, sides, given.runs or row.runs)
                if given.write:
                    write(entries, file, written)
        finally:
            sides.end()
    print(f"measured in {time.monotonic() - began:.0f} s\n", flush=True)
    print(page.render(ROWS, entries))
    if given.write:
        write(entries, file, written)
    return 0


def compare(rows: list[Row], pairs: int, told: Path | None) -> int:
    """Rows of this tree beside those of another, each told of when it has been measured; then all of them. A row that
    fails ends none of the others. The status to end with."""
    found: list[against.Line | against.Failure] = []
    if told:
        told.write_text(f"{against.HEAD}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="leafcuttr-bench-") as scratch:
        sides = Sides(Path(scratch))
        try:
            for row in rows:
                new = compared(row, sides, pairs)
                print("\n".join(map(str, new)), flush=True)
                if told:
                    with told.open("a", encoding="utf-8") as file:
                        file.writelines(f"{line}\n" for line in new)
                found += new
        finally:
            sides.end()
            print("\n".join(["", against.HEAD, *map(str, found)]), flush=True)
    return 1 if any(isinstance(each, against.Failure) or each.less for each in found) else 0


def compared(row: Row, sides: Sides, pairs: int) -> Sequence[against.Line | against.Failure]:
    try:
        samples = against.joined(
            [sample(one, sides, runs, delete=True) for one, runs in against.turns(row, pairs)]
        )
        return [*against.lines(row, samples), *against.failures(row, samples)]
    except Exception as error:
        traceback.print_exc()
        sides.end()  # the next row finds brokers that nothing has happened to
        return [against.Failure(row.name, repr(error)[:200])]


def write(entries: dict[str, data.Entry], file: Path, written: Path) -> None:
    """The data file in the order of the page, without rows that are no longer measured; and the page."""
    kept = {row.name: entries[row.name] for row in ROWS if row.name in entries}
    data.save(kept, file)
    written.write_text(page.render(ROWS, kept), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
