"""`flatten`: Connect's Flatten. Lists stay as they are; an object without members leaves nothing."""

from collections.abc import Mapping
from typing import Any, Final, cast

from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.documents.parts import changer
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import members_of
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.records import Record

MOST_NAMES: Final = 1_000_000
"""Characters of all names: fields deep down repeat the names of all above them."""


def make_flatten(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    delimiter: str = values["delimiter"]

    def flatten(document: Any, _: Record) -> Any:
        members = members_of(document)
        return _flat(members, delimiter) if any(type(one) is dict for one in members.values()) else document

    return changer(context, values, flatten)


def _flat(document: dict[str, Any], delimiter: str) -> dict[str, Any]:
    """Raises CannotFilterError for one whose names would be too long."""
    flat: dict[str, Any] = {}
    size = 0
    waiting = [("", iter(document.items()))]
    while waiting:
        before, members = waiting[-1]
        for name, value in members:
            whole = before + name
            size += len(whole)
            if size > MOST_NAMES:
                raise CannotFilterError(
                    f"the names of its fields, flattened, have more than {MOST_NAMES} characters"
                )
            if type(value) is dict:
                waiting.append((whole + delimiter, iter(cast("dict[str, Any]", value).items())))
                break
            flat[whole] = value
        else:
            waiting.pop()
    return flat
