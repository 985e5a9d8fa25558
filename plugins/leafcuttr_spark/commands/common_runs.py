"""What commands about runs have in common: where the files of a pipeline's runs are."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from leafcuttr_spark.commands.common import load

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.model import Pipeline


class PipelinePlace(NamedTuple):
    """A pipeline, its checkpoint, and the folder with what its runs keep beside it."""

    pipeline: "Pipeline"
    checkpoint: str
    local: Path | None
    """The checkpoint as a folder of this machine."""
    own: Path


def place_of(file: str, variables: dict[str, str], *, needs_secrets: bool = False) -> PipelinePlace:
    """A file that is wrong ends the command."""
    from leafcuttr_spark.operating.places import checkpoint_of, local_path, own_folder

    pipeline = load(file, variables, needs_secrets=needs_secrets, with_registry=False).pipeline
    checkpoint = checkpoint_of(pipeline)
    return PipelinePlace(pipeline, checkpoint, local_path(checkpoint), own_folder(checkpoint, pipeline.name))
