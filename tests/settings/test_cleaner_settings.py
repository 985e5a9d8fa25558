"""Broker settings of the cleaner itself, changed while it runs: how many logs at a time, in how much memory, how fast.

Those that are also a topic's are changed by test_compaction_settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.wire.records import Record, encode_batch
from support import librdkafka
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.waiting import until
from support.wire_client import WireClient

DAY = 86_400_000
BY_HAND = {"log.cleaner.enable": "false", "log.retention.check.interval.ms": str(DAY)}
BY_ITSELF = {"log.cleaner.backoff.ms": str(DAY), "log.retention.check.interval.ms": str(DAY)}
NOT_YET_S = 0.3
"""So long a test watches for what must not happen; it is no measure of speed."""


def cleaner(broker: LiveBroker) -> Cleaner:
    return broker.broker.logs.cleaner


def dirty(
    broker: LiveBroker, topic: str, *, keys: int = 1, size: int = 10, segments: int = 4, batches: int = 1
) -> None:
    """A compact topic with records of these keys, so many times, in each of some segments, and one in the active
    one."""
    librdkafka.create(
        broker.address, topic, cleanup_policy="compact", segment_ms="1000", min_cleanable_dirty_ratio="0.01"
    )
    with WireClient(broker.address) as client:
        for number in range(segments):
            stamp = broker.clock.ms - (segments - number) * DAY
            rows = [Record(at, stamp, b"%d" % at, b"v" * size) for at in range(keys)]
            for _ in range(batches):
                assert client.produce(topic, encode_batch(rows)).error_code == 0
        data = encode_batch([Record(0, broker.clock.ms, b"last", b"v")])
        assert client.produce(topic, data).error_code == 0
    assert len(broker.files(topic)) == segments + 1
    broker.pass_time(0)


def clean(broker: LiveBroker) -> int:
    """One check for due logs; how many there were."""
    return broker.run(cleaner(broker).clean_due)


def rounds(broker: LiveBroker) -> int:
    """How many rounds over the map of keys one log takes, which is made dirty again and again."""
    name = f"topic-{cleaner(broker).rounds}"
    dirty(broker, name, keys=300)
    before = cleaner(broker).rounds
    assert clean(broker) == 1
    return cleaner(broker).rounds - before


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One element for each time that a cleaner has checked for due logs, the first time when the broker starts."""
    found: list[None] = []
    look = Cleaner.clean_due

    async def noted(self: Cleaner) -> int:
        found.append(None)
        return await look(self)

    monkeypatch.setattr(Cleaner, "clean_due", noted)
    return found


@pytest.mark.setting("log.cleaner.enable")
def test_log_cleaner_enable(serve: Any, checks: list[None]) -> None:
    with serve({**BY_HAND, "log.cleaner.backoff.ms": "10"}) as broker:
        dirty(broker, "t")
        broker.run(trio.sleep, NOT_YET_S)
        assert cleaner(broker).rounds == 0
        assert checks == []
    with serve({"log.cleaner.backoff.ms": "10"}) as broker:
        broker.pass_time(0)
        until(lambda: cleaner(broker).rounds == 1, "compaction")


@pytest.mark.one_in(2)
@pytest.mark.setting("log.cleaner.backoff.ms", while_running=True)
def test_log_cleaner_backoff_ms(serve: Any, scope: str, checks: list[None]) -> None:
    with serve(BY_ITSELF) as broker:
        dirty(broker, "one")
        broker.run(trio.sleep, NOT_YET_S)
        assert cleaner(broker).rounds == 0, "it rests for a day"
        alter_broker(broker.address, "1", {"log.cleaner.threads": "2"})
        until(lambda: cleaner(broker).rounds == 1, "compaction, because another setting has changed")
        dirty(broker, "two")
        broker.run(trio.sleep, NOT_YET_S)
        assert cleaner(broker).rounds == 1
        alter_broker(broker.address, scope, {"log.cleaner.backoff.ms": "10"})
        until(lambda: cleaner(broker).rounds == 2, "compaction, because of the change")
        dirty(broker, "three")
        until(lambda: cleaner(broker).rounds == 3, "compaction by itself")
        # In a minute there would be four, if it rested as long as by default.
        enough = len(checks) + 20
        until(lambda: len(checks) >= enough, "twenty checks")


@pytest.mark.setting("log.cleaner.threads", while_running=True)
def test_log_cleaner_threads(serve: Any, scope: str) -> None:
    with serve(BY_HAND) as broker:
        for number in range(4):
            dirty(broker, f"t{number}")
        assert clean(broker) == 1
        alter_broker(broker.address, scope, {"log.cleaner.threads": "0"})
        assert clean(broker) == 0
        alter_broker(broker.address, scope, {"log.cleaner.threads": "2"})
        assert clean(broker) == 2
        alter_broker(broker.address, scope, {"log.cleaner.threads": None})
        assert [clean(broker), clean(broker)] == [1, 0]


@pytest.mark.setting("log.cleaner.dedupe.buffer.size", while_running=True)
def test_log_cleaner_dedupe_buffer_size(serve: Any, scope: str) -> None:
    with serve(BY_HAND) as broker:
        assert rounds(broker) == 1
        alter_broker(broker.address, scope, {"log.cleaner.dedupe.buffer.size": "11000"})
        assert rounds(broker) >= 3, "of 300 keys not more than a hundred fit"


@pytest.mark.setting("log.cleaner.io.buffer.load.factor", while_running=True)
def test_log_cleaner_io_buffer_load_factor(serve: Any, scope: str) -> None:
    with serve({**BY_HAND, "log.cleaner.dedupe.buffer.size": "60000"}) as broker:
        assert rounds(broker) == 1
        alter_broker(broker.address, scope, {"log.cleaner.io.buffer.load.factor": "0.1"})
        assert rounds(broker) >= 4


@pytest.mark.one_in(2)
@pytest.mark.setting("log.cleaner.io.buffer.size", while_running=True)
def test_log_cleaner_io_buffer_size(serve: Any, scope: str) -> None:
    """Read calls of the process that compacts some megabytes."""

    def reads(name: str) -> int:
        dirty(broker, name, keys=8, size=5000, segments=3, batches=30)
        assert clean(broker) == 1
        (child,) = cleaner(broker)._idle
        counts = dict(line.split(": ") for line in Path(f"/proc/{child.pid}/io").read_text().splitlines())
        broker.run(cleaner(broker)._end_children)
        return int(counts["syscr"])

    with serve(BY_HAND) as broker:
        alter_broker(broker.address, scope, {"log.cleaner.io.buffer.size": "65536"})
        many = reads("small")
        alter_broker(broker.address, scope, {"log.cleaner.io.buffer.size": str(16 << 20)})
        assert reads("large") < many - 10


@pytest.mark.setting("log.cleaner.io.max.bytes.per.second", while_running=True)
def test_log_cleaner_io_max_bytes_per_second(serve: Any, scope: str) -> None:
    with serve(BY_ITSELF) as broker:
        dirty(broker, "t", keys=20, size=5000)
        alter_broker(broker.address, scope, {"log.cleaner.io.max.bytes.per.second": "1000"})
        until(lambda: bool(cleaner(broker)._children), "the process that compacts")
        broker.run(trio.sleep, NOT_YET_S)
        assert cleaner(broker).rounds == 0
        alter_broker(broker.address, scope, {"log.cleaner.io.max.bytes.per.second": None})
        until(lambda: cleaner(broker).rounds == 1, "the rest, without a limit")
