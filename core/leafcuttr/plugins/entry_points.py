"""The entry points of the group `leafcuttr.plugins`, of everything that is installed.

`importlib.metadata` would parse the entry points of every distribution, at every start. Here they are read, and parsed
only where the group's name occurs: a fifth of the time, and none of its imports (`tests/plugins/test_cost.py`). It
finds the same: folders on `sys.path` with `*.dist-info` or `*.egg-info`, editable installs among them, the first one
of a name. What is no folder (a zip file) is left to `importlib.metadata`.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Final

from leafcuttr.plugins.origin import Candidate, PluginOrigin

GROUP: Final = "leafcuttr.plugins"
_GROUP: Final = GROUP.encode()
_METADATA: Final = (".dist-info", ".egg-info")
_SEPARATORS: Final = re.compile(r"[-_.]+")


def candidates(path: Sequence[str] | None = None) -> list[Candidate]:
    """Every entry point of the group, ours first, then by name of distribution. `path` is `sys.path` if left out."""
    found: list[Candidate] = []
    seen: set[str] = set()
    for folder in sys.path if path is None else path:
        for origin, name, value in _in_folder(folder or ".", seen):
            found.append(Candidate(name, value, origin))
    return sorted(found, key=lambda one: (not one.origin.bundled, one.origin.distribution or "", one.name))


def parse(text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of the group's lines in an entry_points.txt."""
    inside = False
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line:
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _in_folder(folder: str, seen: set[str]) -> Iterator[tuple[PluginOrigin, str, str]]:
    try:
        with os.scandir(folder) as entries:
            folders = [
                (entry.path, entry.name.rpartition(".")[0])
                for entry in entries
                if entry.name.endswith(_METADATA)
            ]
    except NotADirectoryError:
        yield from _by_importlib(folder, seen)
        return
    except OSError:
        return
    for metadata, stem in folders:
        # The name without reading the file: `Acme_Plugin-1.0.dist-info`, also without a version in `.egg-info`.
        key = _key(stem.partition("-")[0])
        if key not in seen:
            seen.add(key)
            yield from _of(metadata)


def _of(metadata: str) -> Iterator[tuple[PluginOrigin, str, str]]:
    # There may be hundreds, at every start, and hardly any of them has a plugin: no `Path`, no text before one has.
    try:
        with FileIO(f"{metadata}/entry_points.txt") as file:
            raw = file.read()
    except OSError:
        return
    if _GROUP not in raw:
        return
    if lines := list(parse(raw.decode("utf-8", "replace"))):
        origin = _origin(Path(metadata))
        yield from ((origin, name, value) for name, value in lines)


def _origin(metadata: Path) -> PluginOrigin:
    """Name and version as the metadata spells them, else as the folder does."""
    name, _, version = metadata.stem.partition("-")
    found: dict[str, str] = {}
    for file in ("METADATA", "PKG-INFO"):
        try:
            with (metadata / file).open(encoding="utf-8", errors="replace") as lines:
                found = dict(_headers(lines))
        except OSError:
            continue
        break
    version = found.get("version", version.partition("-")[0])
    return PluginOrigin(str(metadata.parent), found.get("name", name), version or None)


def _headers(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if not line.strip():
            return
        key, colon, value = line.partition(":")
        if colon and key.lower() in ("name", "version"):
            yield key.lower(), value.strip()


def _by_importlib(place: str, seen: set[str]) -> Iterator[tuple[PluginOrigin, str, str]]:
    from importlib.metadata import distributions

    for distribution in distributions(path=[place]):
        name = distribution.name
        if _key(name) in seen:
            continue
        seen.add(_key(name))
        for entry in distribution.entry_points.select(group=GROUP):
            yield PluginOrigin(place, name, distribution.version), entry.name, entry.value


def _key(name: str) -> str:
    """One spelling for all that are the same name (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()
