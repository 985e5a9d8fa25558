"""Names of topics, as Kafka allows them."""

import re
from typing import Final

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def check_topic(name: str) -> str:
    """The name, which a topic can have. Raises ValueError."""
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"{name[:60]!r} is no name of a topic: it has 1 to 249 letters, digits, '.', '_' and '-', "
            "and is not . or .."
        )
    return name
