"""Names of a package that are imported from its modules when they are first asked for: what its `__getattr__` does."""

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def find(package: str, modules: Mapping[str, str], name: str) -> Any:
    """The value of a name, which the package has from now on. `modules` has the module of each name. Raises
    AttributeError, and ImportError."""
    module = modules.get(name)
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{package}.{module}"), name)
    setattr(sys.modules[package], name, value)
    return value
