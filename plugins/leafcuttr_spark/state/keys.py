"""Which key of a step's state somebody means."""

import json
from decimal import Decimal
from typing import Any


def is_value(found: Any, text: str) -> bool:
    """Whether the text means this value: as JSON, or as the state is printed, without quotes too."""
    printed = json.dumps(found, ensure_ascii=False, default=str)
    plain = json.loads(printed)
    if text in (printed, plain):
        return True
    try:
        # 1.1 is no `float` where the key is a decimal.
        meant = json.loads(text), json.loads(text, parse_float=Decimal)
    except ValueError:
        return False
    # Numbers are equal whatever their types; true is not 1.
    return any(each in (found, plain) and isinstance(each, bool) == isinstance(found, bool) for each in meant)
