"""Which functions can be called in another process, and how that process finds them: by a module and a name in it."""

import inspect
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any, NamedTuple

from leafcuttr.plugins.worker_processes.child import Loading
from leafcuttr_sdk.workers import WorkerTransferError


class FunctionPlace(NamedTuple):
    """Where a function is."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def loading(self) -> Loading:
        """What a process needs to know to import it, as things are now."""
        top = self.module.partition(".")[0]
        spec = getattr(sys.modules.get(top), "__spec__", None)
        by_file = None
        if isinstance(spec, ModuleSpec) and spec.origin is not None and spec.has_location:
            folders = spec.submodule_search_locations
            by_file = top, spec.origin, None if folders is None else list(folders)
        return self.module, self.name, [each for each in sys.path if isinstance(each, str)], by_file


def place_of(function: Callable[..., object]) -> FunctionPlace:
    """Raises WorkerTransferError, in one line, for what is not found again by a module and a name."""
    module: Any = getattr(function, "__module__", None)
    name: Any = getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise WorkerTransferError(
            f"{function!r:.200} has no name in a module: pass a function that a module defines, and its arguments"
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise WorkerTransferError(f"{module}.{name} is an async function: a worker process has no event loop")
    if module == "__main__":
        raise WorkerTransferError(
            f"{name} is defined in __main__, which a worker process cannot import: move it to a module"
        )
    if getattr(sys.modules.get(module), name, None) is not function:
        raise WorkerTransferError(
            f"{module}.{name} is not what the module {module} has under that name: pass a function that is defined at "
            "its top level, neither a lambda, a nested one or a method"
        )
    return FunctionPlace(module, name)
