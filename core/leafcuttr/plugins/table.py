"""All plugins that were found, and what the enabled ones bring to a broker."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr.config.findings import Level
from leafcuttr.config.setting import render
from leafcuttr.errors import ConfigError, PluginError, StartError
from leafcuttr.plugins.importing import process_kept
from leafcuttr.plugins.loaded import Loaded, PluginState
from leafcuttr.plugins.switch import given_name, how_to, is_on
from leafcuttr.plugins.together import contradictions
from leafcuttr_sdk.plugin import StartFailure

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.formats import RecordFormat
    from leafcuttr_sdk.schemas import SchemaFormat
    from leafcuttr_sdk.security import AuthorizerSpec
    from leafcuttr_sdk.services import ServiceSpec

REQUIRED: Final = "lc.plugins.required"
_LOGGED: Final = {Level.WARNING: logging.WARNING, Level.NOTE: logging.INFO}
_FAILURES: Final = {failure.value.replace(" ", "-"): failure for failure in StartFailure}

_log: Final = logging.getLogger("leafcuttr.plugins")


class Required:
    """`lc.plugins.required`: plugins without which a broker does not start, or those of their failures that end the
    start; and where that was given."""

    def __init__(self, entries: Iterable[str] = (), where: str = "default") -> None:
        """Raises StartError for an entry that is neither `name` nor `name:failure`."""
        self.where: Final = where
        self.failures: Final[dict[str, frozenset[StartFailure]]] = {}
        for entry in entries:
            name, colon, word = entry.partition(":")
            if colon and word not in _FAILURES:
                raise StartError(
                    f"{REQUIRED} ({where}) has {entry}: allowed is the name of a plugin, or name:failure with one of "
                    f"{', '.join(_FAILURES)}"
                )
            more = {_FAILURES[word]} if colon else _FAILURES.values()
            self.failures[name] = self.failures.get(name, frozenset()).union(more)


class Trouble(NamedTuple):
    """A plugin that is not as it was meant to be: a line, whether it stops a start, and the setting that does. None is
    one that is required and not installed."""

    plugin: Loaded | None
    line: str
    stops: bool
    switch: str | None = None


class Plugins:
    """In the order in which they were found. Without any, everything here is empty."""

    def __init__(
        self,
        found: Sequence[Loaded] = (),
        *,
        strict: bool = False,
        required: Required | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        self.all: Final = tuple(found)
        self.remarks: Final = tuple(remarks)
        """Lines on what settings say of plugins that are not there."""
        self.strict: Final = strict
        self.required: Final = required or Required()

    def get(self, name: str) -> Loaded | None:
        return next((one for one in self.all if one.name == name), None)

    @property
    def enabled(self) -> list[Loaded]:
        return [one for one in self.all if one.state is PluginState.ENABLED]

    @property
    def usable(self) -> list[Loaded]:
        """Those that are imported and sound, whether or not a broker has them switched on."""
        return [one for one in self.all if one.hooks is not None and one.state is not PluginState.FAILED]

    @property
    def failed(self) -> list[Loaded]:
        return [one for one in self.all if one.state is PluginState.FAILED]

    def start(self, settings: "Settings") -> None:
        """Decide which are enabled, and register what those bring; log a line for each that is left out.

        Raises StartError: one is switched on whose packages are missing, is required and not there, or has failed and
        `lc.plugins.strict` is set, or it says itself that this ends the start. Raises ConfigError: values of its
        settings do not go together, or a file that one names is wrong; further lines of such are logged.
        """
        self._settle(settings, off_first=True)
        for remark in self.remarks:
            _log.warning("%s", remark)
        for trouble in self.troubles(settings):
            if trouble.stops:
                raise StartError(trouble.line)
            _log.error("%s", trouble.line)
        found = list(contradictions(self.enabled, settings))
        stopping = [finding.line for finding in found if finding.level is Level.ERROR]
        for line in stopping[1:]:
            _log.error("%s", line)
        if stopping:
            raise ConfigError(stopping[0])
        for finding in found:
            _log.log(_LOGGED[finding.level], "%s", finding.line)

    def troubles(self, settings: "Settings") -> "list[Trouble]":
        """What there is to say of them once they are settled, what stops a start first."""
        found = list(self._required_and_not_on())
        for one in self.all:
            switch = one.plugin.enabled_by if one.plugin else None
            if one.state is PluginState.UNAVAILABLE and switch is not None and is_on(settings, switch):
                switch = given_name(settings, switch)
                given = render(settings.value(switch))
                line = f"{switch}={given} ({settings.where(switch)}): plugin {one.name}: {one.why}"
                found.append(Trouble(one, line, stops=True, switch=switch))
            # One that is not switched on lacks nothing.
            elif one.left_out:
                found.append(self._left_out(one))
        return sorted(found, key=lambda trouble: not trouble.stops)

    def stops(self, one: Loaded, failure: StartFailure) -> bool:
        """Whether such a failure of this plugin ends the start."""
        named = self.required.failures.get(one.name)
        if named is not None:
            return failure in named
        return one.plugin is not None and failure in one.plugin.stops_start

    def _left_out(self, one: Loaded) -> Trouble:
        if self.strict:
            return Trouble(one, f"{one.line} (lc.plugins.strict=true)", stops=True)
        if not self.stops(one, StartFailure.LEFT_OUT):
            return Trouble(one, one.line, stops=False)
        named = one.name in self.required.failures
        why = f"{REQUIRED} names it" if named else "its PLUGIN says that the broker needs it"
        return Trouble(one, f"{one.line} ({why})", stops=True)

    def _required_and_not_on(self) -> Iterator[Trouble]:
        for name, failures in self.required.failures.items():
            one = self.get(name)
            if one is None:
                import difflib  # used only where a name is mistyped

                near = difflib.get_close_matches(name, [one.name for one in self.all], 1)
                why = f"which is not installed{f'; did you mean {near[0]}?' if near else ''}"
            elif StartFailure.LEFT_OUT not in failures:
                continue
            elif one.state in (PluginState.OFF, PluginState.DISABLED):
                why = f"which is {one.became}: {one.why}"
            elif one.state is PluginState.UNAVAILABLE:
                why = f"which is not available: {one.why}"
            else:
                continue
            line = f"{REQUIRED} ({self.required.where}) names {name}, {why}"
            yield Trouble(one, line, stops=True, switch=REQUIRED)

    def settle(self, settings: "Settings") -> None:
        """As `start`, but nothing is said and nothing stops: for a command that prints the table. One that is off and
        lacks packages is unavailable there; a start does not look for those."""
        self._settle(settings, off_first=False)

    def _settle(self, settings: "Settings", *, off_first: bool) -> None:
        for one in self.usable:
            assert one.plugin is not None and one.hooks is not None
            if one.origin.bundled and not one.hooks.names:
                one.why = "nothing of it runs in a broker"
                continue
            switch = one.plugin.enabled_by
            off = switch is not None and not is_on(settings, switch)
            if not (off and off_first) and one.missing:
                one.state, one.why = PluginState.UNAVAILABLE, one.lacks
            elif switch is not None and off:
                one.state, one.why = PluginState.OFF, f"{how_to(switch, one.settings)} switches it on"
            else:
                self._enable(one, settings)

    # What the enabled ones bring

    def services(self) -> "list[tuple[Loaded, ServiceSpec]]":
        return [(one, spec) for one in self.enabled for spec in one.services]

    def record_filters(self) -> "dict[str, tuple[Loaded, RecordFilterSpec]]":
        return {spec.name: (one, spec) for one in self.enabled for spec in one.record_filters}

    def produce_validators(self) -> "dict[str, tuple[Loaded, ProduceValidatorSpec]]":
        return {spec.name: (one, spec) for one in self.enabled for spec in one.produce_validators}

    def schema_formats(self) -> "dict[str, tuple[Loaded, SchemaFormat]]":
        return {format.name: (one, format) for one in self.enabled for format in one.schema_formats}

    def authorizers(self) -> "dict[str, tuple[Loaded, AuthorizerSpec]]":
        return {spec.name: (one, spec) for one in self.enabled for spec in one.authorizers}

    def fail(self, one: Loaded, why: str) -> None:
        """Leave it out from here on. Raises StartError if that ends the start, else logs one line."""
        one.state, one.why = PluginState.FAILED, why
        trouble = self._left_out(one)
        if trouble.stops:
            raise StartError(trouble.line)
        _log.error("%s", trouble.line)

    # What installed ones bring to the command line

    def record_formats(self) -> "list[tuple[Loaded, RecordFormat]]":
        from leafcuttr.plugins.registration import RECORD_FORMATS

        return list(self._of_usable(RECORD_FORMATS))

    def cli_commands(self) -> "list[tuple[Loaded, CliCommand]]":
        from leafcuttr.plugins.registration import CLI_COMMANDS

        return list(self._of_usable(CLI_COMMANDS))

    def _of_usable(self, hook: str) -> Iterator[tuple[Loaded, Any]]:
        for one in self.usable:
            assert one.hooks is not None
            try:
                things = one.hooks.call(hook)
            except PluginError as error:
                one.state, one.why = PluginState.FAILED, str(error)
            else:
                yield from ((one, thing) for thing in things)

    def _enable(self, one: Loaded, settings: "Settings") -> None:
        from leafcuttr.plugins import registration
        from leafcuttr.plugins.implied import record_filters_of, refuse_undeclared

        assert one.hooks is not None
        one.state, one.why = PluginState.ENABLED, ""
        try:
            with process_kept(one.name):
                one.services = one.hooks.call(registration.SERVICES)
                one.record_filters = tuple(record_filters_of(one, settings))
                one.produce_validators = one.hooks.call(registration.PRODUCE_VALIDATORS)
                one.schema_formats = one.hooks.call(registration.SCHEMA_FORMATS)
                one.authorizers = one.hooks.call(registration.AUTHORIZERS)
            for kind in ("services", "record_filters", "produce_validators", "schema_formats", "authorizers"):
                self._refuse_taken(one, kind)
            refuse_undeclared(one, (*one.record_filters, *one.produce_validators))
        except PluginError as error:
            one.state, one.why = PluginState.FAILED, str(error)
            one.services, one.record_filters, one.produce_validators = (), (), ()
            one.schema_formats, one.authorizers = (), ()

    def _refuse_taken(self, one: Loaded, kind: str) -> None:
        """A second object of one name would never be found."""
        taken = {
            thing.name: other for other in self.enabled for thing in getattr(other, kind) if other is not one
        }
        seen: set[str] = set()
        for thing in getattr(one, kind):
            what = kind.removesuffix("s").replace("_", " ")
            if thing.name in taken:
                raise PluginError(f"plugin {taken[thing.name].name} has a {what} {thing.name} too")
            if thing.name in seen:
                raise PluginError(f"it has two of the {what} {thing.name}")
            seen.add(thing.name)
