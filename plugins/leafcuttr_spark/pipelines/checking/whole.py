"""All checks together, and files that are read and checked."""

from collections.abc import Mapping
from pathlib import Path

from leafcuttr_spark.pipelines.checking.columns import check_columns
from leafcuttr_spark.pipelines.checking.graph import check_graph
from leafcuttr_spark.pipelines.errors import Fault, PipelineFaultsError
from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.pipelines.reading.loading import read_pipeline


def check_pipeline(pipeline: Pipeline) -> list[Fault]:
    """All faults and notes, in the order of lines, without secrets."""
    found = [*check_graph(pipeline)]
    # Where frames are unknown, what is said of their columns would only follow from it.
    found += check_columns(pipeline).faults
    hide = pipeline.secrets.hide
    shown = [Fault(_line(one, pipeline), hide(one.part), hide(one.what), one.note) for one in found]
    return sorted(dict.fromkeys(shown), key=lambda fault: fault.line)


def _line(fault: Fault, pipeline: Pipeline) -> int:
    """The line of the value that a fault begins with the path of, else that of the part."""
    path = fault.what.partition(": ")[0]
    while path:
        if (line := pipeline.places.get((fault.part, path))) is not None:
            return line
        path = path.rpartition(".")[0]
    return fault.line or pipeline.places.get(("", fault.part), 0)


def load_pipeline(
    path: str | Path, variables: Mapping[str, str] | None = None, *, needs_secrets: bool = True
) -> tuple[Pipeline, list[Fault]]:
    """The pipeline of a file, checked, and notes on it. Raises PipelineFaultsError with all that is wrong."""
    pipeline, notes = read_pipeline(path, variables, needs_secrets=needs_secrets)
    found = check_pipeline(pipeline)
    if faults := [fault for fault in found if not fault.note]:
        raise PipelineFaultsError(str(path), faults)
    return pipeline, [*notes, *found]
