"""The subject of the checks on this machine: a configuration, and where it is meant to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.plugins.table import Plugins


@dataclass
class Site:
    """`file`, `environ` and `overrides` are what `serve` would get. The rest is filled in by the checks."""

    file: Path | None
    environ: Mapping[str, str]
    overrides: Sequence[str] = ()
    settings: Settings = field(default_factory=Settings)
    listeners: Sequence[Listener] = ()
    plugins: Plugins = field(default_factory=Plugins)
    directory: Path = Path()
    running: int | None = None  # the process that is this broker, if it runs

    @property
    def standing(self) -> Path:
        """The directory, or the nearest one above it that exists."""
        found = self.directory.resolve()
        while not found.exists() and found != found.parent:
            found = found.parent
        return found

    def line(self, key: str, value: str) -> str:
        """The line that sets `key`, in the form of the place that sets it now, and where that is."""
        given = self.settings.given(key)
        if given is not None and given.source.startswith("KAFKA_"):
            return f"{given.source}={value}"
        if given is not None and given.source == "-o":
            return f"-o {key}={value}"
        if given is not None:
            return f"{key}={value}  ({given.source})"
        return f"{key}={value}  ({f'add to {self.file.name}' if self.file else 'or -o in front of it'})"

    def directory_line(self, value: str) -> str:
        return self.line("log.dirs" if self.settings.given("log.dirs") else "log.dir", value)
