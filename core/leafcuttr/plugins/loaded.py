"""A plugin that was found, and what became of it."""

from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING

from leafcuttr.plugins.origin import Candidate, PluginOrigin, module_of_file
from leafcuttr.runtime.frames import package_of
from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    from leafcuttr.plugins.registration import Hooks
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.schemas import SchemaFormat
    from leafcuttr_sdk.security import AuthorizerSpec
    from leafcuttr_sdk.services import ServiceSpec
    from leafcuttr_sdk.settings import Setting


class PluginState(Enum):
    """What became of a plugin that was found."""

    ENABLED = "enabled"
    OFF = "off"
    """It is not switched on."""
    DISABLED = "disabled"
    """`lc.plugins.disabled` names it: it was not even imported."""
    UNAVAILABLE = "unavailable"
    """Packages that it needs are not installed."""
    FAILED = "failed"


class Loaded:
    """One plugin. `plugin` and `hooks` are None for those that were not or could not be imported.

    What it brings to a broker (services, filters, validators) is there once it is enabled; its settings always are.
    """

    def __init__(
        self, name: str, origin: PluginOrigin, state: PluginState, module: str, why: str = ""
    ) -> None:
        self.name = name
        self.origin = origin
        self.state = state
        self.module = module
        """What the entry point names, or the file."""
        self.why = why
        """One line, for any state but enabled."""
        self.plugin: Plugin | None = None
        self.hooks: Hooks | None = None
        self.settings: tuple[Setting, ...] = ()
        self.topic_settings: tuple[Setting, ...] = ()
        self.services: tuple[ServiceSpec, ...] = ()
        self.record_filters: tuple[RecordFilterSpec, ...] = ()
        self.produce_validators: tuple[ProduceValidatorSpec, ...] = ()
        self.schema_formats: tuple[SchemaFormat, ...] = ()
        self.authorizers: tuple[AuthorizerSpec, ...] = ()
        self.remarks: list[str] = []
        """Lines on what it brings to the command line and does not get: names that are taken."""
        self._missing: tuple[str, ...] | None = None

    @classmethod
    def of(cls, candidate: Candidate, state: PluginState, why: str = "") -> "Loaded":
        return cls(candidate.name, candidate.origin, state, candidate.module or candidate.origin.place, why)

    @property
    def version(self) -> str:
        """Of its distribution; empty if it has none."""
        return self.origin.version or ""

    @property
    def package(self) -> str:
        """The top-level package, or module, of its code."""
        return module_of_file(self.name) if self.module.endswith(".py") else package_of(self.module)

    @property
    def became(self) -> str:
        return self.state.value

    @property
    def left_out(self) -> bool:
        """Whether a broker lacks it that should have it."""
        always = self.plugin is not None and self.plugin.enabled_by is None
        return self.state is PluginState.FAILED or (self.state is PluginState.UNAVAILABLE and always)

    @property
    def line(self) -> str:
        """What there is to say of it, for a log."""
        return f"plugin {self.name} ({self.origin}): {self.why}"

    @property
    def remedy(self) -> str:
        """The command that brings what it needs."""
        extra = self.plugin.extra if self.plugin else None
        distribution = self.origin.distribution
        if extra and distribution:
            return f"pip install '{distribution}[{extra}]'"
        return f"pip install {' '.join(self.missing)}"

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules it needs that are not installed. They are looked for once, and none is imported."""
        if self._missing is None:
            modules = self.plugin.modules if self.plugin else ()
            self._missing = tuple(name for name in modules if not _there(name))
        return self._missing

    @property
    def lacks(self) -> str:
        """What it lacks and the command that mends it, in one clause."""
        verb = "is" if len(self.missing) == 1 else "are"
        return f"it needs {', '.join(self.missing)}, which {verb} not installed; mend it with: {self.remedy}"


def _there(module: str) -> bool:
    try:
        return find_spec(package_of(module)) is not None
    except (ImportError, ValueError):
        return False
