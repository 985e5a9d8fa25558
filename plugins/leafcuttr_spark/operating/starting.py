"""Whether a run may begin, and where: the lock of its checkpoint, what the checkpoint allows, and the start that
`replay` has left.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.checkpoint import Checkpoint
from leafcuttr_spark.operating.fingerprint import changes_between, fingerprint_of, read_fingerprint
from leafcuttr_spark.operating.history import HISTORY, read_history
from leafcuttr_spark.operating.places import checkpoint_of
from leafcuttr_spark.pipelines.model import Pipeline, Source, Start, TopicOrigin

LOCK: Final = "lock"
FINGERPRINT: Final = "pipeline.json"
START: Final = "start.json"

_TRIES: Final = 5
_PAUSE_S: Final = 0.05


class CheckpointTakenError(PluginError):
    """Another run has the checkpoint."""


class EditError(PluginError):
    """The pipeline was changed in a way that its checkpoint does not allow."""


@contextmanager
def locked(own: Path) -> Iterator[None]:
    """Have the checkpoint alone, on this machine. The kernel ends the lock with the process. Raises
    CheckpointTakenError, OSError."""
    own.mkdir(parents=True, exist_ok=True)
    path = own / LOCK
    with path.open("a+") as file:
        if not _lock(file):
            file.seek(0)
            pid = file.read(20).strip() or "unknown"
            raise CheckpointTakenError(
                f"another run has the checkpoint {own.parent} (process {pid}); leafcuttr spark stop ends it"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        # A JVM that was started meanwhile would keep the lock: its descriptor is not passed on (PEP 446).
        yield


def _lock(file: IO[str]) -> bool:
    """Who only wants to know whether it is taken has it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def check_edit(pipeline: Pipeline, checkpoint: Checkpoint | None, own: Path) -> None:
    """Raises EditError where the checkpoint is of another pipeline; else keeps what this one is. OSError as well.
    The checkpoint is None where it is not on this machine: then it has begun if a run here has done a batch."""
    path, now = own / FINGERPRINT, fingerprint_of(pipeline)
    has_begun = bool(read_history(own / HISTORY)) if checkpoint is None else checkpoint.has_begun
    before = read_fingerprint(path) if has_begun else None
    if before is not None and (changes := changes_between(before, now)):
        told = "; ".join(f"{change.part}: {change.what}" for change in changes)
        if checkpoint is None:
            raise EditError(
                f"Spark cannot go on from the checkpoint {checkpoint_of(pipeline)}: {told}. Undo the edit, or begin"
                " anew with another checkpoint in the file"
            )
        raise EditError(
            f"Spark cannot go on from the checkpoint {own.parent}: {told}. Undo the edit, or begin anew: leafcuttr"
            " spark replay FILE --from earliest, or another checkpoint in the file"
        )
    new = path.with_suffix(".new")
    new.write_text(now.as_json(), encoding="utf-8")
    new.replace(path)


# Where to begin


def start_as_json(start: Start) -> str:
    offsets = {topic: {str(number): one for number, one in of.items()} for topic, of in start.offsets.items()}
    return json.dumps({"at": start.at, "timestamp_ms": start.timestamp_ms, "offsets": offsets}) + "\n"


def read_start(path: Path) -> Start | None:
    """None where `replay` has left none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        offsets = {
            str(topic): {int(number): int(one) for number, one in of.items()}
            for topic, of in found["offsets"].items()
        }
        return Start(found["at"], found["timestamp_ms"], offsets)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def begun_at(pipeline: Pipeline, start: Start) -> Pipeline:
    """The pipeline with this begin of all its streams of topics. Of offsets each source gets those of its topics; one
    without any stays as it is. So do tables, which would be without the rows of the records before."""

    def of(source: Source, origin: TopicOrigin) -> Source:
        if start.at != "offsets":
            return replace(source, origin=replace(origin, start=start))
        mine = {topic: offsets for topic, offsets in start.offsets.items() if reads(origin, topic)}
        if not mine:
            return source
        return replace(source, origin=replace(origin, start=Start("offsets", offsets=mine)))

    streams = streams_of(pipeline)
    sources = {
        name: of(source, streams[name]) if name in streams else source
        for name, source in pipeline.sources.items()
    }
    return replace(pipeline, sources=sources)


def streams_of(pipeline: Pipeline) -> dict[str, TopicOrigin]:
    """The origins of sources whose begin can be chosen: topics that are no tables."""
    return {
        name: source.origin
        for name, source in pipeline.sources.items()
        if isinstance(source.origin, TopicOrigin) and source.table is None
    }


def reads(origin: TopicOrigin, topic: str) -> bool:
    """Whether the topic is one of the source."""
    if origin.pattern is None:
        return topic in origin.topics
    with suppress(re.error):
        return re.fullmatch(origin.pattern, topic) is not None
    return False


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for partition, offset in sorted(offsets.items()):
        found.setdefault(partition.topic, {})[partition.partition] = offset
    return found
