"""All checks together, and files that are read and checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from leafcuttr_spark.pipelines.checking.columns import SourceColumns, check_columns
from leafcuttr_spark.pipelines.checking.expressions import Columns
from leafcuttr_spark.pipelines.checking.graph import check_graph
from leafcuttr_spark.pipelines.errors import Fault, PipelineFaultsError
from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.pipelines.reading.loading import read_pipeline


def check_pipeline(pipeline: Pipeline) -> list[Fault]:
    """All faults and notes, in the order of lines, without secrets."""
    return check_all(pipeline)[0]


def check_all(
    pipeline: Pipeline, sources: SourceColumns | None = None
) -> tuple[list[Fault], Mapping[str, Columns]]:
    """The same, and the columns of all frames. `sources` is that of `check_columns`."""
    checked = check_columns(pipeline, sources)
    # Where frames are unknown, what is said of their columns would only follow from it.
    found = [*check_graph(pipeline), *checked.faults]
    hide = pipeline.secrets.hide
    shown = [Fault(_line(one, pipeline), hide(one.part), hide(one.what), one.note) for one in found]
    return sorted(dict.fromkeys(shown), key=lambda fault: fault.line), checked.frames


def _line(fault: Fault, pipeline: Pipeline) -> int:
    """The line of the value that a fault begins with the path of, else that of the part."""
    path = fault.what.partition(": ")[0]
    while path:
        if (line := pipeline.places.get((fault.part, path))) is not None:
            return line
        path = path.rpartition(".")[0]
    return fault.line or pipeline.places.get(("", fault.part), 0)


class Loaded(NamedTuple):
    """The pipeline of a file, checked, notes on it, and the columns of all frames."""

    pipeline: Pipeline
    notes: list[Fault]
    frames: Mapping[str, Columns]


def load_pipeline(
    path: str | Path,
    variables: Mapping[str, str] | None = None,
    *,
    needs_secrets: bool = True,
    sources: SourceColumns | None = None,
) -> Loaded:
    """Read a file, and check what it says. `variables` win over those of the file; `sources` is that of
    `check_columns`. Raises PipelineFaultsError with all that is wrong."""
    pipeline, notes = read_pipeline(path, variables, needs_secrets=needs_secrets)
    found, frames = check_all(pipeline, sources)
    if faults := [fault for fault in found if not fault.note]:
        raise PipelineFaultsError(str(path), faults)
    return Loaded(pipeline, [*notes, *found], frames)
