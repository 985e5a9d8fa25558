"""What JAAS entries say of log-ins: the names and passwords for PLAIN, and whom to trust for the keys of tokens.

An entry is in a setting of a listener, or in the file that KAFKA_OPTS names.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.jaas import JaasEntry, JaasError, parse_entry, parse_file
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError

_PLAIN_MODULE: Final = "PlainLoginModule"
_LOGIN_CONFIG: Final = "-Djava.security.auth.login.config="


def trusted_file(settings: Settings, listener: str) -> str | None:
    """The authorities that sign the certificate of the keys' endpoint: `ssl.truststore.location` of the mechanism's
    JAAS entry, where Kafka has it. Raises StartError."""
    name = f"{LISTENER_PREFIX}{listener.lower()}.oauthbearer.sasl.jaas.config"
    text = settings.values.get(name)
    if text is None:
        return None
    try:
        return parse_entry(str(text)).options.get("ssl.truststore.location")
    except JaasError as error:
        raise StartError(f"{name}: {error}") from None


def named_users(settings: Settings, listener: str) -> Mapping[str, str] | None:
    """Names and passwords for PLAIN that the settings have, or the file that KAFKA_OPTS names; None: none of them says
    something. Raises StartError."""
    name = f"{LISTENER_PREFIX}{listener.lower()}.plain.sasl.jaas.config"
    text = settings.values.get(name)
    try:
        if text is not None:
            return _users_of_entry(str(text))
    except JaasError as error:
        raise StartError(f"{name}: {error}") from None
    return _users_of_file(listener)


@lru_cache(16)  # of each connection, when users change
def _users_of_entry(text: str) -> Mapping[str, str] | None:
    return _users_of([parse_entry(text)])


def _users_of_file(listener: str) -> Mapping[str, str] | None:
    return _read_users(os.environ.get("KAFKA_OPTS", ""), listener)


@lru_cache(16)  # read at the start, as by Java
def _read_users(options: str, listener: str) -> Mapping[str, str] | None:
    words = options.split()
    path = next((word.removeprefix(_LOGIN_CONFIG) for word in words if word.startswith(_LOGIN_CONFIG)), None)
    if path is None:
        return None
    try:
        sections = parse_file(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, JaasError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise StartError(f"KAFKA_OPTS: {path}: {why}") from None
    return _users_of(sections.get(f"{listener.lower()}.KafkaServer") or sections.get("KafkaServer") or [])


def _users_of(entries: list[JaasEntry]) -> Mapping[str, str] | None:
    for entry in entries:
        if entry.module.rpartition(".")[2] == _PLAIN_MODULE:
            return entry.users()
    return None
