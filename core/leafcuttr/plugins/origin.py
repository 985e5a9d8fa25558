"""Where a plugin comes from: a distribution that is installed, or a file in the folder of `lc.plugins.path`."""

from typing import Final, NamedTuple

OURS: Final = "leafcuttr"
"""The distribution whose plugins are the bundled ones."""


def module_of_file(plugin: str) -> str:
    """What the module of a plugin in a single file is called. A file may be named as a module that others import."""
    return f"leafcuttr_plugin_{plugin.replace('-', '_')}"


class PluginOrigin(NamedTuple):
    """`place` is the folder or file in which it was found. `str()` of it is what a person recognizes."""

    place: str
    distribution: str | None = None
    version: str | None = None

    @property
    def bundled(self) -> bool:
        return self.distribution == OURS

    def __str__(self) -> str:
        if self.distribution is None:
            return self.place
        return f"{self.distribution} {self.version}" if self.version else self.distribution


class Candidate(NamedTuple):
    """A module that is said to be a plugin. Nothing of it has been imported.

    `name` is that of the entry point or of the file; `module` is what to import, None for a file.
    """

    name: str
    module: str | None
    origin: PluginOrigin
