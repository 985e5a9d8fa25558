"""The page of figures: docs/explanation/performance.md is made of performance.json by this and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from data import ROOT, Entry
from rows import BESIDE_KAFKA, OURS, Row

PATH = ROOT / "docs" / "explanation" / "performance.md"

# figure -> (its name for people, decimals)
FIGURES = {
    "records_per_s": ("records/s", 0),
    "transactions_per_s": ("transactions/s", 0),
    "mb_per_s": ("MB/s", 0),
    "cpu_s_per_gb": ("broker CPU s/GB", 2),
    "cpu_us_per_record": ("broker CPU µs/record", 3),
    "p50_ms": ("p50 ms", 2),
    "p99_ms": ("p99 ms", 2),
    "p999_ms": ("p99.9 ms", 2),
    "first_ack_s": ("first acknowledgement s", 2),
    "known_s": ("all groups and ids known s", 2),
    "idle_mb": ("resident MB, idle", 0),
    "idle_cpu_percent": ("idle CPU %", 2),
    "loaded_mb": ("resident MB", 0),
    "stop_s": ("clean stop s", 2),
    "errors": ("errors", 0),
    "acked": ("acknowledged", 0),
}


def render(rows: Sequence[Row], entries: Mapping[str, Entry]) -> str:
    """The whole page in Markdown."""
    kafkas = [row for row in rows if row.sides in (BESIDE_KAFKA, (OURS,))]
    prices = [row for row in rows if row not in kafkas]
    lines = [
        "# Performance",
        "",
        "Written by `python tests/bench/run.py --write` from `performance.json` beside it; do not edit. Each figure "
        "is a median over the runs of its row, in which the brokers took turns with the same client on the same "
        "machine. The ratio is LeafCuttr's figure by Kafka's; on a shared machine it says more than the figures "
        "themselves. Each row says when it was measured, and at which commit.",
        "",
        *_machines(rows, entries),
        "- Apache Kafka 4.3.1, heap of 1 GiB",
        "",
        "| what | figure | LeafCuttr | Kafka | ratio | runs | measured |",
        "|---|---|---:|---:|---:|---:|---|",
        *(line for row in kafkas for line in _lines(row, entries.get(row.name))),
    ]
    if prices:
        lines += [
            "",
            "## What a setting costs",
            "",
            "LeafCuttr beside LeafCuttr with another value of one setting, in pairs of runs; the ratio is the median "
            "of the pairs' ratios.",
            "",
            "| what | figure | with | without | ratio | pairs | measured |",
            "|---|---|---:|---:|---:|---:|---|",
            *(line for row in prices for line in _lines(row, entries.get(row.name))),
        ]
    return "\n".join(lines) + "\n"


def _machines(rows: Sequence[Row], entries: Mapping[str, Entry]) -> Iterator[str]:
    """Where the rows were measured; which ones, if that was not one machine for all."""
    by_machine: dict[str, list[str]] = {}
    for row in rows:
        if row.name in entries:
            by_machine.setdefault(entries[row.name].machine, []).append(row.what)
    for machine, names in by_machine.items():
        yield f"- {machine}" + (f": {'; '.join(names)}" if len(by_machine) > 1 else "")


def _lines(row: Row, entry: Entry | None) -> Iterator[str]:
    what = row.what
    if len(row.sides) > 1 and row.sides != BESIDE_KAFKA:
        what += f": `{row.sides[0].name}`, not `{row.sides[1].name.partition('=')[2]}`"
    if entry is None:
        yield f"| {what} | not measured yet | - | - | - | - | - |"
        return
    measured = f"{entry.date} at {entry.commit[:9]}{' and changes' if entry.changed else ''}"
    for figure, (name, decimals) in FIGURES.items():
        value = entry.figures.get(figure)
        if value is None:
            continue
        sides = [f"{value.medians[s.name]:,.{decimals}f}" for s in row.sides if s.name in value.medians]
        ratio = "-" if value.ratio is None else f"{value.ratio:.2f}"
        mine, other, *_ = [*sides, "-"]
        yield f"| {what} | {name} | {mine} | {other} | {ratio} | {entry.runs} | {measured} |"
