"""Where the files of a pipeline are: its checkpoint, and what a run keeps beside Spark's files.

    CHECKPOINT/              Spark's: metadata, offsets, commits, sources, state
    CHECKPOINT/leafcuttr/    status.json, history.jsonl, pipeline.json, start.json, lock

Spark leaves the folder `leafcuttr` alone. Where the checkpoint is no folder of this machine (`s3a://...`), these files
are in the user's state folder, below a name that has a digest of the address.
"""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.model import Pipeline

_OWN: Final = "leafcuttr"


def state_folder() -> Path:
    """Of this user, by the rules of XDG."""
    given = os.environ.get("XDG_STATE_HOME", "")
    root = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return root / "leafcuttr" / "spark"


def checkpoint_of(pipeline: "Pipeline") -> str:
    """An absolute path, which begins at the folder of the pipeline's file; or an address, as it was given."""
    given = pipeline.checkpoint
    if given is None:
        return str(state_folder() / pipeline.name)
    if _is_address(given):
        return given
    return str(Path(os.path.normpath((pipeline.folder / Path(given).expanduser()).absolute())))


def local_path(checkpoint: str) -> Path | None:
    """The folder; None where it is not on this machine."""
    if checkpoint.startswith("file:"):
        return Path("/" + checkpoint.removeprefix("file:").lstrip("/"))
    return None if _is_address(checkpoint) else Path(checkpoint)


def own_folder(checkpoint: str, name: str) -> Path:
    """Where the files of the runs of the pipeline of this name are."""
    local = local_path(checkpoint)
    if local is not None:
        return local / _OWN
    digest = hashlib.sha256(checkpoint.rstrip("/").encode()).hexdigest()[:12]
    return state_folder() / f"{name}.{digest}" / _OWN


def _is_address(text: str) -> bool:
    scheme, colon, _ = text.partition(":")
    return bool(colon) and scheme.isalnum() and len(scheme) > 1 and "/" not in scheme
