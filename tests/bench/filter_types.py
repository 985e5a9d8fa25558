"""What one record costs in a filter of each type of the plugin `filters`, alone: no broker, one thread.

    python tests/bench/filter_types.py
    python tests/bench/filter_types.py --seconds 1 --bytes 1000 --only cast mask

A record is a JSON object of about `--bytes` bytes with a key and a header; each filter gets batches of 500 of them, as
records come to a topic, through the chain that relays use. `ratio` is the cost beside a chain without filters, which
copies the list. Every case runs in turns with all others, and the best of the turns counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from leafcuttr.plugins.filter_chain import OutsideChain, OutsideFilter
from leafcuttr.runtime.plugin_parts import Part
from leafcuttr_sdk import Record
from support.making_filters import made

CASES: Final = {
    "nothing": (),
    "allow key": ("allow key.regex=^user-",),
    "allow header": ("allow header=source header.value=web",),
    "allow field": ("allow field=country field.value=se",),
    "deny condition": ("deny condition='value.total > 1000'",),
    "sample by key": ("sample share=1 by=key",),
    "rate": ("rate records=1000000000",),
    "dedupe by key": ("dedupe window=1s",),
    "age": ("age max=3650d",),
    "extract": ("extract field=payload",),
    "insert": ("insert static.field=site static.value=x timestamp.field=at",),
    "replace": ("replace exclude=payload.a renames=id:order",),
    "mask fields": ("mask fields=email",),
    "mask patterns, none there": ("mask patterns=card,email part=key",),
    "mask patterns": ("mask patterns=card,email keep=4",),
    "hash": ("hash fields=email salt=x",),
    "flatten": ("flatten",),
    "cast": ("cast spec=total:string",),
    "timestamp": ("timestamp field=time target.type=string format=yyyy-MM-dd'T'HH:mm:ss",),
    "route": ("route regex=(.*) replacement=$1-x",),
    "headers": ("headers fields=id,country headers=id,country",),
    "a chain of five": (
        "allow field=country field.value=se", "deny condition='value.total > 1000'", "mask fields=email",
        "cast spec=total:string", "replace renames=id:order",
    ),
}  # fmt: skip
_BATCH: Final = 500


def main(words: list[str] | None = None) -> dict[str, float]:
    """Prints the table; records in a second by case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.3, help="of each case, in each turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=None, metavar="WORD")
    given = parser.parse_args(words)
    wanted = [
        name
        for name in CASES
        if not given.only or name == "nothing" or any(one in name for one in given.only)
    ]
    runs = {name: _run(CASES[name], given.bytes) for name in wanted}
    best = dict.fromkeys(wanted, 0.0)
    for _ in range(given.turns):
        for name, run in runs.items():
            best[name] = max(best[name], _rate(run, given.seconds))
    nothing = 1 / best["nothing"]
    sys.stdout.write(f"{'filter':<28}{'records/s':>12}{'us':>8}{'ratio':>9}\n")
    for name, rate in best.items():
        sys.stdout.write(f"{name:<28}{rate:>12,.0f}{1e6 / rate:>8.2f}{1 / rate / nothing:>9.1f}\n")
    return best


def _run(definitions: tuple[str, ...], size: int) -> Callable[[], int]:
    filters = [made(f"{one} on.error=drop") for one in definitions]
    chain = OutsideChain(
        [
            OutsideFilter(str(number), one.filter, Part("filters", "of a measurement"))
            for number, one in enumerate(filters)
        ]
    )

    def run() -> int:
        # Other bytes each time, as from a socket: nothing of them was ever decoded.
        records = [
            Record(bytes(bytearray(value)), key, headers, timestamp)
            for value, key, headers, timestamp in batch
        ]
        began = perf_counter()
        chain.filter(records)
        took[0] += perf_counter() - began
        return len(records)

    batch = [_record(number, size) for number in range(_BATCH)]
    took = [0.0]
    run.took = took  # type: ignore[attr-defined]
    return run


def _record(number: int, size: int) -> Record:
    value = {
        "id": number, "country": "se", "total": 12.5, "email": f"user{number}@example.org", "time": 1_795_249_800_000,
        "payload": {"a": 1, "b": [1, 2, 3]}, "note": "",
    }  # fmt: skip
    value["note"] = "x" * max(0, size - len(json.dumps(value)))
    key = b"user-%d" % number
    return Record(json.dumps(value).encode(), key, (("source", b"web"),), 1_795_249_800_000)


def _rate(run: Callable[[], int], seconds: float) -> float:
    took: list[float] = run.took  # type: ignore[attr-defined]
    took[0] = 0.0
    count = 0
    while took[0] < seconds:
        count += run()
    return count / took[0]


if __name__ == "__main__":
    main()
