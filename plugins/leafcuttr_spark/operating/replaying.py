"""Beginning anew at another place: the checkpoint is moved aside, and the new one says where the first run begins."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leafcuttr_spark.operating.checkpoint import read_checkpoint
from leafcuttr_spark.operating.places import own_folder
from leafcuttr_spark.operating.starting import START, by_topic, locked, reads, start_as_json, streams_of
from leafcuttr_spark.pipelines.model import Start

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.model import Pipeline

_AGO: Final = re.compile(r"([0-9]+)(s|m|h|d)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_OFFSET: Final = re.compile(r"([a-zA-Z0-9._-]+):([0-9]+):([0-9]+)")
_LARGEST: Final = (1 << 63) - 1


class PlaceError(ValueError):
    """A place that is none. The message is one line."""


def start_at(text: str, checkpoint: Path, pipeline: "Pipeline", now: datetime) -> Start:
    """The place that a person has written; times without a zone are UTC. Raises PlaceError."""
    text = text.strip()
    if text in ("earliest", "latest"):
        return Start("earliest" if text == "earliest" else "latest")
    if (ago := _AGO.fullmatch(text)) is not None:
        try:
            return _at_time(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        except OverflowError:
            raise PlaceError(f"{text} ago is before all time") from None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if _OFFSET.match(text) is None:
            raise PlaceError(
                f"--from {text!r}: allowed are earliest, latest, a time as 2026-11-20T10:00:00, a duration as 2h, or "
                "TOPIC:PARTITION:OFFSET,..."
            ) from None
        return Start("offsets", offsets=_offsets(text, checkpoint, pipeline))
    return _at_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def begin_anew(checkpoint: Path, start: Start) -> Path | None:
    """Where the checkpoint of before is now; None where there was none. Raises CheckpointTakenError while a run has it,
    OSError."""
    own = own_folder(str(checkpoint), "")
    kept: Path | None = None
    with locked(own):
        if read_checkpoint(checkpoint).query:
            kept = _free_name(checkpoint)
            # The lock moves with its folder, so no run can begin in between but with an empty checkpoint.
            checkpoint.rename(kept)
            own.mkdir(parents=True)
        new = own / f"{START}.new"
        new.write_text(start_as_json(start), encoding="utf-8")
        new.replace(own / START)
    return kept


def _at_time(moment: datetime) -> Start:
    ms = int(moment.timestamp() * 1000)
    if ms < 0:
        raise PlaceError(f"{moment.isoformat()} is before 1970")
    return Start("timestamp", ms)


def _offsets(text: str, checkpoint: Path, pipeline: "Pipeline") -> Mapping[str, Mapping[int, int]]:
    there = read_checkpoint(checkpoint)
    offsets = by_topic(there.offsets)
    streams = streams_of(pipeline)
    for one in text.split(","):
        found = _OFFSET.fullmatch(one.strip())
        if found is None or int(found[3]) > _LARGEST:
            raise PlaceError(f"--from: {one.strip()!r} is not TOPIC:PARTITION:OFFSET")
        if not any(reads(origin, found[1]) for origin in streams.values()):
            raise PlaceError(
                f"--from: no source of {pipeline.name} reads the topic {found[1]}; tables begin where the file says"
            )
        offsets.setdefault(found[1], {})[int(found[2])] = int(found[3])
    for name, origin in streams.items():
        # Spark's own connector keeps its offsets in another form.
        if there.has_begun and not any(reads(origin, topic) for topic in offsets):
            raise PlaceError(
                f"--from: the checkpoint does not say where the source {name} is, so it cannot stay there: name"
                " offsets of its topics too"
            )
    return offsets


def _free_name(checkpoint: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{checkpoint.name}.before-{stamp}"
    number = 0
    while os.path.lexists(found := checkpoint.with_name(f"{name}-{number}" if number else name)):
        number += 1
    return found
