"""A failed sync: what was written since the last good one may be lost, although it can still be read.

After a failed fsync the kernel may mark the pages clean that it could not write, and report the error only once: a
second fsync that succeeds proves nothing, and the page cache shows what the disk does not have. So a sync is never
tried again on a file on which one has failed. The folder of the partition gets a mark, which outlives the process
(the death of the machine needs none: then the state file is not used anyway), the partition goes offline, and the
next start reads the log again from its last good recovery point, with every CRC, from the disk.

The log and recovery act on the mark; the calls that sync, and the mark itself, are defined in this module.
"""

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

MARK: Final = "sync-failed"

_log = logging.getLogger(__name__)


class SyncFailedError(OSError):
    """The kernel could not write what it had taken. `filename` is the file or folder."""


def sync_descriptor(fd: int, path: str) -> None:
    """Force the bytes of an open file to disk. Blocks. Raises SyncFailedError."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        raise SyncFailedError(error.errno, error.strerror, path) from error


def sync_file(path: Path) -> None:
    """Make what is in a file durable. Raises SyncFailedError, and OSError if it cannot be opened."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_descriptor(descriptor, str(path))
    finally:
        os.close(descriptor)


def sync_directory(directory: Path | str) -> None:
    """Make the names in `directory` durable. Blocks. Raises SyncFailedError, and OSError if it cannot be opened."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncFailedError(error.errno, error.strerror, str(directory)) from error
    finally:
        os.close(descriptor)


def mark(folder: str) -> None:
    """Note in the folder of a partition that a sync has failed. Raises nothing: the disk is failing as it is."""
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(f"{folder}/{MARK}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileNotFoundError:
        pass  # the partition is being deleted
    except OSError as error:
        _log.error("%s/%s cannot be written: %s", folder, MARK, error.strerror or error)


@contextlib.contextmanager
def marked_on_failure(folder: str) -> Iterator[None]:
    """Mark the folder of a partition if a sync within fails."""
    try:
        yield
    except SyncFailedError:
        mark(folder)
        raise


def is_marked(folder: Path) -> bool:
    return os.path.exists(f"{folder}/{MARK}")  # noqa: PTH110 - called for every partition at a start after a crash


def unmark(folder: Path) -> None:
    """All of it has been read from the disk and synced. Raises OSError."""
    (folder / MARK).unlink(missing_ok=True)
    sync_directory(folder)


def forget_cached(paths: Iterable[str]) -> None:
    """Have the next reads of these files come from the disk, as far as the kernel drops its copies. What it has
    not yet tried to write, it has to write first. Raises SyncFailedError, OSError."""
    for path in paths:
        fd = os.open(path, os.O_RDWR)
        try:
            sync_descriptor(fd, path)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
