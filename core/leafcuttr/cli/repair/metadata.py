"""`leafcuttr repair --metadata`: the new metadata file is made beside the old one, then takes its place.

What goes into it is decided by `leafcuttr.offline.rebuild`. The old file is kept; until the new one has its name a
start refuses as before, so that the command can be run again after a crash.
"""

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from leafcuttr.cli.common.offline import fail, progress_bar, stored_topics
from leafcuttr.cli.repair.report import RepairReport

if TYPE_CHECKING:
    from leafcuttr.offline.rebuild import FoundTopic, RebuiltMetadata

_BESIDE = "metadata.rebuilding"


def rebuild(directory: Path, report: RepairReport) -> bool:
    """Show the plan or carry it out; whether nothing is left to do. Raises OSError, StartError."""
    from leafcuttr.offline.rebuild import mark_folders, read_topics
    from leafcuttr.state.metadata import FILE_NAME
    from leafcuttr.state.topics import new_topic_id

    if _is_sound(directory):
        fail(f"{directory / FILE_NAME} is sound, there is nothing to rebuild")
    with progress_bar("reading") as progress:
        found = read_topics(directory, new_topic_id=new_topic_id, progress=progress)
    for text in found.refused:
        report.refused(text, f"cannot rebuild {text}", err=True)
    for topic in found.topics:
        if report.execute:
            mark_folders(topic)
        report.step(f"rebuild {topic}", f"{'rebuilt' if report.execute else 'would rebuild'} {topic}")
    if report.execute:
        _put_in_place(directory, found)
    report.line(
        "not in the folders, and to be set again: settings of topics and of the broker (until then nothing is "
        "deleted by age or size: retention.ms=-1, retention.bytes=-1); topics that belong to plugins are open to all "
        "until they are deleted and created anew; a topic that was being deleted may be back"
    )
    if not report.execute:
        report.line("nothing has been changed, say --execute to do it")
    return report.execute and not found.refused


def _is_sound(directory: Path) -> bool:
    from leafcuttr.errors import StartError
    from leafcuttr.state.metadata import FILE_NAME

    try:
        records = stored_topics(directory)
    except StartError:
        return False
    return records is not None and (directory / FILE_NAME).stat().st_size > 0


def _put_in_place(directory: Path, found: "RebuiltMetadata") -> None:
    from leafcuttr.log.files.failed_sync import sync_directory
    from leafcuttr.log.layout.suffixes import DAMAGED
    from leafcuttr.state.metadata import FILE_NAME, MetadataStore, TopicRecord

    old = directory / FILE_NAME
    beside = directory / _BESIDE
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    store = MetadataStore.open(beside)
    try:
        store.add_topics(
            TopicRecord(topic.name, topic.id, topic.partitions, _settings(topic)) for topic in found.topics
        )
        if found.next_producer_id:
            store.take_producer_ids(found.next_producer_id)
    finally:
        store.close()
    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{old}{suffix}", _free_name(Path(f"{old}{suffix}{DAMAGED}")))
    for suffix in ("-wal", "-shm"):
        # Before the new file has its name: SQLite would write what it finds beside it into the new file.
        Path(f"{old}{suffix}").unlink(missing_ok=True)
    os.replace(beside / FILE_NAME, old)  # noqa: PTH105
    sync_directory(directory)
    shutil.rmtree(beside)


def _settings(topic: "FoundTopic") -> dict[str, str]:
    from leafcuttr.config.settings import Settings
    from leafcuttr.offline.rebuild import COMPACTED, KEEP_ALL
    from leafcuttr.state.internal_topics import internal_topic

    shape = internal_topic(topic.name, Settings({}))
    if shape is not None:
        return dict(shape.overrides)
    return {**KEEP_ALL, **(COMPACTED if topic.compacted else {})}


def _free_name(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
