"""Runs scenarios on both sides and prints what differs: `python -m parity.run KAFKA OURS [--slice] [PATTERN ...]`.

KAFKA and OURS are host:port of running brokers; a pattern is a part of
`api.scenario.vN`; `--slice` takes the oldest and the newest version only. The tests use `compare_one`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from parity.allowed import Allowed, verdict
from parity.compare import Difference, differences, table
from parity.scenario import Scenario, load_all
from parity.side import Side


def run_on(host: str, port: int, scenario: Scenario, version: int, tag: str = "") -> Side:
    """One run on one broker; an exception of the scenario becomes its last exchange.

    `tag` goes into all names, so that a broker can be asked again without remembering the last run.
    """
    side = Side(host, port, f"{scenario.api}.{scenario.name}{tag}.{version}")
    try:
        scenario.run(side, version)
    except Exception as error:  # whatever a broken peer makes the scenario do is a finding, not a crash
        side.note(scenario.api, version, "scenario broke off", f"{type(error).__name__}: {error}")
    finally:
        side.close()
    return side


def compare_one(
    kafka: tuple[str, int], ours: tuple[str, int], scenario: Scenario, version: int, tag: str = ""
) -> tuple[list[Difference], set[Allowed]]:
    """The differences that nothing allows, and the allowances that were needed."""
    left, right = run_on(*kafka, scenario, version, tag), run_on(*ours, scenario, version, tag)
    broken = [one for one in left.exchanges if one.case == "scenario broke off"]
    if broken:
        raise RuntimeError(f"the scenario does not work with Kafka itself: {broken[0].answer}")
    return verdict(differences(left, right))


def main(arguments: Sequence[str]) -> int:
    """Runs what fits the patterns and prints one table. Returns how many differences there are."""
    addresses = [one.rsplit(":", 1) for one in arguments[:2]]
    kafka, ours = ((host, int(port)) for host, port in addresses)
    rows: list[Difference] = []
    tag = f"-{time.time_ns() // 1_000_000 % 1_000_000_000}"
    patterns = [one for one in arguments[2:] if one != "--slice"]
    for one in load_all():
        for version in one.edges if "--slice" in arguments else one.versions:
            name = f"{one.api}.{one.name}.v{version}"
            if patterns and not any(pattern in f"{name}." for pattern in patterns):
                continue
            try:
                began = time.monotonic()
                rows += compare_one(kafka, ours, one, version, tag)[0]
                print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
    print(table(rows))
    print(f"{len(rows)} differences", file=sys.stderr)
    return len(rows)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
