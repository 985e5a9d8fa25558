"""Functions and classes of the user's by their dotted paths: `package.module:name`. Without Spark."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError


def found_by_path(path: str, folder: Path) -> Any:
    """The object of this path, whose module may lie in the pipeline's folder as well. Raises PipelineError."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise PipelineRefusedError(f"{path} is no path: allowed is package.module:name")
    place = str(folder.absolute())
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise PipelineRefusedError(f"there is no module {error.name}, in {place} neither") from None
        raise PipelineRefusedError(f"the module {module_name} cannot be imported: {error}") from error
    except Exception as error:
        raise PipelineError(
            f"the module {module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise PipelineRefusedError(f"the module {module_name} has no {name}")
        found = getattr(found, part)
    return found


def made_by_path(path: str, arguments: Mapping[str, object], folder: Path) -> Any:
    """An instance of the class of this path. Raises PipelineError."""
    class_ = found_by_path(path, folder)
    try:
        return class_(**arguments)
    except TypeError as error:
        raise PipelineRefusedError(f"{path} cannot be made: {error}") from error
