"""The settings of clients that a person gave to a command (`-X`, `--client-config`), for our own client.

For librdkafka they are translated in `librdkafka.properties`.
"""

import difflib
from collections.abc import Mapping
from typing import Final

import click

from leafcuttr.cli.common.pairs import pairs
from leafcuttr.cli.common.target import Target
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.known_names import KNOWN
from leafcuttr.client.properties import addresses, client_settings
from leafcuttr.client.settings import ClientSettings

CLIENT_ID: Final = "leafcuttr-cli"


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
