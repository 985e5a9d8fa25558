"""A log that is dirty, and a cleaner for it with real child processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.log.log import Log
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, HandClock, append, make_log


async def no_need(_: TopicPartition, __: int) -> None:
    """The recovery point on the disk is far enough."""


@pytest.fixture
def dirty_log(tmp_path: Path) -> Callable[..., Log]:
    """Makes a log of `records` records with `keys` keys, in many small segments, all synced."""

    def make(records: int = 600, keys: int = 50, **config: object) -> Log:
        given = {"segment_bytes": 4000, "index_interval_bytes": 200, "cleanup_policy": ("compact",), **config}
        log = make_log(tmp_path / "data" / "t-0", **given)
        for number in range(0, records, 5):
            rows = [
                Record(i, NOW + number + i, b"key %d" % ((number + i) * 7 % keys), b"value %d" % (number + i))
                for i in range(5)
            ]
            append(log, encode_batch(rows), NOW)
        log.flush_indexes()
        log.flush()
        return log

    return make


@pytest.fixture
def make_cleaner(tmp_path: Path) -> Callable[..., Cleaner]:
    """A cleaner of some logs; settings by keyword, `_` for `.`."""

    def make(*logs: Log, clock: HandClock | None = None, **settings: str) -> Cleaner:
        given = Settings({name.replace("_", "."): value for name, value in settings.items()})
        checkpoint = CleanerCheckpoint(tmp_path / "data")
        return Cleaner(
            {log.topic_partition: log for log in logs},
            lambda _: checkpoint,
            given,
            clock or HandClock(),
            logs[0].pool,
            no_need,
        )

    return make
