"""Runs scenarios on both sides and prints what differs: `python -m parity.run KAFKA OURS [--slice] [PATTERN ...]`.

KAFKA and OURS are host:port of running brokers; a pattern is a part of
`api.scenario.vN`; `--slice` takes the oldest and the newest version only. The tests use `compare_one`.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from parity.allowed import Allowed, verdict
from parity.compare import Difference, differences, table
from parity.scenario import Scenario, load_all
from parity.side import CONCURRENT_TRANSACTIONS, Side

# Over all scenarios of this process, by API and error code.
KAFKA_ASKED_AGAIN: Counter[tuple[str, int]] = Counter()
OURS_ASKED_AGAIN: Counter[tuple[str, int]] = Counter()


def run_on(
    host: str,
    port: int,
    scenario: Scenario,
    version: int,
    tag: str = "",
    topic_settings: Mapping[str, str] | None = None,
) -> Side:
    """One run on one broker; an exception of the scenario becomes its last exchange.

    `tag` goes into all names, so that a broker can be asked again without remembering the last run.
    """
    side = Side(host, port, f"{scenario.api}.{scenario.name}{tag}.{version}", topic_settings or {})
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
    own = {} if os.environ.get("LEAFCUTTR_PARITY_PEER") else scenario.topic_settings
    left, right = run_on(*kafka, scenario, version, tag), run_on(*ours, scenario, version, tag, own)
    KAFKA_ASKED_AGAIN.update(left.asked_again)
    OURS_ASKED_AGAIN.update(right.asked_again)
    broken = [one for one in left.exchanges if one.case == "scenario broke off"]
    if broken:
        raise RuntimeError(f"the scenario does not work with Kafka itself: {broken[0].answer}")
    return verdict(differences(left, right), scenario.variant)


def asked_again() -> str:
    """How often both said that they are not ready, by API and error code; empty if neither did."""
    found = KAFKA_ASKED_AGAIN | OURS_ASKED_AGAIN
    if not found:
        return ""
    concurrent = [
        sum(count for (_, code), count in counted.items() if code == CONCURRENT_TRANSACTIONS)
        for counted in (KAFKA_ASKED_AGAIN, OURS_ASKED_AGAIN)
    ]
    rows = (
        f"{api} {code}: {KAFKA_ASKED_AGAIN[api, code]} and {OURS_ASKED_AGAIN[api, code]}"
        for api, code in sorted(found)
    )
    return (
        f"parity: asked again, Kafka and LeafCuttr: CONCURRENT_TRANSACTIONS: {concurrent[0]} and {concurrent[1]}; "
        f"by API and error code: {', '.join(rows)}"
    )


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
    print(asked_again(), file=sys.stderr)
    print(f"{len(rows)} differences", file=sys.stderr)
    return len(rows)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
