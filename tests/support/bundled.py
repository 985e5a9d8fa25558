"""The plugins that come with LeafCuttr, as pyproject.toml lists them: the one list that there is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUNDLED: Final[dict[str, str]] = PROJECT["project"]["entry-points"]["leafcuttr.plugins"]
"""The package of each plugin, by its name."""
FOLDERS: Final = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py"))
"""The packages that are there."""
EXTRAS: Final[dict[str, list[str]]] = PROJECT["project"]["optional-dependencies"]
