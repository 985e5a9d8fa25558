"""From the values that a start was given to the table of plugins: found, imported, checked, registered.

No plugin that fails stops a start. What goes wrong with one is its line in the table, and it is left out.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Final, NamedTuple

from leafcuttr.config.settings import Settings
from leafcuttr.errors import PluginError, TakesTooLong
from leafcuttr.plugins import entry_points, folder
from leafcuttr.plugins.importing import imported, package, process_kept
from leafcuttr.plugins.limited import LIMIT_S, called
from leafcuttr.plugins.loaded import Loaded, PluginState
from leafcuttr.plugins.origin import Candidate, PluginOrigin
from leafcuttr.plugins.table import REQUIRED, Plugins, Required
from leafcuttr.runtime.plugin_parts import Part, PartError, call
from leafcuttr_sdk.plugin import Plugin

DISABLED: Final = "lc.plugins.disabled"
PATH: Final = "lc.plugins.path"
STRICT: Final = "lc.plugins.strict"


class Choice(NamedTuple):
    """What has to be known before plugins are looked for, and so before other settings can be read."""

    disabled: frozenset[str] = frozenset()
    disabled_from: str = "default"
    """Where those names were given."""
    folder: str | None = None
    folder_from: str = "default"
    """Where the folder was given."""
    strict: bool = False
    required: tuple[str, ...] = ()
    required_from: str = "default"
    """Where those names were given."""

    @classmethod
    def of(cls, settings: Settings) -> "Choice":
        return cls(
            frozenset(settings.list(DISABLED)),
            settings.where(DISABLED),
            settings.optional_text(PATH) or None,
            settings.where(PATH),
            settings.bool(STRICT),
            settings.list(REQUIRED),
            settings.where(REQUIRED),
        )


def find_plugins(choice: Choice, given: Sequence[ModuleType] = ()) -> Plugins:
    """Everything that is installed or lies in the folder; ours first, then by name. Of two that clash in a name the
    first one keeps it.

    Modules that are `given` come before all others but ours, in the place of what has their names. What is disabled is
    not imported. Raises StartError for a folder that cannot be listed.
    """
    found = entry_points.candidates()
    if choice.folder is not None:
        found += folder.candidates(choice.folder, choice.folder_from)
    modules = {_given(module, found): module for module in given}
    names = {candidate.name for candidate in modules}
    plugins: list[Loaded] = []
    every = (*modules, *(candidate for candidate in found if candidate.name not in names))
    for candidate in sorted(every, key=lambda one: not one.origin.bundled):
        first = next((one for one in plugins if one.name == candidate.name), None)
        if candidate.name in choice.disabled:
            plugins.append(Loaded.of(candidate, PluginState.DISABLED, f"{DISABLED} names it"))
        elif first is not None:
            why = f"{first.origin} has a plugin of that name too, and that one is taken"
            plugins.append(Loaded.of(candidate, PluginState.FAILED, why))
        else:
            plugins.append(_loaded(candidate, modules.get(candidate)))
    required = Required(choice.required, choice.required_from)
    return Plugins(plugins, strict=choice.strict, required=required, remarks=_mistyped(choice, plugins))


def _mistyped(choice: Choice, found: Sequence[Loaded]) -> list[str]:
    """Names to be left out that are none, but nearly. Others may be there because one file serves several machines."""
    names = {one.name for one in found}
    unknown = sorted(choice.disabled - names)
    if not unknown:
        return []
    import difflib  # used only where a name is mistyped

    return [
        f"{DISABLED} ({choice.disabled_from}) names {name}, which is not installed; did you mean {near[0]}?"
        for name in unknown
        if (near := difflib.get_close_matches(name, names, 1))
    ]


def _given(module: ModuleType, found: Sequence[Candidate]) -> Candidate:
    """A module that is given. One that is installed too is of that distribution."""
    plugin = getattr(module, "PLUGIN", None)
    name = plugin.name if isinstance(plugin, Plugin) else module.__name__
    origin = PluginOrigin(getattr(module, "__file__", None) or module.__name__)
    given = Candidate(name, module.__name__, origin)
    return next((one for one in found if one[:2] == given[:2]), given)


def _loaded(candidate: Candidate, given: ModuleType | None) -> Loaded:
    loaded = Loaded.of(candidate, PluginState.FAILED)
    try:
        with process_kept(candidate.name):
            _load(loaded, candidate, given)
    except PluginError as error:
        loaded.why = str(error)
    else:
        loaded.state = PluginState.OFF
    return loaded


def _load(loaded: Loaded, candidate: Candidate, given: ModuleType | None) -> None:
    module, loaded.plugin = imported(candidate, given)
    from leafcuttr.plugins import registration

    bundled = loaded.origin.bundled
    limit_s = _limit_s(loaded.plugin, bundled=bundled)
    optional = loaded.plugin.optional_hooks
    part = Part(candidate.name, "hooks")
    try:
        hooks = called(
            lambda: call(part, registration.Hooks, candidate.name, module, limit_s, optional),
            limit_s,
            package(candidate),
            at_once=bundled,
        )
    except TakesTooLong as error:
        raise PluginError(f"looking for its hooks {error}") from None
    except PartError as failed:
        raise PluginError(
            failed.why if failed.is_said else f"its hooks cannot be read: {failed.why}"
        ) from None
    settings = hooks.call(registration.SETTINGS, at_once=bundled)
    topic_settings = hooks.call(registration.TOPIC_SETTINGS, at_once=bundled)
    # One without hooks brings nothing into a broker: there is nothing to switch on.
    if loaded.plugin.enabled_by is None and bundled and hooks.names:
        raise PluginError("it has no enabled_by; a bundled plugin is off until a setting switches it on")
    loaded.settings, loaded.topic_settings, loaded.hooks = settings, topic_settings, hooks


def _limit_s(plugin: Plugin, *, bundled: bool) -> float:
    """How long each of its hooks may take."""
    return plugin.hook_limit_s if bundled else min(plugin.hook_limit_s, LIMIT_S)
