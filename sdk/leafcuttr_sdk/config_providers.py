"""`${NAME:PATH:KEY}` in the value of a setting: what a provider has in the place of it, as with Kafka's ConfigProviders
(KIP-297).

Taken are Kafka's own: properties files, folders with a file for each key, and variables of the environment, with what
restricts them (KIP-891).
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from leafcuttr_sdk.properties import parse_properties

PREFIX: Final = "config.providers"
_REFERENCE: Final = re.compile(r"\$\{([^}:]+):(?:([^}]*?):)?([^}:]*)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."

Look: TypeAlias = Callable[[str, str], str | None]
"""Of a path and a key."""


class ConfigProviders:
    """Those that these properties name: `config.providers`, and `config.providers.<name>.class` and `.param.<...>`."""

    def __init__(self, given: Mapping[str, str]) -> None:
        names = [name.strip() for name in given.get(PREFIX, "").split(",")]
        self._looks = {name: _provider(name, given) for name in names if name}

    def resolve(self, value: str) -> str:
        """The value with what the providers have in the place of the references to them. One to a provider that is not
        named stays as it is. Raises ValueError with one clause."""
        if not self._looks or "${" not in value:
            return value
        return _REFERENCE.sub(self._found, value)

    def _found(self, reference: re.Match[str]) -> str:
        name, path, key = reference[1], reference[2] or "", reference[3]
        if name not in self._looks:
            return reference[0]
        try:
            value = self._looks[name](path, key)
        except _Forbidden as error:
            raise ValueError(f"{reference[0]}: {error}") from None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise ValueError(f"{reference[0]}: {path} cannot be read: {why}") from None
        if value is None:
            raise ValueError(f"{reference[0]}: {path or 'the environment'} has no {key}")
        return value


class _Forbidden(Exception):
    """A provider may not look there; one clause."""


def _provider(name: str, given: Mapping[str, str]) -> Look:
    """What is wrong with it is said when it is used."""
    of_it = f"{PREFIX}.{name}."
    kind = given.get(f"{of_it}class", "").strip()
    make = _PROVIDERS.get(kind.removeprefix(_PACKAGE))
    if make is not None:
        of_params = f"{of_it}param."
        return make(
            {key.removeprefix(of_params): value for key, value in given.items() if key.startswith(of_params)}
        )

    def refuse(path: str, key: str) -> str | None:
        raise ValueError(
            f"its provider is {kind or 'without a class'}; allowed are {', '.join(_PROVIDERS)} of {_PACKAGE}*"
        )

    return refuse


def _in_file(params: Mapping[str, str]) -> Look:
    def look(path: str, key: str) -> str | None:
        text = _allowed(path, params).read_bytes().decode()
        return {each.key: each.value for each in parse_properties(text)}.get(key)

    return look


def _in_folder(params: Mapping[str, str]) -> Look:
    def look(path: str, key: str) -> str | None:
        folder = _allowed(path, params)
        file = folder / key
        # A key is the name of a file in the folder, and no way out of it.
        if not key or key in (".", "..") or file.parent != folder or not file.is_file():
            return None
        return file.read_bytes().decode()

    return look


def _in_environment(params: Mapping[str, str]) -> Look:
    def look(path: str, key: str) -> str | None:
        pattern = params.get("allowlist.pattern")
        try:
            if pattern is not None and re.fullmatch(pattern, key) is None:
                raise _Forbidden(f"{key} is not allowed by param.allowlist.pattern")
        except re.error as error:
            raise _Forbidden(f"param.allowlist.pattern is no pattern: {error}") from None
        return os.environ.get(key)

    return look


def _allowed(path: str, params: Mapping[str, str]) -> Path:
    """As in Kafka what `..` means is worked out first, and links are not followed."""
    listed = params.get("allowed.paths", "").strip()
    if not listed:
        return Path(path)
    wanted = Path(os.path.normpath(path))
    for each in (Path(os.path.normpath(one.strip())) for one in listed.split(",")):
        if not each.is_absolute() or not each.exists():
            why = "does not exist" if each.is_absolute() else "is not absolute"
            raise _Forbidden(f"{each} of param.allowed.paths {why}")
        if wanted.is_relative_to(each):
            return wanted
    raise _Forbidden(f"{path} is not below one of param.allowed.paths")


_PROVIDERS: Final[Mapping[str, Callable[[Mapping[str, str]], Look]]] = {
    "FileConfigProvider": _in_file,
    "DirectoryConfigProvider": _in_folder,
    "EnvVarConfigProvider": _in_environment,
}
