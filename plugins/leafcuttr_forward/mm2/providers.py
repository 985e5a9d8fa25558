"""`${NAME:PATH:KEY}` in a value: what a provider has in the place of it, as with Kafka's ConfigProviders (KIP-297).

Taken are Kafka's own: properties files, folders with a file for each key, and variables of the environment.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from leafcuttr_sdk.properties import Property, parse_properties

PREFIX: Final = "config.providers"
_REFERENCE: Final = re.compile(r"\$\{([^}:]+):(?:([^}]*?):)?([^}:]*)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."


def resolver(properties: Sequence[Property]) -> Callable[[str], str]:
    """What puts values in the place of references to the providers that these properties name. It raises ValueError
    with one clause; a reference to a provider that is not named is left as it is."""
    given = {each.key.strip(): each.value.strip() for each in properties}
    names = [name.strip() for name in given.get(PREFIX, "").split(",") if name.strip()]
    looks = {name: _look(given.get(f"{PREFIX}.{name}.class", "")) for name in names}

    def resolve(value: str) -> str:
        return _REFERENCE.sub(lambda match: _found(looks, match), value)

    return resolve


Look = Callable[[str, str], str | None]


def _found(looks: Mapping[str, Look], match: re.Match[str]) -> str:
    name, path, key = match[1], match[2] or "", match[3]
    if name not in looks:
        return match[0]
    try:
        value = looks[name](path, key)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ValueError(f"{match[0]}: {path} cannot be read: {why}") from None
    if value is None:
        raise ValueError(f"{match[0]}: {path or 'the environment'} has no {key}")
    return value


def _look(name: str) -> Look:
    found = _LOOKS.get(name.removeprefix(_PACKAGE))
    if found is not None:
        return found

    def refuse(path: str, key: str) -> str | None:
        raise ValueError(
            f"its provider is {name or 'without a class'}; allowed are {', '.join(_LOOKS)} of {_PACKAGE}*"
        )

    return refuse


def _in_file(path: str, key: str) -> str | None:
    found = {each.key: each.value for each in parse_properties(Path(path).read_text())}
    return found.get(key)


def _in_folder(path: str, key: str) -> str | None:
    file = Path(path) / key
    # A key is the name of a file in the folder, and no way out of it.
    if file.parent != Path(path) or not file.is_file():
        return None
    return file.read_text()


def _in_environment(path: str, key: str) -> str | None:
    return os.environ.get(key)


_LOOKS: Final[Mapping[str, Look]] = {
    "FileConfigProvider": _in_file,
    "DirectoryConfigProvider": _in_folder,
    "EnvVarConfigProvider": _in_environment,
}
