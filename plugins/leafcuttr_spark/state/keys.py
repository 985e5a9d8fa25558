"""Which key of a step's state somebody means."""

import json
from typing import Any


def is_value(found: Any, text: str) -> bool:
    """Whether the text means this value: as JSON, or as the state is printed, without quotes too."""
    if str(found) == text:
        return True
    try:
        meant = json.loads(text)
    except ValueError:
        return False
    # Numbers are equal whatever their types; true is not 1.
    return bool(meant == found) and isinstance(meant, bool) == isinstance(found, bool)
