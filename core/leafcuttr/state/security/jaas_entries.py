"""The JAAS entries of a mechanism on a listener, where Kafka has them: in the listener's setting for the mechanism, or
in the file that KAFKA_OPTS names.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.jaas import JaasEntry, JaasError, parse_entry, parse_file
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError

_LOGIN_CONFIG: Final = "java.security.auth.login.config"


def jaas_entries(settings: Settings, listener: str, mechanism: str) -> tuple[str, Sequence[JaasEntry]]:
    """Where they come from, for messages, and the entries: the same object for the same text. Empty where neither is
    there. Raises StartError for a file; what a setting has was checked when it was taken (`checks.jaas_entry`)."""
    name = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = settings.values.get(name)
    if text is None:
        path = java_property(_LOGIN_CONFIG)
        return f"KAFKA_OPTS: {path}", () if path is None else _entries_of_file(path, listener.lower())
    return name, _entries_of_text(str(text))


def java_property(name: str) -> str | None:
    """What KAFKA_OPTS sets a property of Java to (`-Dname=value`)."""
    beginning = f"-D{name}="
    words = os.environ.get("KAFKA_OPTS", "").split()
    return next((word.removeprefix(beginning) for word in words if word.startswith(beginning)), None)


@lru_cache(16)  # for each connection
def _entries_of_text(text: str) -> Sequence[JaasEntry]:
    return (parse_entry(text),)


@lru_cache(16)  # read at the start, as by Java
def _entries_of_file(path: str, listener: str) -> Sequence[JaasEntry]:
    try:
        sections = parse_file(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, JaasError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise StartError(f"KAFKA_OPTS: {path}: {why}") from None
    return tuple(sections.get(f"{listener}.KafkaServer") or sections.get("KafkaServer") or ())
