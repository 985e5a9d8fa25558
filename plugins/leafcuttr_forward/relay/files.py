"""Files of TOML, merged in their order as kaf-relay merges them: tables key by key, anything else as a whole, the later
file wins. Each value remembers its file."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from leafcuttr_sdk.errors import PluginError

_LARGEST = 16 * 1024 * 1024


class Given(NamedTuple):
    """A value, and the file that has it. Of a list of tables the value is the list as it was read."""

    value: Any
    file: str


Tree: TypeAlias = "dict[str, Given | Tree]"


def read_files(paths: Iterable[str]) -> Tree:
    """Raises PluginError for a file that cannot be read, or is no TOML."""
    merged: Tree = {}
    for path in paths:
        _merge(merged, _read(path), path)
    return merged


def file_of(tree: "Given | Tree") -> str:
    """Of a value, or of the first one below a table; empty for an empty table."""
    if isinstance(tree, Given):
        return tree.file
    return next((found for each in tree.values() if (found := file_of(each))), "")


def _read(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in the name
        raise PluginError(f"{path!r} cannot be read: {error}") from None
    if len(data) > _LARGEST:
        raise PluginError(f"{path} is no configuration: it has more than {_LARGEST >> 20} MiB")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise PluginError(f"{path} is not UTF-8, at byte {error.start}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PluginError(f"{path} is no TOML: {error}") from None


def _merge(into: Tree, found: dict[str, Any], file: str) -> None:
    for name, value in found.items():
        if not isinstance(value, dict):
            into[name] = Given(value, file)
            continue
        below = into.get(name)
        if not isinstance(below, dict):
            below = into[name] = {}
        _merge(below, cast("dict[str, Any]", value), file)
