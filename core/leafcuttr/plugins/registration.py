"""What the hooks of one plugin return: the only module that imports pluggy.

Each plugin has a manager of its own, so that what a hook returns is known to be that plugin's, and one that raises
takes no other with it. The specifications are the functions of `leafcuttr_sdk.hooks`. A plugin's functions need no
decorator: every function of its module whose name begins with `leafcuttr_` is a hook.
"""

import inspect
from collections.abc import Container, Iterable, Mapping
from functools import partial
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pluggy

import leafcuttr_sdk
from leafcuttr.errors import PluginError, TakesTooLong
from leafcuttr.plugins.limited import LIMIT_S, called
from leafcuttr.runtime.described import first_line
from leafcuttr.runtime.frames import package_of
from leafcuttr.runtime.plugin_parts import Part, PartError, call, log_traceback
from leafcuttr_sdk import hooks
from leafcuttr_sdk._described import kind_of

if TYPE_CHECKING:
    from pluggy import HookimplOpts, HookspecOpts

PREFIX: Final = "leafcuttr_"

SETTINGS: Final = "leafcuttr_register_settings"
TOPIC_SETTINGS: Final = "leafcuttr_register_topic_settings"
SERVICES: Final = "leafcuttr_register_services"
RECORD_FILTERS: Final = "leafcuttr_register_record_filters"
PRODUCE_VALIDATORS: Final = "leafcuttr_register_produce_validators"
AUTHORIZERS: Final = "leafcuttr_register_authorizers"
RECORD_FORMATS: Final = "leafcuttr_register_record_formats"
SCHEMA_FORMATS: Final = "leafcuttr_register_schema_formats"
CLI_COMMANDS: Final = "leafcuttr_register_cli_commands"
HEALTH_CHECKS: Final = "leafcuttr_register_health_checks"
METRICS: Final = "leafcuttr_register_metrics"
ADMIN_ROUTES: Final = "leafcuttr_register_admin_routes"
AUTHENTICATORS: Final = "leafcuttr_register_authenticators"
SCHEMA_PROVIDER: Final = "leafcuttr_register_schema_provider"

RETURNS: Final[dict[str, str]] = {
    name: hook.__annotations__["return"].removeprefix("Iterable[").removesuffix("]")
    for name, hook in vars(hooks).items()
    if name.startswith(PREFIX)
}
"""Every hook that the SDK documents, and the class of the SDK that each thing it returns is of."""

_TEXTS: Final = ("name", "path", "summary")
_FUNCTIONS: Final = ("make", "load", "look", "read", "handler", "open", "make_records")
"""Fields that things of several kinds have."""
_PARTS: Final = {
    "SchemaProvider": ("get", "by_id", "register"),
    "RecordFormat": ("open",),
    "SchemaFormat": ("parse",),
}
"""The methods by which what a protocol of the SDK describes is known."""
_NAMED: Final = ("RecordFormat", "SchemaFormat")
_MOST: Final = 10_000
"""Things of one hook: an iterator without end would take all memory before its time is over."""


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

    def __init__(self, optional: Container[str]) -> None:
        super().__init__("leafcuttr")
        self._optional = optional

    def parse_hookimpl_opts(self, plugin: object, name: str) -> "HookimplOpts | None":
        if not name.startswith(PREFIX) or not inspect.isroutine(getattr(plugin, name)):
            return None
        return {
            "wrapper": False,
            "hookwrapper": False,
            "optionalhook": name in self._optional,
            "tryfirst": False,
            "trylast": False,
            "specname": None,
        }


class Hooks:
    """The hooks of a plugin's module. Raises PluginError where one is none, or takes what is not given."""

    def __init__(
        self, plugin: str, module: ModuleType, limit_s: float = LIMIT_S, optional: Iterable[str] = ()
    ) -> None:
        """`limit_s` is how long each may take; `optional` are those that the plugin can do without."""
        self._plugin: Final = plugin
        self._package: Final = package_of(module.__name__)
        self._limit_s: Final = limit_s
        self._optional = frozenset(optional)
        self._manager = _Manager(self._optional)
        self._manager.add_hookspecs(hooks)
        try:
            self._manager.register(module)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(self._refusal(module, error)) from None
        callers = self._manager.get_hookcallers(module) or []
        self.names: Final = tuple(sorted(caller.name for caller in callers if caller.name in RETURNS))
        """Those that it has."""

    def call(self, name: str, *, at_once: bool = False, **arguments: object) -> tuple[Any, ...]:
        """What the hook returned, checked: instances of the class in `RETURNS`. Empty if the plugin has it not.

        Raises PluginError, one line, for whatever the hook raises, for what is of another type, and for one that takes
        too long: it is called on a thread of its own, unless it is called `at_once`.
        """
        if name not in self.names:
            return ()
        try:
            attempt = partial(self._call, name, arguments)
            return called(attempt, self._limit_s, self._package, at_once=at_once)
        except TakesTooLong as error:
            raise PluginError(f"{name} {error}") from None

    async def call_on_loop(self, name: str, **arguments: object) -> tuple[Any, ...]:
        """As `call`, while the event loop goes on."""
        if name not in self.names:
            return ()
        from leafcuttr.plugins.time_limit import in_time_on_loop

        try:
            return await in_time_on_loop(partial(self._call, name, arguments), self._limit_s, self._package)
        except TakesTooLong as error:
            raise PluginError(f"{name} {error}") from None

    def _call(self, name: str, arguments: Mapping[str, object]) -> tuple[Any, ...]:
        """On the thread of the call."""
        try:
            return call(Part(self._plugin, name), self._returned, name, arguments)
        except PartError as failed:
            if failed.is_said:
                raise PluginError(f"{name}: {failed.why}") from None
            log_traceback(failed)
            raise PluginError(f"{name} raised {failed.why}") from None

    def _returned(self, name: str, arguments: Mapping[str, object]) -> tuple[Any, ...]:
        # pluggy leaves None out of the results.
        return _checked(name, [*getattr(self._manager.hook, name)(**arguments), None][0])

    def _refusal(self, module: ModuleType, error: pluggy.PluginValidationError) -> str:
        for name in dir(module):
            if not name.startswith(PREFIX) or not inspect.isroutine(getattr(module, name)):
                continue
            if name not in RETURNS and name in self._optional:
                continue
            if name not in RETURNS:
                import difflib  # used only where a name is mistyped

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
    # A NamedTuple can be iterated too: the person forgot the comma or the brackets.
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes) or _is(returned, name):
        hint = ""
        if inspect.iscoroutine(returned):
            returned.close()
            hint = " (hooks are not async)"
        raise PluginError(f"it returned {kind_of(returned)}{hint}; it has to return an iterable of {name}")
    things = tuple(islice(returned, _MOST + 1))
    if len(things) > _MOST:
        raise PluginError(f"it returned more than {_MOST} of {name}")
    for thing in things:
        if not _is(thing, name):
            raise PluginError(f"it returned {kind_of(thing)} among others; all have to be of type {name}")
        _check_fields(thing)
    return things


def _check_fields(thing: Any) -> None:
    """What would fail later, in a place that knows nothing of hooks. Raises PluginError."""
    kind = kind_of(thing)
    for field in _TEXTS:
        text = getattr(thing, field, "-")
        if not isinstance(text, str) or not text:
            raise PluginError(f"{kind} has {text!r} as its {field}; it has to be a text")
    for field in _FUNCTIONS:
        function = getattr(thing, field, print)
        if not callable(function):
            raise PluginError(f"{kind} has {function!r} as its {field}; it has to be a function")
    for field in ("needs", "implied_by"):
        names = getattr(thing, field, ())
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise PluginError(f"{kind} has {names!r} as its {field}; it has to be a tuple of names")
    peek = getattr(thing, "peek", None)
    if peek is not None:
        from leafcuttr_sdk.peek import why_no_peek

        wrong = why_no_peek(peek)
        if wrong is not None:
            raise PluginError(f"{kind} has {peek!r} as its peek: {wrong}")
    if kind == "a MetricReading" and kind_of(thing.metric) != "a Metric":
        raise PluginError(f"{kind} has {thing.metric!r} as its metric; `counter` and `gauge` make one")


def _is(thing: object, expected: str) -> bool:
    """Whether it is of the class of the SDK that has this name. Of a protocol what has its parts is one: those are not
    imported for it."""
    if expected in _PARTS:
        return all(callable(getattr(thing, part, None)) for part in _PARTS[expected]) and (
            expected not in _NAMED or isinstance(getattr(thing, "name", None), str)
        )
    return isinstance(thing, getattr(leafcuttr_sdk, expected))
