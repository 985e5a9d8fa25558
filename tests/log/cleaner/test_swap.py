"""An exchange of segments that ends in the middle: a start finds all files of the old one, or all of the new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr.log.cleaner import swap
from leafcuttr.log.cleaner.compaction.output import Output
from leafcuttr.log.cleaner.compaction.pages import Throttle
from leafcuttr.log.cleaner.swap import announce, finish_exchanges, take_names
from leafcuttr.log.layout.suffixes import CLEANED, SUFFIXES
from leafcuttr.log.log import Log
from leafcuttr.log.recovery.known import Known
from leafcuttr.log.recovery.recovery import restore
from leafcuttr.log.segment.segment import segment_name
from leafcuttr.log.segment.txn_index import AbortedTransaction
from support.logs import resources
from support.managers import spec

FILES = 4  # that are renamed at each step


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def cleaned(dirty_log: Callable[..., Log]) -> tuple[Path, dict[str, bytes], dict[str, bytes]]:
    """A folder with a complete cleaned segment beside the old ones; the old files of the first one, and the new."""
    log = dirty_log(200)
    folder, segment = log.directory, log.segments[0]
    batches = list(segment.scan())
    output = Output(str(folder / segment_name(0)), 0, 50, Throttle(0))
    data = Path(segment.path(".log")).read_bytes()
    for position, header in batches[1:]:
        output.begin(0, 0) if not output.begun else None
        output.batch(header.size, header.last_offset, header.max_timestamp)
        output.write(data[position : position + header.size])
    output.finish([AbortedTransaction(1, 2, 3, 4)], with_transactions=True, mtime=0)
    output.close()
    found = content(folder)
    stem = segment_name(0)
    old = {name: found[name] for name in found if name.startswith(stem) and not name.endswith(CLEANED)}
    new = {name.removesuffix(CLEANED): found[name] for name in found if name.endswith(CLEANED)}
    assert len(new) == FILES
    assert new[f"{stem}.index"] != old[f"{stem}.index"]
    return folder, old, new


class Killed(Exception):
    pass


def renaming(monkeypatch: pytest.MonkeyPatch, at_most: int) -> None:
    """The process ends after so many renames."""
    done = 0
    real = os.rename

    def rename(source: str, target: str) -> None:
        nonlocal done
        if done == at_most:
            raise Killed
        done += 1
        real(source, target)

    monkeypatch.setattr(swap.os, "rename", rename)


@pytest.mark.parametrize("renames", range(FILES + 1))
def test_one_that_was_not_announced_whole_is_taken_back(
    cleaned: tuple[Path, dict[str, bytes], dict[str, bytes]], monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    folder, old, new = cleaned
    with monkeypatch.context() as patch:
        renaming(patch, renames)
        try:
            announce(str(folder), 0)
        except Killed:
            assert renames < FILES
    finish_exchanges(folder)
    found, due = content(folder), old if renames < FILES else {**old, **new}
    assert {name: found[name] for name in due} == due
    assert all(Path(name).suffix in (*SUFFIXES, ".metadata") or "checkpoint" in name for name in found)


@pytest.mark.parametrize("renames", range(FILES + 1))
def test_one_that_was_announced_is_finished(
    cleaned: tuple[Path, dict[str, bytes], dict[str, bytes]], monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    folder, old, new = cleaned
    announce(str(folder), 0)
    with monkeypatch.context() as patch:
        renaming(patch, renames)
        try:
            take_names(str(folder), 0)
        except Killed:
            assert renames < FILES
    finish_exchanges(folder)
    found = content(folder)
    assert {name: found[name] for name in (*old, *new)} == {**old, **new}


def test_a_start_finishes_what_was_announced(
    cleaned: tuple[Path, dict[str, bytes], dict[str, bytes]],
) -> None:
    folder, _, new = cleaned
    announce(str(folder), 0)
    end = max(int(path.stem) for path in folder.glob("*.log"))
    given = spec(cleanup_policy=("compact",), segment_bytes=4000)
    log = restore(given, folder, Known(None, False, end, 0), exists=True, resources=resources())
    assert log.offline is None
    assert log.segments[0].size == len(new[f"{segment_name(0)}.log"])
    found = content(folder)
    assert {name: found[name] for name in new} == new
