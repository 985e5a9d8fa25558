"""Avro schemas, changes of them and data, made by a `random.Random`: one with a seed for comparisons with Avro's own
library, or one of Hypothesis."""

from __future__ import annotations

import copy
import json
import string
from collections.abc import Callable
from random import Random
from typing import Any

from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMES = ("A", "B", "C", "D")
SYMBOLS = ("RED", "GREEN", "BLUE", "GREY")
FIELDS = ("id", "name", "note", "at", "x")
NAMESPACES = (None, None, "one", "one.two")
LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "string", "logicalType": "uuid", "owner": {"b": [1, 2.5], "a": None}},
)


class Maker:
    """Makes one schema."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.defined: list[str] = []
        """Full names; those of records that are being made too."""
        self.open: list[str] = []

    def schema(self, depth: int = 3, namespace: str | None = None) -> Any:
        random = self.random
        kinds: list[Callable[[], Any]] = [
            lambda: random.choice(PRIMITIVES),
            lambda: random.choice(PRIMITIVES),
            lambda: copy.deepcopy(random.choice(LOGICAL)),
            lambda: self.named(depth, namespace),
        ]
        if depth:
            kinds += [
                lambda: {"type": "array", "items": self.schema(depth - 1, namespace)},
                lambda: {"type": "map", "values": self.schema(depth - 1, namespace)},
                lambda: self.union(depth - 1, namespace),
                lambda: self.named(depth, namespace),
            ]
        return random.choice(kinds)()

    def named(self, depth: int, namespace: str | None) -> Any:
        random = self.random
        closed = [name for name in self.defined if name not in self.open]
        if closed and random.random() < 0.3:
            return random.choice(closed)
        name = random.choice(NAMES)
        own = random.choice((*NAMESPACES, namespace))
        full = f"{own or namespace}.{name}" if own or namespace else name
        if full in self.defined:
            return random.choice(closed) if closed else "string"
        self.defined.append(full)
        made: dict[str, Any] = {"type": "", "name": name}
        if own is not None:
            made["namespace"] = own
        kind = (
            random.choice(("record", "record", "enum", "fixed"))
            if depth
            else random.choice(("enum", "fixed"))
        )
        made["type"] = kind
        if kind == "enum":
            made["symbols"] = random.sample(SYMBOLS, random.randint(1, 4))
            if random.random() < 0.3:
                made["default"] = random.choice(made["symbols"])
        elif kind == "fixed":
            made["size"] = random.choice((0, 2, 4))
        else:
            self.open.append(full)
            made["fields"] = [
                self.field(name, depth, own or namespace)
                for name in random.sample(FIELDS, random.randint(0, 4))
            ]
            if random.random() < 0.3:
                made["fields"].append({"name": "next", "type": ["null", full], "default": None})
            self.open.remove(full)
        if random.random() < 0.2:
            made["doc"] = random.choice(("", "words", "ü\n"))
        if random.random() < 0.2:
            made["aliases"] = random.sample(("A", "one.B", "two.C"), 2)
        return made

    def field(self, name: str, depth: int, namespace: str | None) -> dict[str, Any]:
        random = self.random
        made: dict[str, Any] = {"name": name, "type": self.schema(depth - 1, namespace)}
        if random.random() < 0.4 and (value := easy_default(made["type"], random)) is not NOTHING:
            made["default"] = value
        if random.random() < 0.1:
            made["aliases"] = [random.choice(FIELDS)]
        if random.random() < 0.1:
            made["order"] = random.choice(("ascending", "descending", "ignore"))
        if random.random() < 0.1:
            made["tags"] = {"z": 1, "a": [True, None, 0.1]}
        return made

    def union(self, depth: int, namespace: str | None) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 4)):
            branch = self.schema(depth, namespace)
            if isinstance(branch, list):
                continue
            key = branch if isinstance(branch, str) else branch["type"]
            if key in ("record", "enum", "fixed"):
                key = json.dumps(branch)
            branches.setdefault(key, branch)
        return list(branches.values())


NOTHING = object()


def easy_default(of: Any, random: Random) -> Any:
    """A default, for types that need no look at definitions."""
    if isinstance(of, list):
        return easy_default(random.choice(of), random) if of else NOTHING
    kind = of["type"] if isinstance(of, dict) else of
    if kind == "enum":
        return random.choice(of["symbols"])
    if kind == "fixed":
        return "\xff" * of["size"]
    return {
        "null": None,
        "boolean": True,
        "int": -7,
        "long": 1 << 40,
        "float": 0.1,
        "double": random.choice((1, 1e300, 0.5)),
        "bytes": "\x00ÿ",
        "string": "text",
        "array": [],
        "map": {},
    }.get(kind, NOTHING)


def make(random: Random, depth: int = 3) -> Any:
    return Maker(random).schema(depth)


def slots(node: Any) -> list[tuple[Any, Any]]:
    """Where types are: a container, and the key or position in it."""
    found: list[tuple[Any, Any]] = []
    pending = [node]
    while pending:
        one = pending.pop()
        inner: list[tuple[Any, Any]] = []
        if isinstance(one, list):
            inner += [(one, at) for at in range(len(one))]
        elif isinstance(one, dict):
            inner += [(one, key) for key in ("items", "values") if key in one]
            inner += [(field, "type") for field in one.get("fields", ())]
        found += inner
        pending += [container[key] for container, key in inner]
    return found


def change(random: Random, schema: Any) -> Any:
    """Another schema, which is like it."""
    changed = [copy.deepcopy(schema)]
    for _ in range(random.randint(1, 3)):
        container, key = random.choice([(changed, 0), *slots(changed[0])])
        container[key] = _changed(random, container[key])
    return changed[0]


def _changed(random: Random, node: Any) -> Any:
    made: Any
    if isinstance(node, list):
        made = list(node)
        what = random.randint(0, 3)
        if what == 0 and made:
            made.pop(random.randrange(len(made)))
        elif what == 1 and made:
            return random.choice(made)
        elif what == 2:
            made.insert(random.randint(0, len(made)), random.choice(PRIMITIVES))
            return list({json.dumps(one): one for one in made}.values())
        else:
            random.shuffle(made)
        return made
    if isinstance(node, str):
        made = random.choice(PRIMITIVES)
        return random.choice(
            (made, ["null", node], [node, "null"], [node], made, {"type": "array", "items": node})
        )
    kind = node["type"]
    if kind in ("record", "enum", "fixed") and random.random() < 0.3:
        _rename(random, node)
    elif kind == "record":
        _change_fields(random, node)
    elif kind == "enum":
        node["symbols"] = random.sample(SYMBOLS, random.randint(1, 4))
        node.pop("default", None)
        if random.random() < 0.4:
            node["default"] = random.choice(node["symbols"])
    elif kind == "fixed":
        node["size"] = random.choice((0, 2, 4, 8))
    elif random.random() < 0.5:
        return ["null", node]
    return node


def _rename(random: Random, node: dict[str, Any]) -> None:
    old = f"{node['namespace']}.{node['name']}" if node.get("namespace") else node["name"]
    if random.random() < 0.5:
        node["name"] = random.choice((*NAMES, "Z"))
    else:
        node["namespace"] = random.choice(("one", "three"))
    if random.random() < 0.5:
        node["aliases"] = [old]


def _change_fields(random: Random, node: dict[str, Any]) -> None:
    fields = node["fields"]
    what = random.randint(0, 4)
    if what == 0 and fields:
        fields.pop(random.randrange(len(fields)))
    elif what == 1:
        free = [name for name in (*FIELDS, "y", "z") if name not in {field["name"] for field in fields}]
        made: dict[str, Any] = {"name": random.choice(free), "type": random.choice(PRIMITIVES)}
        if random.random() < 0.5:
            made["default"] = easy_default(made["type"], random)
        fields.insert(random.randint(0, len(fields)), made)
    elif what == 2 and fields:
        field = random.choice(fields)
        if random.random() < 0.6:
            field["aliases"] = [field["name"]]
        field["name"] = "renamed"
    elif what == 3 and fields:
        field = random.choice(fields)
        if field.pop("default", NOTHING) is NOTHING:
            value = easy_default(field["type"], random)
            if value is not NOTHING:
                field["default"] = value
    else:
        random.shuffle(fields)


def datum(random: Random, of: AvroType, depth: int = 6) -> Any:
    """A value in Avro's JSON encoding. Raises RecursionError where there is none that is short."""
    if depth < -20:
        raise RecursionError
    if isinstance(of, RecordType):
        return {field.name: datum(random, field.type, depth - 1) for field in of.fields}
    if isinstance(of, EnumType):
        return random.choice(of.symbols)
    if isinstance(of, FixedType):
        return "".join(chr(random.randrange(256)) for _ in range(of.size))
    if isinstance(of, ArrayType):
        return [datum(random, of.items, depth - 1) for _ in range(random.randint(0, 3) if depth > 0 else 0)]
    if isinstance(of, MapType):
        keys = random.sample(string.ascii_letters, random.randint(0, 3) if depth > 0 else 0)
        return {key: datum(random, of.values, depth - 1) for key in keys}
    if isinstance(of, UnionType):
        if not of.branches:
            raise RecursionError
        flat = [one for one in of.branches if not isinstance(one, RecordType)]
        branch = random.choice(flat if depth <= 0 and flat else of.branches)
        return None if branch.kind == "null" else {branch.label: datum(random, branch, depth - 1)}
    return _primitive(random, of.kind)


def _primitive(random: Random, kind: str) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return random.random() < 0.5
    if kind in ("int", "long"):
        bits = 31 if kind == "int" else 63
        return random.choice(
            (0, -1, 63, 64, -64, -65, (1 << bits) - 1, -(1 << bits), random.getrandbits(bits - 1))
        )
    if kind in ("float", "double"):
        return random.choice((0.0, 1.5, -0.5, 1e30, "NaN", "Infinity", "-Infinity", 0.1))
    if kind == "bytes":
        return "".join(chr(random.randrange(256)) for _ in range(random.randint(0, 5)))
    return random.choice(("", "text", "ünïcode", "x" * 70, "\U0001f41c"))
