"""`unevaluatedProperties`: which members of an object the other keywords have evaluated (Core 2020-12, 11.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any


def properties(validator: Any, schema: Any, instance: Any, parent: Mapping[str, Any]) -> Iterator[Any]:
    """The keyword for validators of the package jsonschema."""
    if not validator.is_type(instance, "object"):
        return
    evaluated = _evaluated(validator, instance, parent, but="unevaluatedProperties")
    for name, member in instance.items():
        if name not in evaluated:
            yield from validator.descend(member, schema, path=name, schema_path=name)


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any, but: str = "") -> set[str]:
    """The names of members that a schema evaluates, and those that apply in its place do where they are valid."""
    if not isinstance(schema, dict):
        return set()
    if any(
        keyword in schema and keyword != but for keyword in ("additionalProperties", "unevaluatedProperties")
    ):
        return set(instance)
    names = {name for name in schema.get("properties", ()) if name in instance}
    for pattern in schema.get("patternProperties", ()):
        names |= {name for name in instance if re.search(pattern, name)}
    for within, one in _applied(validator, instance, schema):
        names |= _evaluated(within, instance, one)
    return names


def _applied(validator: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The schemas in place that the value is of, each with a validator that knows where it is."""
    from referencing.jsonschema import lookup_recursive_ref

    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema and keyword in validator.VALIDATORS:
            resolver = validator._resolver
            found = (
                lookup_recursive_ref(resolver)
                if keyword == "$recursiveRef"
                else resolver.lookup(schema[keyword])
            )
            yield validator.evolve(schema=found.contents, _resolver=found.resolver), found.contents
    candidates = [one for keyword in ("allOf", "anyOf", "oneOf") for one in schema.get(keyword, ())]
    candidates += [one for name, one in schema.get("dependentSchemas", {}).items() if name in instance]
    for one in candidates:
        within = _within(validator, one)
        if within.is_valid(instance):
            yield within, one
    if "if" in schema:
        condition = _within(validator, schema["if"])
        met = condition.is_valid(instance)
        if met:
            yield condition, schema["if"]
        branch = schema.get("then" if met else "else")
        if branch is not None:
            yield _within(validator, branch), branch


def _within(validator: Any, schema: Any) -> Any:
    if isinstance(schema, bool):
        return validator.evolve(schema=schema)
    from referencing.jsonschema import DRAFT201909, DRAFT202012

    specification = DRAFT202012 if "prefixItems" in validator.VALIDATORS else DRAFT201909
    resolver = validator._resolver.in_subresource(specification.create_resource(schema))
    return validator.evolve(schema=schema, _resolver=resolver)
