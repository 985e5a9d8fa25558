"""From a candidate to a module with a `PLUGIN` that this LeafCuttr can run; every way to fail ends in one line.

The line says what is wrong and, where it is known, what to do. Whatever a plugin raises while it is imported is its
own failure, never ours; the traceback is logged at debug level. What it changes of the process is changed back.
"""

import importlib
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Final

from leafcuttr.errors import PluginError, TakesTooLong
from leafcuttr.plugins.limited import LIMIT_S, called
from leafcuttr.plugins.origin import Candidate, module_of_file
from leafcuttr.runtime.frames import package_of
from leafcuttr.runtime.plugin_parts import Part, PartError, call, log_traceback
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.plugin import API_MINOR, API_VERSION, Plugin, StartFailure

_log: Final = logging.getLogger("leafcuttr.plugins")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")


def imported(candidate: Candidate, given: ModuleType | None = None) -> tuple[ModuleType, Plugin]:
    """Its module, unless that is `given`. Raises PluginError: it is not there, raises, takes too long, is no plugin, or
    one for another API version."""

    def load() -> tuple[ModuleType, Plugin]:
        module = given or _module(candidate)
        return module, _plugin(module, candidate)

    try:
        return called(
            lambda: call(Part(candidate.name, "import"), load),
            LIMIT_S,
            package(candidate),
            at_once=candidate.origin.bundled,
        )
    except TakesTooLong as error:
        raise PluginError(f"its import {error}") from None
    except PartError as failed:
        if failed.is_said:
            raise PluginError(failed.why) from None
        log_traceback(failed)
        # One for another version may fail for names that the SDK here does not have: then that is what to say.
        file = _file(candidate)
        said = numbers_in(file) if file else {}
        _check_version(said.get("api_version", API_VERSION), candidate)
        _check_minor(said.get("api_minor", 0), candidate)
        raise PluginError(f"cannot be imported: {failed.why}") from None


def package(candidate: Candidate) -> str:
    """The top-level package of its code, or its file."""
    return candidate.origin.place if candidate.module is None else package_of(candidate.module)


def _module(candidate: Candidate) -> ModuleType:
    if candidate.module is None:
        return _from_file(candidate)
    name = candidate.module
    if not all(part.isidentifier() for part in name.split(".")):
        raise PluginError(f"its entry point names {name}; allowed is a module, as in NAME = package.module")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise PluginError(f"its entry point names the module {name}, which is not there") from None
        raise


def _from_file(candidate: Candidate) -> ModuleType:
    name = module_of_file(candidate.name)
    spec = importlib.util.spec_from_file_location(name, candidate.origin.place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _plugin(module: ModuleType, candidate: Candidate) -> Plugin:
    plugin = getattr(module, "PLUGIN", None)
    if not isinstance(plugin, Plugin):
        what = "no PLUGIN" if plugin is None else f"a PLUGIN that is {kind_of(plugin)}"
        raise PluginError(f"the module {module.__name__} has {what}; it has to be a leafcuttr_sdk.Plugin")
    plugin = Plugin._make(plugin)  # the fields as they are now, whatever a subclass makes of them later
    version: object = plugin.api_version
    if type(version) is not int:
        raise PluginError(f"its api_version is {version!r}; it has to be a number, as {API_VERSION}")
    _check_version(version, candidate)
    minor: object = plugin.api_minor
    if type(minor) is not int:
        raise PluginError(f"its api_minor is {minor!r}; it has to be a number, as {API_MINOR}")
    _check_minor(minor, candidate)
    if not isinstance(plugin.name, str) or not _NAME.match(plugin.name):
        raise PluginError(
            f"{plugin.name!r} cannot be its name: lower-case letters, digits and -, beginning with a letter"
        )
    if plugin.name != candidate.name:
        named = "file" if candidate.module is None else "entry point"
        raise PluginError(f"its {named} calls it {candidate.name}, its PLUGIN {plugin.name}")
    limit_s: object = plugin.hook_limit_s
    if type(limit_s) not in (int, float) or not 0 < plugin.hook_limit_s < inf:
        raise PluginError(f"its hook_limit_s is {limit_s!r}; it has to be a number of seconds")
    modules: object = plugin.modules
    if isinstance(modules, str):
        raise PluginError(f"its modules are the text {modules!r}; they have to be a tuple of names")
    for field in ("stops_start", "optional_hooks"):
        kind = StartFailure if field == "stops_start" else str
        values: object = getattr(plugin, field)
        if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
            raise PluginError(f"its {field} is {values!r}; it has to be a tuple of {kind.__name__}")
    return plugin


def _check_version(version: int, candidate: Candidate) -> None:
    if version == API_VERSION:
        return
    newer, what = version > API_VERSION, candidate.origin.distribution
    if what:
        advice = f"install a newer leafcuttr, or an older {what}" if newer else f"install a newer {what}"
    else:
        advice = (
            "install a newer leafcuttr, or change the file"
            if newer
            else "change the file, or get a newer one"
        )
    raise PluginError(
        f"it was written for version {version} of the plugin API, "
        f"and this LeafCuttr has version {API_VERSION}: {advice}"
    )


def _check_minor(minor: int, candidate: Candidate) -> None:
    if minor <= API_MINOR:
        return
    what = candidate.origin.distribution
    raise PluginError(
        f"it needs version {API_VERSION}.{minor} of the plugin API, and this LeafCuttr has {API_VERSION}.{API_MINOR}: "
        f"install a newer leafcuttr{f', or an older {what}' if what else ', or change the file'}"
    )


def _file(candidate: Candidate) -> str | None:
    """Where the source of the candidate's module is."""
    if candidate.module is None:
        return candidate.origin.place
    try:
        spec = importlib.util.find_spec(candidate.module)
    except (Exception, SystemExit):
        return None
    return spec.origin if spec else None


def numbers_in(file: str) -> dict[str, int]:
    """The numbers that the source gives for `api_version` and `api_minor`, found without running it."""
    import ast

    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {
        node.arg: node.value.value
        for node in reversed(list(ast.walk(tree)))
        if isinstance(node, ast.keyword)
        and node.arg in ("api_version", "api_minor")
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    }


@contextmanager
def process_kept(plugin: str) -> Iterator[None]:
    """For the import of a plugin or one of its hooks: the working directory, below which a relative data directory is,
    and the mask of files that are created are afterwards as before. A line says what was changed; a command that shows
    plugins keeps no log."""
    directory, mask = _directory(), _mask()
    try:
        yield
    finally:
        changed = []
        if directory is not None and _directory() != directory:
            with suppress(OSError):
                os.chdir(directory)
                changed.append("working directory")
        if _mask() != mask:
            os.umask(mask)
            changed.append("umask")
        if changed and _log.hasHandlers():
            _log.warning(
                "plugin %s has changed the %s of the process: changed back", plugin, " and ".join(changed)
            )


def _directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it is no longer there
        return None


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
