"""The settings a broker starts with: file, environment, command line, in that order, later wins.

`leafcuttr serve` calls `load_settings`, which stops at the first thing that is wrong. `examine` says all of them
at once, for a person who mends a file. `findings` decides what is wrong; neither module opens a directory or a
socket.

A value may be elsewhere: `config.providers` names what looks it up, before anything is parsed.

Plugins have settings too, and settings say where plugins are. So both read in two steps: `find` gets the settings
whose names begin with `lc.plugins.` and returns the catalogue with those of the plugins it found; by that one
everything is parsed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from leafcuttr.config import findings
from leafcuttr.config.catalog import ALIASES, CORE, Catalog
from leafcuttr.config.environment import settings_in_environment
from leafcuttr.config.findings import ConfigFinding, Level
from leafcuttr.config.settings import Given, Settings
from leafcuttr.errors import ConfigError
from leafcuttr_sdk.properties import parse_properties

Find: TypeAlias = Callable[[Settings], Catalog]
"""Finds plugins by the settings about them; raises ConfigError where one that is not right stops the start."""

_ABOUT_PLUGINS: Final = "lc.plugins."
_PROVIDERS: Final = "config.providers"
_SECRET: Final = 4
"""Characters."""


def core_only(_: Settings) -> Catalog:
    """A `Find` without plugins."""
    return CORE


def load_settings(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str] = (), find: Find = core_only
) -> tuple[Settings, list[str]]:
    """The settings of a server.properties file, of KAFKA_* variables and of `key=value` texts; and warnings.

    Raises ConfigError, one line: a file that cannot be read, a bad value, settings that contradict each
    other; and what `find` raises.
    """
    return _load(_Sources.of(file, environ, overrides), find)


def settings_of(given: Sequence[tuple[str, Given]], find: Find = core_only) -> tuple[Settings, list[str]]:
    """As `load_settings`, from values that are at hand."""
    return _load(_Sources(given, {}, ()), find)


def _load(sources: "_Sources", find: Find) -> tuple[Settings, list[str]]:
    given, catalog = _found(sources, find)
    given, unresolved = _resolved(given)
    for finding in unresolved:
        raise ConfigError(finding.line)
    settings = Settings(dict(given), catalog)
    hide = partial(_without_secrets, given)
    for finding in map(hide, findings.contradictions(settings)):
        raise ConfigError(finding.line)
    return settings, [finding.line for finding in map(hide, findings.warnings(settings))]


def examine(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str] = (), find: Find = core_only
) -> tuple[Settings, list[ConfigFinding]]:
    """As `load_settings`, but with everything there is to say, errors first; the settings are those without errors.

    Raises ConfigError for a file that cannot be read and for an override that is not `key=value`.
    """
    given, catalog = _found(_Sources.of(file, environ, overrides), find, tolerant=True)
    given, unresolved = _resolved(given)
    last = dict(given)
    bad = [finding for key, value in last.items() if (finding := findings.bad_value(catalog, key, value))]
    wrong = {finding.key for finding in bad}
    settings = Settings({key: value for key, value in last.items() if key not in wrong}, catalog)
    hide = partial(_without_secrets, given)
    bad += [f for f in map(hide, findings.contradictions(settings)) if f.key not in wrong]
    return settings, [
        *unresolved,
        *bad,
        *_repeated(given),
        *map(hide, findings.warnings(settings)),
        *map(hide, findings.notes(settings)),
    ]


def data_directory(settings: Settings) -> Path:
    """The one directory for data: `log.dirs`, or `log.dir`. `contradictions` has made sure that there is just one."""
    return Path(settings.list("log.dirs")[0])


def read_given(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str] = ()
) -> list[tuple[str, Given]]:
    """Every value that is given, by Kafka's name, in the order in which later ones win. Raises ConfigError."""
    return _resolved(_Sources.of(file, environ, overrides).given(CORE))[0]


class _Sources(NamedTuple):
    """What the file and the command line give, and the environment: how its names are read, families say."""

    of_file: Sequence[tuple[str, Given]]
    environ: Mapping[str, str]
    of_command: Sequence[tuple[str, Given]]

    @classmethod
    def of(cls, file: Path | None, environ: Mapping[str, str], overrides: Sequence[str]) -> "_Sources":
        """Raises ConfigError."""
        of_file = [] if file is None else parse_properties(_read(file))
        name = "" if file is None else file.name
        return cls(
            [(key, Given(text, f"{name}:{line}")) for key, text, line in of_file],
            environ,
            [_override(one) for one in overrides],
        )

    def given(self, catalog: Catalog) -> list[tuple[str, Given]]:
        variables = settings_in_environment(self.environ, catalog.families)
        of_environ = [(key, Given(text, variable)) for key, text, variable in variables]
        given = [*self.of_file, *of_environ, *self.of_command]
        return [(ALIASES.get(key, key), value) for key, value in given]


def _override(text: str) -> tuple[str, Given]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"-o {text}: allowed is key=value")
    return key.strip(), Given(value, "-o")


def _found(
    sources: _Sources, find: Find, *, tolerant: bool = False
) -> tuple[list[tuple[str, Given]], Catalog]:
    """What is given, and the catalogue by which it is to be read. If `tolerant`, a bad value about plugins is as if it
    had not been given.
    """
    given, _ = _resolved(sources.given(CORE))
    about = {k: v for k, v in dict(given).items() if k.startswith(_ABOUT_PLUGINS)}
    if tolerant:
        about = {k: v for k, v in about.items() if findings.bad_value(CORE, k, v) is None}
    catalog = find(Settings(about))
    return sources.given(catalog), catalog


def _resolved(given: Sequence[tuple[str, Given]]) -> tuple[list[tuple[str, Given]], list[ConfigFinding]]:
    """All that is given, with what providers have in the place of references; and those that cannot be had, which are
    left out. What says how to look something up is no setting, and is left out too."""
    if not any(key.startswith(_PROVIDERS) for key, _ in given):
        return list(given), []
    from leafcuttr_sdk.config_providers import ConfigProviders

    providers = ConfigProviders({key: value.text for key, value in given})
    found: list[tuple[str, Given]] = []
    wrong: list[ConfigFinding] = []
    for key, value in given:
        if key.startswith(f"{_PROVIDERS}."):
            continue
        try:
            text = providers.resolve(value.text)
        except ValueError as error:
            line = f"{key} ({value.source}): {error}"
            wrong.append(ConfigFinding(Level.ERROR, key, value.text, value.source, line))
            continue
        found.append((key, value if text == value.text else Given(text, value.source, value.text)))
    return found, wrong


def _without_secrets(given: Sequence[tuple[str, Given]], finding: ConfigFinding) -> ConfigFinding:
    """What a provider has had is shown by the reference to it; a short text may be there by chance."""
    for _, value in given:
        if value.reference is not None and len(value.text) >= _SECRET:
            line = finding.line.replace(value.text, value.reference)
            shown = finding.value and finding.value.replace(value.text, value.reference)
            finding = finding._replace(line=line, value=shown)
    return finding


def _repeated(given: Sequence[tuple[str, Given]]) -> Iterator[ConfigFinding]:
    """Keys that one file gives twice: mostly the remains of an edit."""
    seen: dict[tuple[str, str], Given] = {}
    for key, value in given:
        file, colon, _ = value.source.rpartition(":")
        if not colon:
            continue
        before = seen.get((file, key))
        if before is not None and before.text != value.text:
            line = f"{key} ({before.source}) is given again at {value.source}, and that one counts"
            yield ConfigFinding(Level.WARNING, key, None, before.source, line)
        seen[file, key] = value


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: not a text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
