"""From JSON to types, by the rules of Avro 1.12's parser in Java, which Confluent's registry goes by.

Where that parser leaves out what the specification says of defaults (a symbol of the enum, bytes of the fixed's size),
the specification is followed: no reader could make such a default. Names that are defined later may be used, as there.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr_registry.avro import defaults, names
from leafcuttr_registry.avro.equality import same
from leafcuttr_registry.avro.json_text import dump, load
from leafcuttr_registry.avro.logical import logical_type
from leafcuttr_registry.avro.names import Name, full_name, name_of
from leafcuttr_registry.avro.types import (
    NO_DEFAULT,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    Forward,
    MapType,
    NamedType,
    PrimitiveType,
    RecordType,
    Types,
    UnionType,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import JsonValue, ResolvedReference, SchemaError

MOST_LEVELS: Final = 200
"""How deep types may be nested within one another."""
_MOST_FIXED: Final = (1 << 31) - 1 - 8
_MOST_REFERENCES: Final = 1000
_ORDERS: Final = ("ascending", "descending", "ignore")
# What the specification names, and so is no property of one's own. `default` is named in enums only.
_NAMED_KEYS: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_ENUM_KEYS: Final = _NAMED_KEYS | {"default"}
_FIELD_KEYS: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))

Node = dict[str, JsonValue]


class Parsed(NamedTuple):
    """What a text and its references say."""

    root: AvroType
    types: Types
    referenced: frozenset[str]
    """The fullnames of the types that the references are: the text names them and does not define them."""


def parse(
    text: str, references: Mapping[str, ResolvedReference], budget: Budget, *, validate: bool = True
) -> Parsed:
    """Raises SchemaError. Without `validate`, names may have letters of any script, namespaces may be anything, and
    defaults are not compared with their types: for schemas that were accepted by an earlier registry."""
    parser = _Parser(budget, validate)
    referenced: set[str] = set()
    for name, reference in _in_order(references).items():
        try:
            root = parser.read(reference.text)
        except SchemaError as error:
            raise SchemaError(
                f"in the reference {name!r}: {error}", path=error.path, line=error.line
            ) from None
        if isinstance(root, NamedType):
            referenced.add(root.name.full)
    root = parser.read(text)
    return Parsed(root, parser.types, frozenset(referenced))


def _in_order(references: Mapping[str, ResolvedReference]) -> dict[str, ResolvedReference]:
    """Each after those that it needs itself, and each name once."""
    found: dict[str, ResolvedReference] = {}
    pending: list[tuple[str, ResolvedReference, bool]] = [
        (name, one, False) for name, one in list(references.items())[::-1]
    ]
    while pending:
        name, reference, needed_are_in = pending.pop()
        if name in found:
            continue
        if needed_are_in or not reference.references:
            found[name] = reference
            if len(found) > _MOST_REFERENCES:
                raise SchemaError(f"too complex: more than {_MOST_REFERENCES} references")
            continue
        pending.append((name, reference, True))
        pending += [(name, one, False) for name, one in list(reference.references.items())[::-1]]
    return found


class _Parser:
    """Reads several texts, each of which may name what those before it have defined."""

    def __init__(self, budget: Budget, strict: bool) -> None:
        self.types: Types = {}
        self._budget = budget
        self._strict = strict
        self._begin()

    def _begin(self) -> None:
        self._forwards: list[tuple[Forward, str]] = []
        self._open: list[str] = []
        """Full names of the records whose fields are being read."""
        self._holders: list[AvroType] = []
        """Those of this text that have types in them."""
        self._unions: list[tuple[UnionType, str]] = []
        self._defaults: list[tuple[Field, str]] = []

    def read(self, text: str) -> AvroType:
        self._begin()
        root = self._type(load(text), None, "", 0)
        resolved = self._resolve()
        root = resolved.get(id(root), root)
        for union, path in self._unions:
            self._check_union(union, path)
        if self._strict:
            for field, path in self._defaults:
                if not defaults.valid(field.default, field.type, self._budget):
                    shown = "" if field.default is NO_DEFAULT else dump(field.default)[:80]  # type: ignore[arg-type]
                    raise SchemaError(
                        f"{path}/default: {shown} is no {_shown(field.type)}, which the field {field.name!r} is",
                        path=f"{path}/default",
                    )
        return root

    def _type(self, node: JsonValue, namespace: str | None, path: str, level: int) -> AvroType:
        self._budget.spend()
        if level > MOST_LEVELS:
            raise SchemaError(f"too complex: types are nested more than {MOST_LEVELS} levels deep", path=path)
        if isinstance(node, str):
            return self._find(node, namespace, path)
        if isinstance(node, list):
            union = UnionType([])
            for at, one in enumerate(node):
                if isinstance(one, list):
                    where = f"{path}/{at}"
                    raise SchemaError(f"{where}: a union is no branch of a union", path=where)
                union.branches.append(self._type(one, namespace, f"{path}/{at}", level + 1))
            self._holders.append(union)
            self._unions.append((union, path))
            return union
        if not isinstance(node, dict):
            raise SchemaError(f"{path or '/'}: {dump(node)} is no type", path=path)
        kind = node.get("type")
        if not isinstance(kind, str):
            raise SchemaError(f"{path or '/'}: a type needs `type`, and it is a string", path=path)
        if kind in names.PRIMITIVES:
            return self._finished(PrimitiveType(kind, _props(node, _NAMED_KEYS)))
        if kind in ("record", "error"):
            return self._record(node, namespace, path, level)
        if kind == "enum":
            return self._enum(node, namespace, path)
        if kind == "fixed":
            return self._fixed(node, namespace, path)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in node:
                raise SchemaError(f"{path or '/'}: the {kind} has no `{key}`", path=path)
            inner = self._type(node[key], namespace, f"{path}/{key}", level + 1)
            props = _props(node, _NAMED_KEYS)
            holder = ArrayType(inner, props) if kind == "array" else MapType(inner, props)
            self._holders.append(holder)
            return self._finished(holder)
        if not self._strict:
            # Parsers before Avro 1.12 took an object for a name.
            return self._find(kind, namespace, f"{path}/type")
        raise SchemaError(
            f"{path}/type: {kind[:80]!r} is neither a primitive type nor record, error, enum, array, map or fixed",
            path=f"{path}/type",
        )

    def _find(self, text: str, namespace: str | None, path: str) -> AvroType:
        if text in names.PRIMITIVES:
            return PrimitiveType(text, {})
        full = full_name(text, namespace)
        found = self.types.get(full)
        if found is None and full not in self._open:
            # As Java: a name without a namespace that the enclosing one does not have. Within a record of that name it
            # is that record, which is defined when its fields are read.
            found = self.types.get(text)
        if found is not None:
            return found
        forward = Forward(full)
        self._forwards.append((forward, path))
        return forward

    def _record(self, node: Node, namespace: str | None, path: str, level: int) -> AvroType:
        name = self._name(node, namespace, path)
        record = RecordType(name, _text(node, "doc"), node["type"] == "error")
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{path or '/'}: the record {name.full} has no list `fields`", path=path)
        self._open.append(name.full)
        for at, one in enumerate(fields):
            where = f"{path}/fields/{at}"
            if not isinstance(one, dict):
                raise SchemaError(f"{where}: a field is an object, and no {dump(one)[:40]}", path=where)
            if "type" not in one:
                raise SchemaError(f"{where}: the field has no `type`", path=where)
            type_of = self._type(one["type"], name.namespace, f"{where}/type", level + 1)
            field = self._field(one, type_of, where)
            if field.name in record.by_name:
                raise SchemaError(f"{where}/name: there are two fields {field.name!r}", path=f"{where}/name")
            record.by_name[field.name] = field
            record.fields.append(field)
            record.aliased |= bool(field.aliases)
        self._open.pop()
        record.props = _props(node, _NAMED_KEYS)
        self._holders.append(record)
        return self._define(record, node, path)

    def _field(self, node: Node, of: AvroType, path: str) -> Field:
        field = Field(self._simple_name(node, "the field", path), of)
        field.doc = _text(node, "doc")
        if "order" in node:
            order = node["order"]
            if not isinstance(order, str) or order.lower() not in _ORDERS:
                raise SchemaError(
                    f"{path}/order: {dump(order)[:40]} is none of {', '.join(_ORDERS)}", path=f"{path}/order"
                )
            field.order = order.lower()
        if "default" in node:
            default = node["default"]
            if isinstance(default, str) and of.kind in ("float", "double"):
                number = defaults.number_in(default)
                if number is None:
                    raise SchemaError(
                        f"{path}/default: {default[:40]!r} is no number", path=f"{path}/default"
                    )
                default = number
            field.default = default
            self._defaults.append((field, path))
        field.aliases = _aliases(node, path)
        field.props = _props(node, _FIELD_KEYS)
        return field

    def _enum(self, node: Node, namespace: str | None, path: str) -> AvroType:
        name = self._name(node, namespace, path)
        listed = node.get("symbols")
        if not isinstance(listed, list):
            raise SchemaError(f"{path or '/'}: the enum {name.full} has no list `symbols`", path=path)
        symbols: dict[str, None] = {}
        for at, symbol in enumerate(listed):
            where = f"{path}/symbols/{at}"
            if not isinstance(symbol, str):
                raise SchemaError(f"{where}: a symbol is a string, and no {dump(symbol)[:40]}", path=where)
            self._check_name(symbol, "the symbol", where)
            if symbol in symbols:
                raise SchemaError(f"{where}: the symbol {symbol!r} comes twice", path=where)
            symbols[symbol] = None
        default = _text(node, "default")
        if default is not None and default not in symbols:
            raise SchemaError(f"{path}/default: {default!r} is no symbol of the enum", path=f"{path}/default")
        found = EnumType(name, _text(node, "doc"), list(symbols), default, _props(node, _ENUM_KEYS))
        return self._define(found, node, path)

    def _fixed(self, node: Node, namespace: str | None, path: str) -> AvroType:
        name = self._name(node, namespace, path)
        size = node.get("size")
        if type(size) is not int or not 0 <= size <= _MOST_FIXED:
            raise SchemaError(
                f"{path}/size: the size of the fixed {name.full} is an integer from 0 to {_MOST_FIXED}",
                path=f"{path}/size",
            )
        return self._define(FixedType(name, _text(node, "doc"), size, _props(node, _NAMED_KEYS)), node, path)

    def _define(self, found: NamedType, node: Node, path: str) -> AvroType:
        """It is known from here on: what is in it names it as what comes later."""
        aliases: dict[Name, None] = {}
        for alias in _aliases(node, path):
            name = name_of(alias, found.name.namespace)
            self._check_name(name.simple, "the alias", f"{path}/aliases")
            aliases[name] = None
        found.aliases.extend(aliases)
        self._finished(found)
        full = found.name.full
        before = self.types.setdefault(full, found)
        if before is not found and not same(before, found, self._budget):
            raise SchemaError(f"{path or '/'}: {full} is defined twice, in different ways", path=path)
        return found

    def _name(self, node: Node, namespace: str | None, path: str) -> Name:
        text = _text(node, "name")
        if text is None:
            raise SchemaError(
                f"{path or '/'}: the {node['type']} has no `name`, or it is no string", path=path
            )
        own = _text(node, "namespace")
        name = name_of(text, namespace if own is None else own)
        self._check_name(name.simple, "the name", f"{path}/name")
        if self._strict and name.namespace:
            for part in name.namespace.split("."):
                self._check_name(part, f"a part of the namespace {name.namespace!r},", f"{path}/name")
        if name.full in names.PRIMITIVES:
            raise SchemaError(
                f"{path}/name: {name.full!r} is the name of a primitive type", path=f"{path}/name"
            )
        return name

    def _simple_name(self, node: Node, what: str, path: str) -> str:
        text = _text(node, "name")
        if text is None:
            raise SchemaError(f"{path}: {what} has no `name`, or it is no string", path=path)
        self._check_name(text, what, f"{path}/name")
        return text

    def _check_name(self, text: str, what: str, path: str) -> None:
        if wrong := names.fault(text, strict=self._strict):
            raise SchemaError(f"{path}: {what} {text[:80]!r} {wrong}", path=path)

    def _finished(self, found: AvroType) -> AvroType:
        if found.props:
            found.logical = logical_type(found)
        return found

    def _resolve(self) -> dict[int, AvroType]:
        """Put the types in for the names that were used before they were defined."""
        resolved: dict[int, AvroType] = {}
        for forward, path in self._forwards:
            found = self.types.get(forward.full)
            if found is None:
                raise SchemaError(f"{path or '/'}: {forward.full[:80]!r} is not defined", path=path)
            resolved[id(forward)] = found
        if not resolved:
            return resolved
        for holder in self._holders:
            if isinstance(holder, RecordType):
                for field in holder.fields:
                    field.type = resolved.get(id(field.type), field.type)
            elif isinstance(holder, UnionType):
                holder.branches[:] = [resolved.get(id(one), one) for one in holder.branches]
            elif isinstance(holder, ArrayType):
                holder.items = resolved.get(id(holder.items), holder.items)
            elif isinstance(holder, MapType):
                holder.values = resolved.get(id(holder.values), holder.values)
        return resolved

    def _check_union(self, union: UnionType, path: str) -> None:
        """Specification, "Unions"."""
        labels: set[str] = set()
        for at, branch in enumerate(union.branches):
            if branch.label in labels:
                raise SchemaError(
                    f"{path}/{at}: the union has more than one branch {branch.label}", path=f"{path}/{at}"
                )
            labels.add(branch.label)


def _text(node: Node, key: str) -> str | None:
    """What is no string is ignored, as Java's library does."""
    value = node.get(key)
    return value if isinstance(value, str) else None


def _props(node: Node, but: frozenset[str]) -> dict[str, JsonValue]:
    return {key: value for key, value in node.items() if key not in but}


def _aliases(node: Node, path: str) -> list[str]:
    if "aliases" not in node:
        return []
    listed = node["aliases"]
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise SchemaError(f"{path}/aliases: it is a list of strings", path=f"{path}/aliases")
    return list(dict.fromkeys(one for one in listed if isinstance(one, str)))


def _shown(of: AvroType) -> str:
    if isinstance(of, UnionType):
        return f"union of {', '.join(branch.label for branch in of.branches)}"[:120]
    return f"{of.kind} {of.name.full}" if isinstance(of, NamedType) else of.kind
