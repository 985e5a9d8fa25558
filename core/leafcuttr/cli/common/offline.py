"""What the commands that work on files share: the lock, the topics of a directory, a progress bar, errors as one line.

They need no broker, and all but `--online` refuse a directory that one is using. Exit status of all of them: 0 done
and nothing wrong, 1 something is wrong with the data, 2 wrong usage or a directory that is in use or unreadable.
"""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from leafcuttr.cli.common.failures import Failure

if TYPE_CHECKING:
    from leafcuttr.offline.verify import KnownTopic
    from leafcuttr.state.metadata import MetadataStore, TopicRecord

Progress = Callable[[int, int], None]


def fail(text: object) -> NoReturn:
    """End the command with one line."""
    click.echo(f"leafcuttr: {text}", err=True)
    sys.exit(2)


@contextlib.contextmanager
def unused(directory: Path) -> Iterator[None]:
    """Lock the directory; ends the command if a broker has it."""
    from leafcuttr.errors import StartError
    from leafcuttr.log.layout.directory import locked

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(directory))
        except StartError as error:
            fail(error)
        yield


@contextlib.contextmanager
def unused_metadata(directory: Path) -> "Iterator[MetadataStore]":
    """The metadata of a directory that no broker uses, which is made if it is not there. Raises Failure."""
    from leafcuttr.errors import StartError, StorageError
    from leafcuttr.state.metadata import MetadataStore

    try:
        directory.mkdir(parents=True, exist_ok=True)
        with unused(directory):
            store = MetadataStore.open(directory)
            try:
                yield store
            finally:
                store.close()
    except (StartError, StorageError) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror or error}") from None


@contextlib.contextmanager
def copied_metadata(directory: Path) -> "Iterator[MetadataStore | None]":
    """The metadata of a directory as it is now, a broker's that runs too; None without one.

    Reads a copy, because opening SQLite's file may write to it. Raises StartError if it cannot be used.
    """
    from leafcuttr.errors import StartError
    from leafcuttr.state.metadata import FILE_NAME, MetadataStore

    if not (directory / FILE_NAME).exists():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="leafcuttr-") as scratch:
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(directory / f"{FILE_NAME}{suffix}", Path(scratch) / f"{FILE_NAME}{suffix}")
        try:
            store = MetadataStore.open(Path(scratch))
        except StartError as error:
            raise StartError(str(error).replace(scratch, str(directory))) from error
        try:
            yield store
        finally:
            store.close()


def stored_topics(directory: Path) -> "list[TopicRecord] | None":
    """The topics that the metadata names; None without metadata. Raises StartError if it cannot be used."""
    with copied_metadata(directory) as store:
        return None if store is None else store.topics()


def known_topics(records: "list[TopicRecord] | None") -> "Mapping[str, KnownTopic] | None":
    """What the checks of a directory need to know of its topics."""
    from leafcuttr.offline.verify import KnownTopic

    if records is None:
        return None
    return {
        record.name: KnownTopic(
            record.id, record.partitions, "compact" in record.overrides.get("cleanup.policy", "")
        )
        for record in records
    }


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
