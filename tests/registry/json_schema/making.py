"""Schemas and values by chance, for tests of what holds for all of them."""

from __future__ import annotations

import copy
import itertools
import json
import random
from typing import Any, Final

DIALECTS: Final = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
NAMES: Final = ("a", "b", "xa", "xb")
PATTERNS: Final = ("^x", "b$", "^a", "^$")
TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
SCALARS: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    2,
    1.0,
    1.5,
    6,
    -1,
    "",
    "a",
    "ab",
    "xa",
    "abc",
    "xxb",
)


def _values() -> list[Any]:
    """Many of the values that small schemas tell apart."""
    few: list[Any] = [None, True, 1, 1.5, "", "xa", [], {}]
    lists = [
        [],
        *([one] for one in SCALARS),
        *(list(pair) for pair in itertools.product(few, few)),
        [1, 1, 1],
        ["a", 1, None],
    ]
    objects: list[Any] = [{}]
    for name in NAMES:
        objects += [
            {name: one} for one in (*SCALARS, [], {}, [1], ["a"], {"a": 1}, {"b": "a"}, {"a": {}, "b": 1})
        ]
    for one, other in itertools.combinations(NAMES, 2):
        objects += [{one: left, other: right} for left, right in itertools.product(few, few)]
    objects += [
        dict.fromkeys(NAMES, 1),
        dict.fromkeys(NAMES, "a"),
        {"a": {"a": {"a": 1}}},
        {"a": {"a": {"a": "a"}}},
    ]
    nested = [[one] for one in objects[1:80:3]] + [[[one]] for one in few]
    return [*SCALARS, *lists, *objects, *nested]


VALUES: Final = _values()


class Maker:
    """Makes schemas of one draft."""

    def __init__(self, chance: random.Random, draft: int) -> None:
        self.chance = chance
        self.draft = draft

    def document(self) -> dict[str, Any]:
        """A schema with its draft and some definitions, which may refer to one another below their members."""
        key = "$defs" if self.draft >= 2019 else "definitions"
        schema = self.schema(3)
        schema = schema if isinstance(schema, dict) else {}
        if self.chance.random() < 0.5:
            inner = self.keywords(1)
            inner["properties"] = {"a": {"$ref": f"#/{key}/one"}, **inner.get("properties", {})}
            schema[key] = {"one": inner, "two": self.keywords(1)}
            target = {"$ref": f"#/{key}/{self.chance.choice(['one', 'two'])}"}
            place = self.chance.choice(["properties", "items", "anyOf", "allOf"])
            schema[place] = (
                {"a": target} if place == "properties" else target if place == "items" else [target]
            )
        return {"$schema": DIALECTS[self.draft], **schema}

    def schema(self, depth: int) -> Any:
        if self.draft > 4 and self.chance.random() < 0.06:
            return self.chance.random() < 0.6
        return self.keywords(depth)

    def keywords(self, depth: int) -> dict[str, Any]:
        chance = self.chance
        made: dict[str, Any] = {}
        options = ["enum", "number", "number", "string", "string"]
        if depth:
            options += ["object"] * 5 + ["array"] * 4 + ["union"] * 2 + ["not", "if"]
        kinds = chance.choices(options, k=chance.randint(0, 3))
        if kinds and chance.random() < 0.6:
            # Several keywords of one type say more than one of each.
            kinds = [kinds[0]] * len(kinds)
            made["type"] = kinds[0] if kinds[0] in TYPES else chance.choice(TYPES)
        elif chance.random() < 0.5:
            made["type"] = chance.choice(TYPES) if chance.random() < 0.6 else chance.sample(TYPES, 2)
        for kind in kinds:
            made.update(getattr(self, "_" + kind)(max(depth - 1, 0)))
        if self.draft == 4:
            for bound in ("Minimum", "Maximum"):
                if bound.lower() not in made:
                    made.pop(f"exclusive{bound}", None)
        return made

    def _enum(self, depth: int) -> dict[str, Any]:
        if self.draft >= 6 and self.chance.random() < 0.4:
            return {"const": self.chance.choice(SCALARS)}
        return {"enum": self.chance.sample(("a", "ab", 1, None, True, 1.5, "xa"), self.chance.randint(1, 4))}

    def _number(self, depth: int) -> dict[str, Any]:
        keyword = self.chance.choice(
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
        )
        if keyword == "multipleOf":
            return {keyword: self.chance.choice([1, 2, 0.5, 3])}
        if self.draft == 4 and keyword.startswith("exclusive"):
            return {keyword: self.chance.random() < 0.7, keyword[9:].lower(): self.chance.choice([0, 1, 2])}
        return {keyword: self.chance.choice([-1, 0, 1, 1.5, 2])}

    def _string(self, depth: int) -> dict[str, Any]:
        keyword = self.chance.choice(["minLength", "maxLength", "pattern"])
        return {
            keyword: self.chance.choice(PATTERNS[:3]) if keyword == "pattern" else self.chance.randint(0, 3)
        }

    def _named(self, depth: int, names: Any = NAMES) -> dict[str, Any]:
        return {name: self.schema(depth) for name in self.chance.sample(names, self.chance.randint(1, 2))}

    def _object(self, depth: int) -> dict[str, Any]:
        options = ["properties"] * 3 + [
            "patternProperties",
            "additionalProperties",
            "additionalProperties",
            "required",
            "count",
        ]
        options += ["dependencies"] if self.draft <= 7 else ["dependentRequired", "dependentSchemas"]
        options += ["propertyNames"] if self.draft >= 6 else []
        options += ["unevaluatedProperties"] * 2 if self.draft >= 2019 else []
        keyword = self.chance.choice(options)
        if keyword == "count":
            return {self.chance.choice(["minProperties", "maxProperties"]): self.chance.randint(0, 2)}
        if keyword == "required":
            return {keyword: self.chance.sample(NAMES, self.chance.randint(1, 2))}
        if keyword in ("additionalProperties", "unevaluatedProperties") and self.chance.random() < 0.6:
            return {keyword: False}
        if keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
            return {keyword: self.schema(depth)}
        if keyword == "dependentRequired" or (keyword == "dependencies" and self.chance.random() < 0.5):
            return {keyword: {self.chance.choice(NAMES): self.chance.sample(NAMES, 1)}}
        if keyword == "properties" and self.chance.random() < 0.3:
            return {keyword: self._named(depth), "additionalProperties": False}
        return {keyword: self._named(depth, PATTERNS if keyword == "patternProperties" else NAMES)}

    def _array(self, depth: int) -> dict[str, Any]:
        options = ["items", "items", "tuple", "tuple", "uniqueItems", "count"]
        options += ["contains"] if self.draft >= 6 else []
        options += ["unevaluatedItems"] if self.draft >= 2019 else []
        keyword = self.chance.choice(options)
        if keyword == "count":
            return {self.chance.choice(["minItems", "maxItems"]): self.chance.randint(0, 2)}
        if keyword == "uniqueItems":
            return {keyword: True}
        if keyword == "contains":
            counts = ["minContains", "maxContains"] if self.draft >= 2019 else []
            return {keyword: self.schema(depth)} | {
                one: self.chance.randint(0, 2) for one in counts if self.chance.random() < 0.4
            }
        if keyword == "tuple":
            first, rest = ("prefixItems", "items") if self.draft >= 2020 else ("items", "additionalItems")
            made: dict[str, Any] = {first: [self.schema(depth) for _ in range(self.chance.randint(1, 2))]}
            if self.chance.random() < 0.5:
                made[rest] = self.chance.choice([self.schema(depth), False])
            return made
        return {keyword: self.schema(depth)}

    def _union(self, depth: int) -> dict[str, Any]:
        keyword = self.chance.choice(["allOf", "anyOf", "oneOf"])
        return {keyword: [self.schema(depth) for _ in range(self.chance.randint(1, 3))]}

    def _not(self, depth: int) -> dict[str, Any]:
        return {"not": self.schema(depth)}

    def _if(self, depth: int) -> dict[str, Any]:
        if self.draft < 7:
            return {}
        made = {"if": self.schema(depth)}
        for branch in ("then", "else"):
            if self.chance.random() < 0.7:
                made[branch] = self.schema(depth)
        return made

    def changed(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document with a few changes."""
        made = copy.deepcopy(document)
        for _ in range(self.chance.randint(1, 2)):
            self._change(made)
        return made

    def _change(self, schema: Any) -> None:
        places = [one for one in _schemas(schema) if isinstance(one, dict)]
        place = self.chance.choice(places)
        keys = [key for key in place if key not in ("$schema", "$ref", "$defs", "definitions")]
        match self.chance.randrange(4):
            case 0 if keys:
                gone = self.chance.choice(keys)
                del place[gone]
                place.pop(f"exclusive{gone.capitalize()}", None) if self.draft == 4 else None
            case 1 if keys:
                key = self.chance.choice(keys)
                value = place[key]
                if isinstance(value, list) and len(value) > 1:
                    value.pop(self.chance.randrange(len(value)))
                elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    place[key] = value + 1
                elif isinstance(value, dict) and key in ("properties", "patternProperties"):
                    value[self.chance.choice(NAMES if key == "properties" else PATTERNS)] = self.schema(1)
                elif isinstance(value, list) and key in ("anyOf", "oneOf", "allOf", "prefixItems"):
                    value.append(self.schema(1))
            case _:
                place.update(self.keywords(1))


def _schemas(schema: Any) -> list[Any]:
    """All objects that are schemas, roughly: enough to change some."""
    found = [schema]
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key in ("enum", "const", "required", "type", "dependentRequired", "default"):
            continue
        if key in (
            "properties",
            "patternProperties",
            "$defs",
            "definitions",
            "dependentSchemas",
            "dependencies",
        ):
            for one in value.values():
                found += _schemas(one) if isinstance(one, dict) else []
        elif isinstance(value, dict):
            found += _schemas(value)
        elif isinstance(value, list):
            for one in value:
                found += _schemas(one) if isinstance(one, dict) else []
    return found


def text(schema: Any) -> str:
    return json.dumps(schema)
