"""What a plugin says about itself, and the version of the interface it was written for."""

from enum import Enum
from typing import Final, NamedTuple

from leafcuttr_sdk._described import described

API_VERSION: Final = 1
"""The version of everything in `leafcuttr_sdk`. It grows when a plugin of before would no longer work. A plugin names
the number that it was written for; it does not import this one, which is always that of the installed broker."""

API_MINOR: Final = 3
"""Grows when something is added to this version of the interface, so that plugins of before go on to work: a hook, a
field, a function. A plugin that uses what was added names the number that it needs as its `api_minor`."""


class StartFailure(Enum):
    """A way in which a plugin can fail while the broker starts."""

    LEFT_OUT = "left out"
    """It cannot be registered: a hook raises, packages are missing, another plugin has a name of its, a service that it
    needs is not there."""
    TAKEN = "taken"
    """A service cannot start because its port is taken: `AddressTakenError`, which `Broker.listen` and `Broker.serve`
    raise. It may be free later."""
    REFUSED = "refused"
    """A service says in another way why it cannot start, by PluginError: a certificate cannot be read."""
    FAILED = "failed"
    """A service fails in another way at its first start, or is not ready in time."""


@described
class Plugin(NamedTuple):
    """What the module of a plugin carries as `PLUGIN`.

    The module is what the entry point of the group `leafcuttr.plugins` names. It is imported at every start, also
    where nothing is enabled, so it imports the standard library, `leafcuttr_sdk` and trio only, which a broker has
    anyway; what is heavy is imported in the factories that its hooks return. Its functions named
    `leafcuttr_register_*` are its hooks: see `leafcuttr_sdk.hooks`.
    """

    name: str
    """Lower-case letters, digits and `-`, beginning with a letter. Third parties' settings begin with
    `lc.plugin.<name>.`."""

    api_version: int
    """The `API_VERSION` that it was written for, as a number."""

    summary: str
    """A few words for `leafcuttr plugins list`."""

    enabled_by: str | None = None
    """The setting, one of its own, that switches it on: a boolean that is true, or a text (or a list) without a
    default that is set, or a family of these (`lc.x.<name>`) that has a member, for a plugin that can do nothing
    without it. None: it is on once it is installed."""

    extra: str | None = None
    """The extra of its distribution that brings the packages it needs when it is on, as `pyproject.toml` calls it below
    `[project.optional-dependencies]`. It is only named to the person: `pip install 'distribution[extra]'`. None: what
    it needs comes with its distribution, or it needs nothing."""

    modules: tuple[str, ...] = ()
    """Top-level modules that it needs when it is on, by the names under which they are imported (`yaml`, not PyYAML).
    They are looked for, not imported. Where one is missing, the plugin is unavailable: its line names the modules and
    the command that installs them, of the `extra` if there is one; and if `enabled_by` switches it on, that line ends
    the start."""

    hook_limit_s: float = 10.0
    """Seconds that each of its hooks may take: one that takes longer is left to its thread, and the plugin is left out.
    More than 10 count for bundled plugins only. The import of the module may take 10 in any case."""

    stops_start: tuple[StartFailure, ...] = (StartFailure.TAKEN, StartFailure.REFUSED)
    """The failures that end the start of the broker. After any other one the broker serves, `/health` says that it is
    degraded, and a service is tried again. If `lc.plugins.required` names the plugin, all of them do; if it names
    failures of the plugin (`name:taken`), those do, whatever stands here."""

    api_minor: int = 0
    """The `API_MINOR` that it needs, as a number."""

    optional_hooks: tuple[str, ...] = ()
    """Hooks that it can do without: a broker that does not know them ignores them. Any other function whose name begins
    with `leafcuttr_` and is no hook stops the plugin."""
