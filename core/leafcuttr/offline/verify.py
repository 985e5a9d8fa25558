"""`leafcuttr verify`: reads every file of a data directory that is not in use, and says what is wrong with it.

Nothing is changed here, and nothing is repaired: see `leafcuttr.offline.repair`. What SQLite holds comes in from the
caller as `topics`, because the metadata belongs to a higher layer. Segments are `leafcuttr.offline.verify_segment`.

A directory whose broker was killed is not damaged: what its next start will mend is reported as a note.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.log.files.failed_sync import MARK, is_marked
from leafcuttr.log.layout.checkpoints import (
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_leader_epochs,
    read_offsets,
    read_topic_id,
    uuid_text,
)
from leafcuttr.log.layout.directory import FORMAT_FILE, FORMAT_VERSION, META_FILE
from leafcuttr.log.layout.epochs import EpochsWalk
from leafcuttr.log.layout.partition_state import STATE_FILE, PartitionState, StateFile, read_state
from leafcuttr.log.layout.suffixes import CLEAN_SHUTDOWN
from leafcuttr.log.producers.snapshot import DamagedSnapshotError, read_snapshot
from leafcuttr.offline.findings import FileFinding, Severity
from leafcuttr.offline.placing import EVERYTHING, Placing
from leafcuttr.offline.verify_segment import SegmentChecked, SegmentRules, check_segment
from leafcuttr.offline.verify_transactions import TransactionsWalk
from leafcuttr_sdk import TopicPartition

_PARTITION: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_SEGMENT: Final = re.compile(r"\d{20}")


class KnownTopic(NamedTuple):
    """What the metadata says of a topic."""

    id: bytes
    partitions: int
    compact: bool


@dataclass(slots=True)
class Verified:
    """What was read, and what is wrong with it."""

    directory: Path
    clean_stop: bool = False
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    findings: list[FileFinding] = field(default_factory=list)
    sure_below: dict[TopicPartition, int] = field(default_factory=dict)
    """Per partition, the offset below which no loss of power can have changed the files."""
    leader_epochs: dict[Path, list[tuple[int, int]]] = field(default_factory=dict)
    """Per partition folder, what its `leader-epoch-checkpoint` should say."""
    wrong_epochs: set[Path] = field(default_factory=set)
    """The partition folders in which batches have another leader epoch."""

    @property
    def problems(self) -> list[FileFinding]:
        return [finding for finding in self.findings if finding.severity is Severity.PROBLEM]


def partition_folders(directory: Path) -> dict[TopicPartition, Path]:
    """The folders that are named as partitions, in order of name. Those waiting for deletion are none."""
    found = {}
    for folder in sorted(directory.iterdir()):
        match = _PARTITION.fullmatch(folder.name)
        if match is not None and folder.is_dir():
            found[TopicPartition(match["topic"], int(match["partition"]))] = folder
    return found


def segment_offsets(folder: Path) -> list[int]:
    """The base offsets of the segments in a partition's folder, ascending."""
    return sorted(int(file.stem) for file in folder.glob("*.log") if _SEGMENT.fullmatch(file.stem))


def verify_directory(
    directory: Path,
    *,
    deep: bool = False,
    online: bool = False,
    topics: Mapping[str, KnownTopic] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verified:
    """Check every partition folder of `directory` and the files beside them.

    `deep` decodes every record too. `online` forgives what only a running broker explains: files that vanish
    while they are read, and a last batch that is half written. `topics` None means that the metadata is not known.
    `progress` gets (bytes done, bytes in all). Raises OSError where a file cannot be read.
    """
    return _Verification(directory, deep, online, topics, progress).run()


class _Verification:
    """One run over one directory."""

    def __init__(
        self,
        directory: Path,
        deep: bool,
        online: bool,
        topics: Mapping[str, KnownTopic] | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.directory = directory
        self.deep = deep
        self.online = online
        self.topics = topics
        self.progress = progress
        self.result = Verified(directory)
        self.total = 0
        self.state: StateFile | None = None
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}

    def run(self) -> Verified:
        began = time.perf_counter()
        folders = partition_folders(self.directory)
        self.total = sum(_size(file) for folder in folders.values() for file in folder.glob("*.log"))
        self._check_identity()
        self._read_checkpoints()
        ends = {}
        for key, folder in folders.items():
            try:
                ends[key] = self._check_partition(key, folder)
            except FileNotFoundError:
                if not self.online:
                    raise
        self._check_checkpoints(ends)
        self._check_topics(folders)
        self.result.seconds = time.perf_counter() - began
        return self.result

    def problem(self, path: Path, text: str, position: int | None = None) -> None:
        self.result.findings.append(FileFinding(Severity.PROBLEM, path, position, text))

    def note(self, path: Path, text: str, position: int | None = None) -> None:
        self.result.findings.append(FileFinding(Severity.NOTE, path, position, text))

    def _advance(self, read: int) -> None:
        self.result.bytes += read
        if self.progress is not None:
            self.progress(self.result.bytes, max(self.total, self.result.bytes))

    # The files of the directory itself

    def _check_identity(self) -> None:
        path = self.directory / FORMAT_FILE
        if path.exists():
            text = path.read_text("ascii", "replace").strip()
            name, _, version = text.partition("=")
            if name != "version" or not version.isdecimal():
                self.problem(path, f"does not say version=N but {text[:40]!r}")
            elif int(version) > FORMAT_VERSION:
                self.problem(
                    path, f"format {version} is newer than this LeafCuttr, which knows {FORMAT_VERSION}"
                )
        path = self.directory / META_FILE
        if not path.exists():
            self.note(path, "is missing; the next start makes one")
        elif "cluster.id=" not in path.read_text("latin-1"):
            self.problem(path, "names no cluster.id")

    def _read_checkpoints(self) -> None:
        self.recovery_points = self._offsets(RECOVERY_POINTS)
        self.log_starts = self._offsets(LOG_START_OFFSETS)
        self._offsets(HIGH_WATERMARKS)
        path = self.directory / STATE_FILE
        self.state = read_state(self.directory)
        if self.state is None and path.exists():
            self.note(path, "cannot be used; the next start recovers from the recovery points")
        # A starting broker removes the mark, so what the state file says of a clean stop may be of an earlier one.
        marked = (self.directory / CLEAN_SHUTDOWN).exists()
        self.result.clean_stop = marked and (self.state is None or self.state.clean)

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self.directory / name)
        except DamagedCheckpointError as error:
            self.problem(self.directory / name, str(error).partition(": ")[2])
            return {}

    def _check_checkpoints(self, ends: Mapping[TopicPartition, int]) -> None:
        if self.online:
            return
        for name, offsets, what in (
            (RECOVERY_POINTS, self.recovery_points, "recovery point"),
            (LOG_START_OFFSETS, self.log_starts, "log start offset"),
        ):
            for key, offset in offsets.items():
                if key in ends and offset > ends[key]:
                    text = f"{what} {offset} of {key.topic}-{key.partition} is behind its log end offset {ends[key]}"
                    self.problem(self.directory / name, text)

    def _check_topics(self, folders: Mapping[TopicPartition, Path]) -> None:
        if self.topics is None:
            return
        for name, topic in self.topics.items():
            for partition in range(topic.partitions):
                key = TopicPartition(name, partition)
                if key in folders:
                    continue
                if self._had_records(key, topic):
                    self.problem(self.directory / str(key), "the metadata has it, the folder is missing")
                else:
                    self.note(
                        self.directory / str(key), "is empty and has no folder yet; the next start makes it"
                    )
        for key, folder in folders.items():
            known = self.topics.get(key.topic)
            if known is None or key.partition >= known.partitions:
                self.note(
                    folder, "the metadata does not know it; `leafcuttr repair --adopt` takes a folder in"
                )

    def _had_records(self, key: TopicPartition, topic: KnownTopic) -> bool:
        state = self._state_of(key, topic)
        if state is not None and state.log_end_offset:
            return True
        return bool(self.recovery_points.get(key))

    def _state_of(self, key: TopicPartition, topic: KnownTopic | None) -> PartitionState | None:
        """What the soft checkpoint says of a partition: nothing, where that is one of an earlier topic of its name."""
        state = None if self.state is None else self.state.partitions.get(key)
        if state is None or (topic is not None and state.topic_id != topic.id):
            return None
        return state

    # One partition

    def _check_partition(self, key: TopicPartition, folder: Path) -> int:
        """Check everything in the folder and return the log end offset."""
        self.result.partitions += 1
        known = self.topics.get(key.topic) if self.topics is not None else None
        offsets = segment_offsets(folder)
        if not offsets and known is not None and not self._had_records(key, known):
            # A start that was making the folder of an empty partition again was killed.
            self.note(folder, "is empty and has no segment yet; the next start makes it")
            return 0
        self._check_topic_id(folder, known)
        if not offsets:
            self.problem(folder, "has no segment")
            return 0
        state = self._state_of(key, known)
        gaps = Severity.PROBLEM if known is not None and not known.compact else Severity.NOTE
        expected = -1
        transactions = TransactionsWalk(
            folder, offsets[0], self.result.findings.append, exact=known is not None and not known.compact
        )
        checked: list[SegmentChecked] = []
        point = self.recovery_points.get(key, 0)
        sure = self._sure_below(key, folder)
        checkpoint = self._leader_epochs(folder)
        epochs = EpochsWalk(checkpoint or ())
        for number, base_offset in enumerate(offsets):
            log = folder / f"{base_offset:020d}.log"
            if 0 <= expected < base_offset:
                self.result.findings.append(
                    FileFinding(
                        gaps,
                        log,
                        None,
                        f"offsets {expected} to {base_offset - 1} before this segment are not there",
                    )
                )
            last = base_offset == offsets[-1]
            following = None if last else offsets[number + 1]
            rules = SegmentRules(
                expected, gaps, self._open_tail(state, base_offset) if last else None, self.deep,
                Placing(following, known is None or known.compact, sure), point,
            )  # fmt: skip
            one = check_segment(
                log, base_offset, rules, self.result.findings.append, self._advance, transactions, epochs
            )
            checked.append(one)
            expected = max(expected, one.next_offset)
            self.result.segments += 1
            self.result.batches += one.batches
            self.result.records += one.records
        self._check_state(folder, state, checked)
        self._check_snapshots(folder, expected)
        self._check_leader_epochs(folder, expected, checkpoint, epochs)
        return expected

    def _sure_below(self, key: TopicPartition, folder: Path) -> int:
        sure = self.recovery_points.get(key, 0)
        if is_marked(folder):
            text = f"a sync has failed; the next start reads the log from the disk, from offset {sure} on"
            self.note(folder / MARK, text)
        elif self.result.clean_stop or self._same_boot():
            sure = EVERYTHING
        self.result.sure_below[key] = sure
        return sure

    def _open_tail(self, state: PartitionState | None, base_offset: int) -> int | None:
        """From where on the active segment may be ragged, because its broker was killed or is running."""
        if self.result.clean_stop and not self.online:
            return None
        for segment in state.segments if state is not None else ():
            # What the soft checkpoint has seen whole was whole; after a loss of power only the synced part is sure.
            if segment.base_offset == base_offset and self._same_boot():
                return segment.size
        return 0

    def _same_boot(self) -> bool:
        from leafcuttr.log.layout.partition_state import boot_id

        return self.state is not None and self.state.boot_id == boot_id() != ""

    def _check_topic_id(self, folder: Path, known: KnownTopic | None) -> None:
        path = folder / PARTITION_METADATA
        try:
            topic_id = read_topic_id(path)
        except DamagedCheckpointError as error:
            self.problem(path, str(error).partition(": ")[2])
            return
        if topic_id is None:
            self.problem(path, "is missing")
        elif known is not None and topic_id != known.id:
            self.problem(path, f"topic id {uuid_text(topic_id)}, but the metadata says {uuid_text(known.id)}")

    def _check_state(self, folder: Path, state: PartitionState | None, checked: list[SegmentChecked]) -> None:
        """After a clean stop the state file names every segment with its size."""
        if state is None or not self.result.clean_stop or self.online:
            return
        recorded = {segment.base_offset: segment.size for segment in state.segments}
        found = {
            segment.base_offset: _size(folder / f"{segment.base_offset:020d}.log") for segment in checked
        }
        path = self.directory / STATE_FILE
        if recorded != found:
            self.problem(path, f"says that {folder.name} has segments of {recorded} bytes, there are {found}")
        elif checked and state.log_end_offset != checked[-1].next_offset:
            text = f"says that {folder.name} ends at {state.log_end_offset}, it ends at {checked[-1].next_offset}"
            self.problem(path, text)

    def _check_snapshots(self, folder: Path, end: int) -> None:
        for path in sorted(folder.glob("*.snapshot")):
            try:
                read_snapshot(path)
            except DamagedSnapshotError as error:
                self.problem(path, str(error))
                continue
            if path.stem.isdecimal() and int(path.stem) > end and not self.online:
                self.problem(path, f"is of an offset behind the log end offset {end}")

    def _leader_epochs(self, folder: Path) -> list[tuple[int, int]] | None:
        """The lines of the checkpoint; None if it cannot be read, which is reported."""
        try:
            return read_leader_epochs(folder / LEADER_EPOCHS)
        except DamagedCheckpointError as error:
            self.problem(folder / LEADER_EPOCHS, str(error).partition(": ")[2])
            return None

    def _check_leader_epochs(
        self, folder: Path, end: int, checkpoint: list[tuple[int, int]] | None, walk: EpochsWalk
    ) -> None:
        path = folder / LEADER_EPOCHS
        judged = walk.judge()
        self.result.leader_epochs[folder] = judged.epochs
        for run, due in judged.wrong:
            self.result.wrong_epochs.add(folder)
            more = f" (and {run.batches - 1} batches behind it)" if run.batches > 1 else ""
            text = f"leader epoch {run.epoch}, {due} is due{more}; `leafcuttr repair --execute` puts it right"
            self.problem(run.log, text, run.position)
        if checkpoint is None:
            return
        if checkpoint and checkpoint[-1][1] > end and not self.online:
            text = f"epoch {checkpoint[-1][0]} starts at {checkpoint[-1][1]}, behind the log end offset {end}"
            self.problem(path, text)
        elif judged.checkpoint_wrong and not self.online:
            epoch, start = judged.epochs[-1] if judged.epochs else (0, 0)
            self.problem(path, f"does not say that epoch {epoch} starts at {start}, as the batches do")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
