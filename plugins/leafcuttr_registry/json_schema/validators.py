"""Validators of the package jsonschema, as schemas are applied here.

Replaced are: `multipleOf`, exact for decimal fractions; `uniqueItems` and `enum`, which do not compare each with each;
`additionalItems` beside `items` that are no list; `unevaluatedProperties`, for which an adjacent `additionalProperties`
evaluates too when it is a schema. Formats are annotations (Validation 2020-12, 7.2.1), and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from leafcuttr_registry.json_schema import unevaluated
from leafcuttr_registry.json_schema.shapes import Values, key_of

if TYPE_CHECKING:
    from leafcuttr_registry.json_schema.graph import Node


@cache
def _class_of(number: int) -> Any:
    import jsonschema
    from jsonschema import validators

    base = {
        4: jsonschema.Draft4Validator,
        6: jsonschema.Draft6Validator,
        7: jsonschema.Draft7Validator,
        2019: jsonschema.Draft201909Validator,
        2020: jsonschema.Draft202012Validator,
    }[number]
    keywords = {"multipleOf": _multiple_of, "uniqueItems": _unique_items, "enum": _enum}
    if number in (6, 7, 2019):
        keywords["additionalItems"] = _additional_items
    if number >= 2019:
        keywords["unevaluatedProperties"] = unevaluated.properties
    return validators.extend(base, keywords)  # type: ignore[no-untyped-call]


def validator(node: Node) -> Any:
    """Of one node."""
    assert node.resolver is not None
    return _class_of(node.dialect.number)(
        node.value, registry=node._graph.documents.registry, _resolver=node.resolver
    )


def accepts(node: Node, value: Any) -> bool:
    """Whether a value is valid. Raises RecursionError for values that are nested too deeply."""
    if isinstance(node.value, bool):
        return node.value
    return bool(validator(node).is_valid(value))


def as_fraction(number: Any) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


def _failure(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)


def _multiple_of(validator: Any, divisor: Any, instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "number") and as_fraction(instance) % as_fraction(divisor):
        yield _failure(f"{instance!r} is not a multiple of {divisor}")


def _additional_items(validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Only beside a list of `items`; the package's own takes true there for a list."""
    first = schema.get("items")
    if validator.is_type(instance, "array") and isinstance(first, list):
        for place, item in enumerate(instance[len(first) :], len(first)):
            yield from validator.descend(item, rest, path=place)


def _unique_items(validator: Any, unique: Any, instance: Any, _: Any) -> Iterator[Any]:
    if not unique or not validator.is_type(instance, "array"):
        return
    if len({key_of(one) for one in instance}) != len(instance):
        yield _failure(f"{instance!r} has non-unique elements")


def _enum(_: Any, values: Any, instance: Any, __: Any) -> Iterator[Any]:
    keys = values.keys if isinstance(values, Values) else map(key_of, values)
    if key_of(instance) not in keys:
        yield _failure(f"{instance!r} is not one of {values!r}")
