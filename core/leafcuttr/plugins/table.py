"""All plugins that were found, and what the enabled ones bring to a broker."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr.errors import PluginError, StartError
from leafcuttr.plugins.loaded import Loaded, State

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.formats import RecordFormat
    from leafcuttr_sdk.services import ServiceSpec

_log: Final = logging.getLogger("leafcuttr.plugins")


class Trouble(NamedTuple):
    """A plugin that is not as somebody meant it to be: a line, whether it stops a start, and the setting that does."""

    plugin: Loaded
    line: str
    stops: bool
    switch: str | None = None


class Plugins:
    """In the order in which they were found. Without any, everything here is empty."""

    def __init__(
        self, found: Sequence[Loaded] = (), *, strict: bool = False, remarks: Sequence[str] = ()
    ) -> None:
        self.all: Final = tuple(found)
        self.remarks: Final = tuple(remarks)
        """Lines on what settings say of plugins that are not there."""
        self.strict: Final = strict

    def get(self, name: str) -> Loaded | None:
        return next((one for one in self.all if one.name == name), None)

    @property
    def enabled(self) -> list[Loaded]:
        return [one for one in self.all if one.state is State.ENABLED]

    @property
    def usable(self) -> list[Loaded]:
        """Those that are imported and sound, whether or not a broker has them switched on."""
        return [one for one in self.all if one.hooks is not None and one.state is not State.FAILED]

    @property
    def failed(self) -> list[Loaded]:
        return [one for one in self.all if one.state is State.FAILED]

    def start(self, settings: "Settings") -> None:
        """Decide which are enabled, and register what those bring; log a line for each that is left out.

        Raises StartError: one is switched on whose packages are missing, or has failed and `lc.plugins.strict` is set.
        """
        self.settle(settings)
        for remark in self.remarks:
            _log.warning("%s", remark)
        for trouble in self.troubles(settings):
            if trouble.stops:
                raise StartError(trouble.line)
            _log.error("%s", trouble.line)

    def troubles(self, settings: "Settings") -> "list[Trouble]":
        """What there is to say of them once they are settled, what stops a start first."""
        found: list[Trouble] = []
        for one in self.all:
            switch = one.plugin.enabled_by if one.plugin else None
            if one.state is State.UNAVAILABLE and switch is not None and settings.bool(switch):
                line = f"{switch}=true ({settings.where(switch)}): plugin {one.name}: {one.why}"
                found.append(Trouble(one, line, stops=True, switch=switch))
            # One that nobody has switched on lacks nothing.
            elif one.state is State.FAILED or (one.state is State.UNAVAILABLE and one.plugin and not switch):
                found.append(Trouble(one, self._strictly(one), stops=self.strict))
        return sorted(found, key=lambda trouble: not trouble.stops)

    def _strictly(self, one: Loaded) -> str:
        return f"{one.line} (lc.plugins.strict=true)" if self.strict else one.line

    def settle(self, settings: "Settings") -> None:
        """As `start`, but nothing is said and nothing stops: for who wants to look at the table."""
        for one in self.usable:
            assert one.plugin is not None
            on = one.plugin.enabled_by is None or settings.bool(one.plugin.enabled_by)
            if one.missing:
                one.state, one.why = State.UNAVAILABLE, one.lacks
            elif not on:
                one.state, one.why = State.OFF, f"{one.plugin.enabled_by}=true switches it on"
            else:
                self._enable(one)

    # What the enabled ones bring

    def services(self) -> "list[tuple[Loaded, ServiceSpec]]":
        return [(one, spec) for one in self.enabled for spec in one.services]

    def record_filters(self) -> "dict[str, tuple[Loaded, RecordFilterSpec]]":
        return {spec.name: (one, spec) for one in self.enabled for spec in one.record_filters}

    def produce_validators(self) -> "dict[str, tuple[Loaded, ProduceValidatorSpec]]":
        return {spec.name: (one, spec) for one in self.enabled for spec in one.produce_validators}

    def fail(self, one: Loaded, why: str) -> None:
        """Leave it out from here on. Raises StartError if `lc.plugins.strict` is set; else logs one line."""
        one.state, one.why = State.FAILED, why
        if self.strict:
            raise StartError(self._strictly(one))
        _log.error("%s", one.line)

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
                one.state, one.why = State.FAILED, str(error)
            else:
                yield from ((one, thing) for thing in things)

    def _enable(self, one: Loaded) -> None:
        from leafcuttr.plugins import registration

        assert one.hooks is not None
        one.state, one.why = State.ENABLED, ""
        try:
            one.services = one.hooks.call(registration.SERVICES)
            one.record_filters = one.hooks.call(registration.RECORD_FILTERS)
            one.produce_validators = one.hooks.call(registration.PRODUCE_VALIDATORS)
            for kind in ("services", "record_filters", "produce_validators"):
                self._refuse_taken(one, kind)
        except PluginError as error:
            one.state, one.why = State.FAILED, str(error)
            one.services, one.record_filters, one.produce_validators = (), (), ()

    def _refuse_taken(self, one: Loaded, kind: str) -> None:
        """A second thing of one name would be found by nobody."""
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
