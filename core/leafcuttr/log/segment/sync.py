"""Forcing a segment to disk: its records, its indexes, and the names without which they could not be found.

All of it blocks: worker threads. Where a sync fails, the folder of the partition is marked (`files.failed_sync`) and
SyncFailedError raised: nothing of that folder may be synced again by this process.
"""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from leafcuttr.crashpoints import reach
from leafcuttr.log.files.failed_sync import marked_on_failure, sync_descriptor, sync_directory, sync_file
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from leafcuttr.log.segment.segment import Segment


def sync_segment(segment: Segment, *, folder_name_synced: bool = False) -> None:
    """Force log, indexes and snapshot to disk. `folder_name_synced`: the name of the folder is there already. Raises as
    `sync_records`."""
    with marked_on_failure(segment.directory):
        _sync_records(segment, folder_name_synced=folder_name_synced)
        for index in (segment.index, segment.time_index):
            index.sync()
        _sync_txn_index(segment)
        with suppress(FileNotFoundError):
            sync_file(Path(segment.path(".snapshot")))  # its name is as old as that of the segment


def sync_records(segment: Segment) -> None:
    """Force the log file to disk, and the first time its name, that of the folder, and the topic id and leader epochs
    in the folder: without them the records would be lost with the power all the same. Raises SyncFailedError, and
    OSError if there is no file to sync."""
    with marked_on_failure(segment.directory):
        _sync_records(segment, folder_name_synced=False)


def _sync_records(segment: Segment, *, folder_name_synced: bool) -> None:
    file = segment.open_file()
    sync_descriptor(file.fd, file.path)
    if not segment.name_synced:
        folder, pool = Path(segment.directory), segment.pool
        for name in (PARTITION_METADATA, LEADER_EPOCHS):
            with suppress(FileNotFoundError):
                pool.opening(partial(sync_file, folder / name))
        pool.opening(partial(sync_directory, folder))
        if not folder_name_synced:
            pool.opening(partial(sync_directory, folder.parent))
        segment.name_synced = True
        reach("segment.names-synced")


def _sync_txn_index(segment: Segment) -> None:
    """Force the transaction index to disk, and its name: the file is made by the first entry that is flushed. The
    index itself is left to the loop's thread."""
    path = segment.path(".txnindex")
    try:
        fd = segment.pool.opening(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return
    try:
        sync_descriptor(fd, path)
    finally:
        os.close(fd)
    if not segment.txn_name_synced:
        sync_directory(Path(segment.directory))
        segment.txn_name_synced = True
