"""What a plugin says about itself, and the version of the interface it was written for."""

from typing import Final, NamedTuple

API_VERSION: Final = 1
"""The version of everything in `leafcuttr_sdk`. It grows when a plugin of before would no longer work. A plugin names
the number that it was written for; it does not import this one, which is always that of the installed broker."""


class Plugin(NamedTuple):
    """What the module of a plugin carries as `PLUGIN`.

    The module is what the entry point of the group `leafcuttr.plugins` names. It is imported at every start, also
    where nothing is enabled, so it imports the standard library and `leafcuttr_sdk` only; what is heavy is imported in
    the factories that its hooks return. Its functions named `leafcuttr_register_*` are its hooks: see
    `leafcuttr_sdk.hooks`.
    """

    name: str
    """Lower-case letters, digits and `-`, beginning with a letter. Third parties' settings begin with
    `lc.plugin.<name>.`."""

    api_version: int
    """The `API_VERSION` that it was written for, as a number."""

    summary: str
    """A few words for `leafcuttr plugins list`."""

    enabled_by: str | None = None
    """The boolean setting, one of its own, that switches it on. None: it is on once it is installed."""

    extra: str | None = None
    """The extra of its distribution that brings the packages it needs when it is on."""

    modules: tuple[str, ...] = ()
    """Top-level modules that this extra brings: where one cannot be found, the plugin is unavailable, and the person is
    told which extra to install. They are looked for, not imported."""
