"""Checks of single values that no range or list of choices can express. Each returns the reason, or None."""

import re
from typing import Final

from leafcuttr.config.setting import Value

_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+\Z")


def gzip_level(value: Value) -> str | None:
    """-1 (the library's own default) or 1 to 9."""
    return "Value must be between 1 and 9 or equal to -1" if value == 0 else None


def not_empty(value: Value) -> str | None:
    """A value may be left out, but if given it has to say something."""
    return "Value must be non-empty" if value is not None and not value else None


def throttled_replicas(value: Value) -> str | None:
    """`*`, `none`, or a list of partition:broker."""
    if not isinstance(value, tuple) or value in ((), ("*",), ("none",)):
        return None
    if all(_REPLICA.match(one.strip()) for one in value):
        return None
    return (
        "Must be the literal '*' or a list of replicas: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
