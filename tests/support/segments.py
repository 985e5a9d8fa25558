"""A log of one segment with index entries, and that segment as another process opens it."""

from pathlib import Path

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment
from support.logs import NOW, append, batch, make_log


def filled(folder: Path, batches: int = 60) -> Log:
    log = make_log(folder, index_interval_bytes=500)
    for number in range(batches):
        append(log, batch(2, size=60, timestamp=NOW + number), NOW)
    log.segments[0].seal()
    return log


def reopened(log: Log) -> Segment:
    return Segment.open(log.directory_name, 0, pool=FilePool())
