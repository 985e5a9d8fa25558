"""Which names a topic may have. Pure; the words of the reasons are those that Kafka's tools show to
people."""

import re
from typing import Final

from leafcuttr.errors import InvalidTopic

MAX_LENGTH: Final = 249
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL: Final[frozenset[str]] = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
METADATA_TOPIC: Final = "__cluster_metadata"

_legal = re.compile(r"[a-zA-Z0-9._-]+").fullmatch


def is_valid(name: str) -> bool:
    return len(name) <= MAX_LENGTH and name not in {".", ".."} and _legal(name) is not None


def check(name: str) -> None:
    """Raise InvalidTopic, with the reason, if no topic may be called `name`."""
    if is_valid(name):
        return
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    else:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    raise InvalidTopic(f"Topic name is invalid: {reason}")


def collision_key(name: str) -> str:
    """Equal for names that differ only in `.` and `_`: metric names cannot tell those apart, so one excludes
    the other."""
    return name.replace(".", "_")
