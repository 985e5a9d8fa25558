"""Which names a Kafka topic can have, and which of them messages may go to."""

import re
from typing import Final

MAX_LENGTH: Final = 249

_legal: Final = re.compile(r"[a-zA-Z0-9._-]+").fullmatch


def why_no_kafka_topic(name: str) -> str | None:
    """Why no Kafka topic can have a name, in one clause; None if one can."""
    if not name:
        return "the name of a Kafka topic is not empty"
    if name in (".", ".."):
        return f"no Kafka topic can have the name {name}"
    if len(name) > MAX_LENGTH:
        return f"the name of a Kafka topic has at most {MAX_LENGTH} characters, this one has {len(name)}"
    if _legal(name) is None:
        return "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"
    return None


def why_no_target(name: str) -> str | None:
    """The same for one that messages are to be stored in: names with two underscores in front are of the broker's and
    its plugins' own topics."""
    if name.startswith("__"):
        return "names that begin with __ are those of internal topics"
    return why_no_kafka_topic(name)
