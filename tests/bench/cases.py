"""Functions that each do something a number of times, in turn: the best time of each, as a table in Markdown."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any


def measure(cases: Mapping[str, Callable[[], Any]], count: int, rounds: int) -> None:
    """Print what one of the `count` things takes that a case does."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, run in cases.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    print("| | each |\n|---|---:|")
    for name, seconds in best.items():
        print(f"| {name} | {seconds / count * 1e9:.0f} ns |")


def main(description: str | None, measure: Callable[[int], None]) -> None:
    """The program: `--rounds`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    measure(parser.parse_args().rounds)
