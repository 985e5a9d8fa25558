"""The broker is killed at random moments and at every named point, under load; nothing acknowledged may be lost.

The load: librdkafka producers (idempotent and not, to plain topics, to one in topic sync mode, to a compacted one),
producers on a socket of their own, Kafka's Java producer (and with `--long` its consumer group), transactions, commits,
members, topics that come and go, records that are deleted. Segments are small, and now and then a log is left with a
torn end.

After each start everything is read back: idempotent senders' records in order without gap or duplicate and where the
broker has said that they are, the others' without gap, the latest value of each key, transactions whole or not at all,
commits and topics as they were acknowledged; after each kill and after the last stop `leafcuttr verify` finds no
problem. At the end, also of a run that has failed, software that is not ours reads the files (`foreign`): keys and
values of all that was acknowledged, record by record, and what is missing is named by partition and offset.

The gate runs one kill at each point at which no other of its tests kills (`killing.points`) and one at random, and
reads back after every fourth of the former; `--kills 200` (the `crash` session runs that by default, with all points)
as many as one likes. A failing run prints its seed; `--crash-seed` repeats it.
What exactly is running at the moment of a kill differs from run to run; the seed repeats the points, their counts, the
delays and the order.
"""

from pathlib import Path

import pytest

from crash.killing import planned, points, run_kills


@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = request.config.getoption("--long", default=False)
    kills = request.config.getoption("--kills", default=None)
    kills = kills if kills is not None else (200 if long else 1)
    with capsys.disabled():
        run = run_kills(
            tmp_path,
            seed,
            lambda dice: planned(dice, kills, thorough=long),
            thorough=long,
            patience=2.0 if long else 0.5,
        )
    missed = [name for name in points(thorough=long) if not run.reached[name]]
    assert not missed, f"never reached: {missed}"
