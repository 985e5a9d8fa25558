"""From a candidate to a module with a `PLUGIN` that this LeafCuttr can run; every way to fail ends in one line.

The line says what is wrong and, where it is known, what to do. Whatever a plugin raises while it is imported is its
own failure, never ours; the traceback is logged at debug level.
"""

import importlib
import importlib.util
import logging
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Final

from leafcuttr.errors import PluginError
from leafcuttr.plugins.origin import Candidate
from leafcuttr_sdk.plugin import API_VERSION, Plugin

_NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")
_log: Final = logging.getLogger("leafcuttr.plugins")


def imported(candidate: Candidate, given: ModuleType | None = None) -> tuple[ModuleType, Plugin]:
    """Its module, unless that is `given`. Raises PluginError: it is not there, raises, is no plugin, or one for another
    API version."""
    try:
        module = given if given is not None else _module(candidate)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        _log.debug("importing the plugin %s", candidate.name, exc_info=error)
        # One for another version may fail for names that the SDK here does not have: then that is what to say.
        file = _file(candidate)
        version = api_version_in(file) if file else None
        if version is not None:
            _check_version(version, candidate)
        raise PluginError(f"cannot be imported: {described(error, file)}") from None
    return module, _plugin(module, candidate)


def described(error: BaseException, near: str | None = None) -> str:
    """An exception in one line, with the last place in the plugin's own file or folder, if it went through it."""
    if isinstance(error, PluginError):
        return first_line(str(error)) or "PluginError"
    text = f"{type(error).__name__}: {first_line(str(error))}".removesuffix(": ")
    if isinstance(error, SyntaxError) and error.filename:
        return f"{text.partition(' (')[0]} ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if near and frame.filename == near]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else ""


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
    # A name of its own: a file may be called as a module that others import.
    name = f"leafcuttr_plugin_{candidate.name.replace('-', '_')}"
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
        what = "no PLUGIN" if plugin is None else f"a PLUGIN that is a {type(plugin).__name__}"
        raise PluginError(f"the module {module.__name__} has {what}; it has to be a leafcuttr_sdk.Plugin")
    version: object = plugin.api_version
    if type(version) is not int:
        raise PluginError(f"its api_version is {version!r}; it has to be a number, as {API_VERSION}")
    _check_version(version, candidate)
    if not isinstance(plugin.name, str) or not _NAME.match(plugin.name):
        raise PluginError(
            f"{plugin.name!r} cannot be its name: lower-case letters, digits and -, beginning with a letter"
        )
    if plugin.name != candidate.name:
        named = "file" if candidate.module is None else "entry point"
        raise PluginError(f"its {named} calls it {candidate.name}, its PLUGIN {plugin.name}")
    modules: object = plugin.modules
    if isinstance(modules, str):
        raise PluginError(f"its modules are the text {modules!r}; they have to be a tuple of names")
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


def _file(candidate: Candidate) -> str | None:
    """Where the source of the candidate's module is."""
    if candidate.module is None:
        return candidate.origin.place
    try:
        spec = importlib.util.find_spec(candidate.module)
    except (Exception, SystemExit):
        return None
    return spec.origin if spec else None


def api_version_in(file: str) -> int | None:
    """The number that the source gives for `api_version`, found without running it."""
    import ast

    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "api_version"
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is int
        ):
            return node.value.value
    return None
