"""What the hooks of one plugin return: the only module that imports pluggy.

Each plugin has a manager of its own, so that what a hook returns is known to be that plugin's, and one that raises
takes no other with it. The specifications are the functions of `leafcuttr_sdk.hooks`. A plugin's functions need no
decorator: every function of its module whose name begins with `leafcuttr_` is a hook.
"""

import inspect
import logging
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pluggy

import leafcuttr_sdk
from leafcuttr.errors import PluginError
from leafcuttr.plugins.importing import described, first_line
from leafcuttr_sdk import hooks

if TYPE_CHECKING:
    from pluggy import HookimplOpts, HookspecOpts

PREFIX: Final = "leafcuttr_"

SETTINGS: Final = "leafcuttr_register_settings"
TOPIC_SETTINGS: Final = "leafcuttr_register_topic_settings"
SERVICES: Final = "leafcuttr_register_services"
RECORD_FILTERS: Final = "leafcuttr_register_record_filters"
PRODUCE_VALIDATORS: Final = "leafcuttr_register_produce_validators"
RECORD_FORMATS: Final = "leafcuttr_register_record_formats"
CLI_COMMANDS: Final = "leafcuttr_register_cli_commands"
HEALTH_CHECKS: Final = "leafcuttr_register_health_checks"
METRICS: Final = "leafcuttr_register_metrics"
ADMIN_ROUTES: Final = "leafcuttr_register_admin_routes"

RETURNS: Final[dict[str, str]] = {
    name: hook.__annotations__["return"].removeprefix("Iterable[").removesuffix("]")
    for name, hook in vars(hooks).items()
    if name.startswith(PREFIX)
}
"""Every hook that the SDK documents, and the class of the SDK that each thing it returns is of."""

_TEXTS: Final = ("name", "path", "summary")
_FUNCTIONS: Final = ("make", "load", "look", "read", "handler", "open")
"""Fields that things of several kinds have."""

_log: Final = logging.getLogger("leafcuttr.plugins")


class _Manager(pluggy.PluginManager):
    """Takes functions by their names; pluggy's own takes those that carry a marker."""

    def parse_hookspec_opts(self, module_or_class: object, name: str) -> "HookspecOpts | None":
        if not name.startswith(PREFIX):
            return None
        return {
            "firstresult": False,
            "historic": False,
            "warn_on_impl": None,
            "warn_on_impl_args": None,
        }

    def parse_hookimpl_opts(self, plugin: object, name: str) -> "HookimplOpts | None":
        if not name.startswith(PREFIX) or not inspect.isroutine(getattr(plugin, name)):
            return None
        return {
            "wrapper": False,
            "hookwrapper": False,
            "optionalhook": False,
            "tryfirst": False,
            "trylast": False,
            "specname": None,
        }


class Hooks:
    """The hooks of one plugin's module. Raises PluginError where one is none, or takes what is not given."""

    def __init__(self, module: ModuleType) -> None:
        self.file: Final[str | None] = getattr(module, "__file__", None)
        self._manager = _Manager("leafcuttr")
        self._manager.add_hookspecs(hooks)
        try:
            self._manager.register(module)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(self._refusal(module, error)) from None
        callers = self._manager.get_hookcallers(module) or []
        self.names: Final = tuple(sorted(caller.name for caller in callers))
        """Those that it has."""

    def call(self, name: str, **arguments: object) -> tuple[Any, ...]:
        """What the hook returned, checked: instances of the class in `RETURNS`. Empty if the plugin has it not.

        Raises PluginError, one line, for whatever the hook raises and for what is of another type.
        """
        if name not in self.names:
            return ()
        try:
            # pluggy leaves None out of the results.
            returned = [*getattr(self._manager.hook, name)(**arguments), None][0]
            return _checked(name, returned)
        except PluginError as error:
            raise PluginError(f"{name}: {first_line(str(error))}") from None
        except (Exception, SystemExit) as error:
            _log.debug("calling %s", name, exc_info=error)
            raise PluginError(f"{name} raised {described(error, self.file)}") from None

    def _refusal(self, module: ModuleType, error: pluggy.PluginValidationError) -> str:
        for name in dir(module):
            if not name.startswith(PREFIX) or not inspect.isroutine(getattr(module, name)):
                continue
            if name not in RETURNS:
                import difflib  # of use only to who has mistyped a name

                near = difflib.get_close_matches(name, RETURNS, 1, cutoff=0)
                return f"{name} is not a hook; did you mean {near[0]}?"
            takes = set(inspect.signature(getattr(hooks, name)).parameters)
            wrong = [one for one in inspect.signature(getattr(module, name)).parameters if one not in takes]
            if wrong:
                allowed = f"only {', '.join(sorted(takes))}" if takes else "no arguments"
                return f"{name} wants {', '.join(wrong)}; it can have {allowed}"
        return first_line(str(error))


def _checked(hook: str, returned: object) -> tuple[Any, ...]:
    """What a hook returned, as a tuple of what it should return. Raises PluginError; and what an iterator raises."""
    name = RETURNS[hook]
    expected = getattr(leafcuttr_sdk, name)
    # A NamedTuple can be iterated too: the person forgot the comma or the brackets.
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes) or _is(returned, expected):
        close = getattr(returned, "close", None)
        if inspect.iscoroutine(returned) and close is not None:
            close()
        raise PluginError(f"it returned {_shown(returned)}; it has to return an iterable of {name}")
    things = tuple(returned)
    for thing in things:
        if not _is(thing, expected):
            raise PluginError(f"it returned {_shown(thing)} among others; all have to be of type {name}")
        _check_fields(thing)
    return things


def _check_fields(thing: Any) -> None:
    """What would fail later, in a place that knows nothing of hooks. Raises PluginError."""
    kind = type(thing).__name__
    for field in _TEXTS:
        text = getattr(thing, field, "-")
        if not isinstance(text, str) or not text:
            raise PluginError(f"a {kind} has {text!r} as its {field}; it has to be a text")
    for field in _FUNCTIONS:
        function = getattr(thing, field, print)
        if not callable(function):
            raise PluginError(f"a {kind} has {function!r} as its {field}; it has to be a function")


def _is(thing: object, expected: type) -> bool:
    if expected is not leafcuttr_sdk.RecordFormat:
        return isinstance(thing, expected)
    # A protocol: what has its parts is one.
    return isinstance(getattr(thing, "name", None), str) and callable(getattr(thing, "open", None))


def _shown(thing: object) -> str:
    if inspect.iscoroutine(thing):
        return "a coroutine (hooks are not async)"
    if thing is None:
        return "None"
    kind = type(thing).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
