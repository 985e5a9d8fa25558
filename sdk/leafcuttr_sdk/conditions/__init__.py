"""Conditions on records: the language of `leafcuttr consume --filter`, for plugins.

    wanted = parse('value.total >= 100 and headers.source == "web"')
    wanted.matches(record)

A condition is parsed once and then evaluated for each record. It runs no code of its author. What it costs has a bound:
one parse of each JSON document that it looks into, and of each regular expression a time that grows with the length of
the text only. The reference of the language has fields, operators and limits.

    condition       a condition that has been parsed
    parser, tokens  the language
    values          fields of a record, and how values compare
    regular, automaton, searching    regular expressions, in a time that has a bound
    times           moments and durations as people write them
    errors          what is wrong with a condition, and where
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.conditions.condition import Condition, parse
    from leafcuttr_sdk.conditions.errors import ConditionError
    from leafcuttr_sdk.conditions.values import Decode, Document, RecordFields, utf8_text

_PLACES: Final = {
    "condition": "Condition parse",
    "errors": "ConditionError",
    "values": "Decode Document RecordFields utf8_text",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = ["Condition", "ConditionError", "Decode", "Document", "RecordFields", "parse", "utf8_text"]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
