"""Which of the installed plugins run in the broker of a test, and on which ports.

Of the plugins that are on once they are installed only those run that the test names, by its `plugins` or by one of
their settings; a test that sets `lc.plugins.disabled` has chosen by itself. The listeners of all that run take free
ports where the test gives none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

from leafcuttr_sdk.settings import Setting, Type, Value

if TYPE_CHECKING:
    from leafcuttr.plugins.origin import Candidate

DISABLED: Final = "lc.plugins.disabled"
_OWN: Final = "lc.plugin."
_HOOK: Final = "leafcuttr_register_settings"
# What `listener_settings` declares beside the port. A port without them is that of a peer, and nobody's to choose.
_LISTENER: Final = ("host", "ssl.keystore.location", "ssl.client.auth")


def settings_for(plugins: Sequence[ModuleType | str], settings: Mapping[str, Value]) -> dict[str, Value]:
    """What a broker of tests has beside `settings`: the installed plugins that it leaves out, and a port of 0 for each
    listener of the others. `plugins` are modules, or names of installed plugins. Raises LookupError for a name that is
    not installed."""
    from leafcuttr.plugins.entry_points import candidates

    installed = candidates()
    modules = [one for one in plugins if isinstance(one, ModuleType)]
    names = {name_of(one) for one in modules} | _installed(plugins, installed)
    left_out = [
        one.name
        for one in installed
        # A bundled one is off until one of its settings switches it on.
        if not one.origin.bundled and one.name not in names and not _is_given(one.name, settings)
    ]
    chosen: dict[str, Value] = {} if DISABLED in settings else {DISABLED: tuple(left_out)}
    out = _names_in(settings.get(DISABLED, tuple(left_out)))
    given = {name_of(one) for one in modules}
    running = [*modules, *filter(None, (_module(one) for one in installed if one.name not in given | out))]
    for module in running:
        chosen |= {name: 0 for name in listener_ports(module) if name not in settings}
    return chosen


def name_of(module: ModuleType) -> str:
    """The plugin's name, of a module that has a PLUGIN."""
    return getattr(getattr(module, "PLUGIN", None), "name", module.__name__)


def listener_ports(module: ModuleType) -> list[str]:
    """The settings of a plugin's module that are ports to listen on, of those that are open by default."""
    hook = cast("Callable[[], Iterable[Setting]] | None", getattr(module, _HOOK, None))
    try:
        declared = {setting.name: setting for setting in hook()} if hook is not None else {}
    except (Exception, SystemExit):
        return []  # the broker names it when it starts
    return [
        name
        for name, setting in declared.items()
        if setting.type is Type.INT
        and isinstance(setting.default, int)
        and setting.default > 0
        and all(f"{name.removesuffix('port')}{other}" in declared for other in _LISTENER)
        and name.endswith(".port")
    ]


def _installed(plugins: Sequence[ModuleType | str], installed: "Sequence[Candidate]") -> set[str]:
    """The names among `plugins`."""
    known = {one.name for one in installed}
    for name in plugins:
        if isinstance(name, str) and name not in known:
            near = get_close_matches(name, known, 1)
            hint = (
                f"did you mean {near[0]}?" if near else f"installed are {', '.join(sorted(known)) or 'none'}"
            )
            raise LookupError(f"no plugin {name} is installed: {hint}")
    return {name for name in plugins if isinstance(name, str)}


def _is_given(plugin: str, settings: Mapping[str, Value]) -> bool:
    return any(name.startswith(f"{_OWN}{plugin}.") for name in settings)


def _names_in(value: Value) -> set[str]:
    names = value.split(",") if isinstance(value, str) else value
    return {name.strip() for name in names} if isinstance(names, list | tuple) else set()


def _module(candidate: "Candidate") -> ModuleType | None:
    """None for one that cannot be imported: the broker says why when it starts."""
    from leafcuttr.errors import PluginError
    from leafcuttr.plugins.importing import imported

    try:
        return imported(candidate)[0]
    except PluginError:
        return None
