"""The clean stop of the logs of a directory: everything is synced, then recorded.

No folder is made or renamed meanwhile, so the names of all of them are synced at once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from leafcuttr.log.files.failed_sync import SyncFailedError, mark, sync_directory
from leafcuttr.log.log import Log
from leafcuttr.log.upkeep.soft_checkpoint import StateRecord, remove_old_snapshots
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.trouble import import_late

_SYNCERS: Final = 8  # syncs at once: file systems commit those of several files together


def close_logs(
    directory: Path,
    logs: Mapping[TopicPartition, Log],
    ids: Mapping[TopicPartition, bytes],
    record: StateRecord,
) -> bool:
    """Sync and close every log of the directory, and take the lines of those that have changed into the record; whether
    all of them could be synced. Blocks. Raises OSError if the directory cannot be opened, or no file can be."""
    open_logs = [(name, log) for name, log in logs.items() if log.offline is None]
    changed = [(name, log) for name, log in open_logs if record.changed(name, log)]
    touched = {name for name, _ in changed}
    unsynced = [
        log
        for name, log in open_logs
        if log.log_end_offset > log.recovery_point
        or name in touched
        or log.pending_deletes
        or (log.segments and log.segments[-1].unsealed)  # synced and recorded, but as one that goes on
    ]
    fine = _sync_folder_names(directory, unsynced)
    fine = _finish_all([log for log in unsynced if not log.sync_failed]) and fine
    for name, log in open_logs:
        if fine and record.changed(name, log):
            record.take(name, log, ids[name])
    for name, log in logs.items():
        if log.sync_failed:
            record.forget(name)
        log.close()
    return fine


def _sync_folder_names(directory: Path, logs: list[Log]) -> bool:
    """Sync the names of the folders, if the segments of any are not known to be; whether that worked."""
    nameless = [log for log in logs if not all(segment.name_synced for segment in log.segments)]
    if not nameless:
        return True
    try:
        sync_directory(directory)
    except SyncFailedError as error:
        for log in nameless:
            mark(log.directory_name)
            log.handle_failed_sync(error)
        return False
    return True


def _finish_all(logs: Sequence[Log]) -> bool:
    """`_finish` for each, several at once; whether all of them worked. Raises OSError if no file can be opened."""
    if len(logs) <= 1:
        return all(map(_finish, logs))
    # Only a stop needs this: it is not kept in memory for that.
    logs[0].resources.descriptors.opening(lambda: import_late("concurrent.futures.thread"))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_SYNCERS, len(logs))) as pool:
        return all(list(pool.map(_finish, logs)))


def _finish(log: Log) -> bool:
    """Sync a log whose folder's name is synced, for a clean stop; whether that worked."""
    try:
        if log.pending_deletes:
            log.delete_scheduled_files(1 << 62, at_most=1 << 30)
        if not log.log_end_offset and not log.config.preallocate:
            return True  # an empty log that is lost with the power is made again
        log.seal()
        if log.has_producers:
            remove_old_snapshots(log, [segment.base_offset for segment in log.segments])
        log.flush(folder_name_synced=True)
        log.close()
    except SyncFailedError as error:
        log.handle_failed_sync(error)
        return False
    except OSError as error:
        reason = error.strerror or str(error)
        log.resources.complaints(reason, "closing %s failed: %s", log.topic_partition, reason)
        return False
    return True
