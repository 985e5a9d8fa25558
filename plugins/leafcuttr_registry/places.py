"""Where in a schema something is wrong, for people: what the message does not say itself."""

import re

from leafcuttr_sdk.schemas import SchemaError


def place_not_said(error: SchemaError) -> str:
    """`at Order.id, line 3`; empty where the message says it all."""
    message = str(error)
    places = []
    if error.path and error.path not in message:
        places.append(f"at {error.path}")
    if error.line is not None and not re.search(rf"\bline {error.line}\b", message):
        places.append(f"line {error.line}")
    return ", ".join(places)
