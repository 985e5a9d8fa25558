"""The settings of clients that a person gave to a command (`-X`, `--client-config`), for our own client.

For librdkafka they are translated in `librdkafka.properties`.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from leafcuttr.cli.common.pairs import pairs, read_properties
from leafcuttr.cli.common.target import Target
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.known_names import KNOWN
from leafcuttr.client.properties import addresses, client_settings
from leafcuttr.client.settings import ClientSettings

CLIENT_ID: Final = "leafcuttr-cli"


def all_properties(given: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """Those of the file, then those of the line. Raises click.UsageError."""
    return (*(() if file is None else _settings_in(file)), *given)


def _settings_in(file: Path) -> tuple[str, ...]:
    """The lines of a file of settings that say something. Raises click.UsageError.

    A file whose name ends in .properties is read as Java reads it; of others each line is KEY=VALUE as it stands.
    """
    try:
        if file.suffix == ".properties":
            return tuple(f"{name}={value}" for name, value in read_properties(file).items())
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--client-config {file}: {error}") from None
    except ValueError as error:
        raise click.UsageError(f"--client-config: a line is no KEY=VALUE: {error}") from None
    words = [line for line in lines if line and not line.startswith(("#", "!"))]
    for word in words:
        if "=" not in word:
            # Not the line itself: it may be half a password.
            raise click.UsageError(f"--client-config {file}: a line is no KEY=VALUE")
    return tuple("=".join(part.strip() for part in word.split("=", 1)) for word in words)


def settings_of(target: Target) -> ClientSettings:
    """Raises click.UsageError, also for a name that no client has."""
    try:
        addresses("--bootstrap-server", target.address)
    except ClientSettingError as error:
        raise click.UsageError(str(error)) from None
    found = checked_settings({"bootstrap.servers": target.address, **pairs("-X", target.properties)})
    for name in found.unknown:
        near = difflib.get_close_matches(name, KNOWN, 1)
        meant = f' (did you mean "{near[0]}"?)' if near else ""
        # librdkafka's own words.
        raise click.UsageError(f'No such configuration property: "{name}"{meant}')
    return found


def checked_settings(properties: Mapping[str, str]) -> ClientSettings:
    """Raises click.UsageError for a value that cannot be used."""
    try:
        return client_settings(properties, client_id=CLIENT_ID)
    except ClientSettingError as error:
        raise click.UsageError(str(error)) from None
