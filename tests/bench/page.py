"""The page of figures: docs/explanation/performance.md is written by this and by nothing else."""

import datetime
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "explanation" / "performance.md"

# figure -> (its name for people, decimals, whether more is better)
_FIGURES = {
    "records_per_s": ("records/s", 0, True),
    "transactions_per_s": ("transactions/s", 0, True),
    "mb_per_s": ("MB/s", 0, True),
    "cpu_s_per_gb": ("broker CPU s/GB", 2, False),
    "p50_ms": ("p50 ms", 2, False),
    "p99_ms": ("p99 ms", 2, False),
    "p999_ms": ("p99.9 ms", 2, False),
    "first_ack_s": ("first acknowledgement s", 2, False),
    "known_s": ("all groups and ids known s", 2, False),
    "idle_mb": ("resident MB, idle", 0, False),
    "idle_cpu_percent": ("idle CPU %", 2, False),
    "loaded_mb": ("resident MB", 0, False),
    "stop_s": ("clean stop s", 2, False),
    "errors": ("errors", 0, False),
    "acked": ("acknowledged", 0, True),
}


def render(
    cases: dict[str, str], summary: dict[str, dict[str, dict[str, float]]], runs: int, machine: str
) -> str:
    """The whole page in Markdown. `summary` is case -> peer -> median figures."""
    lines = [
        "# Performance",
        "",
        "Written by `python tests/bench/run.py --write`; do not edit. Each line is a median over "
        f"{runs} runs (starts of large directories and the crowd: one) in which the brokers took turns with the same "
        "client on the same machine. The ratio is LeafCuttr's figure by Kafka's; on a shared machine it says more "
        "than the figures themselves.",
        "",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- machine: {os.cpu_count()} cores, {machine}, Python {sys.version.split()[0]}",
        f"- LeafCuttr {version('leafcuttr')} at {_commit()}, Apache Kafka 4.3.1 (1 GiB heap), confluent-kafka "
        f"{version('confluent-kafka')}",
        "",
        "| what | figure | LeafCuttr | Kafka | ratio |",
        "|---|---|---:|---:|---:|",
    ]
    for case, what in cases.items():
        peers = summary.get(case, {})
        ours, theirs = peers.get("leafcuttr", {}), peers.get("kafka", {})
        for figure, (name, decimals, _) in _FIGURES.items():
            if figure not in ours:
                continue
            mine, other = ours[figure], theirs.get(figure)
            ratio = f"{mine / other:.2f}" if other else "-"
            shown = f"{other:,.{decimals}f}" if other is not None else "-"
            lines.append(f"| {what} | {name} | {mine:,.{decimals}f} | {shown} | {ratio} |")
    return "\n".join(lines) + "\n"


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "an unknown commit"
