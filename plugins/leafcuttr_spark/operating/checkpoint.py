"""What Spark's checkpoint says: how far a query has come. Read without Spark, from a folder of this machine.

    metadata     {"id": "b0a3c1d2-..."}, of the query
    offsets/17   `v1`, a line about the batch, then a line for each source: written before the batch begins
    commits/17   `v1`, a line: written once the batch is done

A source of ours has its positions in its line (`leafcuttr_spark.source.offsets`).
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.source.offsets import positions_of

_MOST: Final = 64 << 20
"""Bytes of a file: a line has each partition of a source."""


class Checkpoint(NamedTuple):
    """How far the query has come."""

    query: str
    """The id of the query; empty where it has never begun."""
    planned: int | None = None
    """The last batch that has begun."""
    done: int | None = None
    """The last batch that is done."""
    offsets: Mapping[TopicPartition, int] = {}
    """What the last batch that is done has read up to, of sources of ours."""
    watermark_ms: int | None = None
    at_ms: int | None = None
    """When the last batch that is done began."""

    @property
    def has_begun(self) -> bool:
        """Whether the query has read anything: then it goes on from here."""
        return self.planned is not None


def read_checkpoint(folder: Path) -> Checkpoint:
    """Where there is none, one that has never begun. What another version of Spark has written in another way is left
    out."""
    query = ""
    with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
        query = str(json.loads(_text(folder / "metadata"))["id"])
    planned, done = _last(folder / "offsets"), _last(folder / "commits")
    if done is None:
        return Checkpoint(query, planned)
    lines = _lines(folder / "offsets" / str(done))
    about = _json(lines[1]) if len(lines) > 1 else None
    about = about if isinstance(about, dict) else {}
    offsets: dict[TopicPartition, int] = {}
    for line in lines[2:]:
        with suppress(OptionError):
            offsets |= positions_of(_json(line)).offsets
    watermark = _number(about.get("batchWatermarkMs"))
    return Checkpoint(
        query, planned, done, offsets, watermark or None, _number(about.get("batchTimestampMs"))
    )


def _last(folder: Path) -> int | None:
    try:
        return max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=None)
    except OSError:
        return None


def _lines(path: Path) -> list[str]:
    try:
        return _text(path).splitlines()
    except (OSError, ValueError):
        return []


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST).decode()


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> int | None:
    return value if type(value) is int else None
