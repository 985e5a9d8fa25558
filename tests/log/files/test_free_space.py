"""Clients are refused before the disk is full, and are served again when there is space."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StorageError
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.files.free_space import FreeSpace
from leafcuttr.log.log import Log
from support.logs import NOW, TP, append, batch, config, read_all, resources, write_now


def stage(log: Log, data: bytearray) -> None:
    log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)


async def test_what_clients_produce_is_refused_below_the_least_and_taken_again_above(tmp_path: Path) -> None:
    settings, given = Settings(), resources()
    (tmp_path / "t-0").mkdir()
    log = Log.create(TP, tmp_path / "t-0", config(), resources=given)
    space = FreeSpace(tmp_path, settings, given)
    space.check()
    stage(log, batch())
    write_now(log)

    everything = os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    settings.replace_dynamic({"lc.log.min.free.bytes": str(everything + 1)})
    await space.watch()
    with pytest.raises(StorageError, match=r"lc\.log\.min\.free\.bytes") as refused:
        stage(log, batch())
    assert refused.value.disk_full
    append(log, batch(), NOW, Origin.COORDINATOR)  # what the broker itself has to write goes on
    assert len(read_all(log)) == log.size

    settings.replace_dynamic({"lc.log.min.free.bytes": "0"})
    await space.watch()
    stage(log, batch())
    write_now(log)
    assert log.log_end_offset == 3
