"""From types to text, as Java's Schema.toString writes it. Two texts of the same schema that differ in white space, in
the order of what the specification names, or in attributes that mean nothing give the same one; one's own properties
stay, in their order."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from leafcuttr_registry.avro import normalizer
from leafcuttr_registry.avro.json_text import dump, quoted
from leafcuttr_registry.avro.names import Name
from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    NoDefault,
    RecordType,
    UnionType,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import JsonValue

_Part: TypeAlias = "str | tuple[AvroType, str | None]"
"""Text, or a type that is to be written, and the namespace in which it is."""


def text_of(root: AvroType, known: Iterable[str], budget: Budget, *, normalized: bool = False) -> str:
    """`known`: fullnames that are not defined in the text, but elsewhere. Each other one is defined where it comes
    first. A stack and no recursion: what references define may be nested deeper than one text."""
    names = set(known)
    out: list[str] = []
    pending: list[_Part] = [(root, None)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        budget.spend()
        parts = list(_parts(*part, names, normalized))
        parts.reverse()
        pending += parts
    return "".join(out)


def _parts(of: AvroType, namespace: str | None, known: set[str], normalized: bool) -> Iterator[_Part]:
    if isinstance(of, NamedType):
        if of.name.full in known:
            yield quoted(of.name.within(namespace))
            return
        known.add(of.name.full)
        yield from _definition(of, namespace, normalized)
    elif isinstance(of, UnionType):
        yield "["
        for at, branch in enumerate(of.branches):
            yield "," if at else ""
            yield branch, namespace
        yield "]"
    elif isinstance(of, ArrayType | MapType):
        key = "items" if isinstance(of, ArrayType) else "values"
        yield f'{{"type":"{of.kind}","{key}":'
        yield (of.items if isinstance(of, ArrayType) else of.values), namespace
        yield _props(of, normalized) + "}"
    elif of.props:
        yield f'{{"type":"{of.kind}"{_props(of, normalized)}}}'
    else:
        yield f'"{of.kind}"'


def _definition(of: NamedType, namespace: str | None, normalized: bool) -> Iterator[_Part]:
    kind = "error" if isinstance(of, RecordType) and of.is_error and not normalized else of.kind
    yield f'{{"type":"{kind}","name":{quoted(of.name.simple)}'
    if of.name.namespace != namespace:
        yield f',"namespace":{quoted(of.name.namespace or "")}'
    if of.doc is not None and not (normalized and not of.doc):
        yield f',"doc":{quoted(of.doc)}'
    if isinstance(of, RecordType):
        yield ',"fields":['
        for at, field in enumerate(of.fields):
            yield f'{"," if at else ""}{{"name":{quoted(field.name)},"type":'
            yield field.type, of.name.namespace
            yield _rest(field, normalized) + "}"
        yield "]"
    elif isinstance(of, EnumType):
        yield f',"symbols":[{",".join(map(quoted, of.symbols))}]'
        if of.default is not None:
            yield f',"default":{quoted(of.default)}'
    elif isinstance(of, FixedType):
        yield f',"size":{of.size}'
    yield _props(of, normalized)
    if of.aliases:
        aliases = normalizer.sorted_aliases(of.aliases) if normalized else of.aliases
        yield _list("aliases", [_alias(one, of.name.namespace) for one in aliases])
    yield "}"


def _alias(alias: Name, namespace: str | None) -> str:
    """A dot says that it has no namespace, which Java's library does not write, and so loses."""
    return f".{alias.simple}" if namespace and not alias.namespace else alias.within(namespace)


def _rest(field: Field, normalized: bool) -> str:
    """What follows the type of a field."""
    text = "" if field.doc is None else f',"doc":{quoted(field.doc)}'
    if not isinstance(field.default, NoDefault):
        value = normalizer.default(field.default, field.type) if normalized else field.default
        text += f',"default":{dump(value)}'
    if field.order != "ascending":
        text += f',"order":"{field.order}"'
    if field.aliases:
        text += _list("aliases", normalizer.sorted_texts(field.aliases) if normalized else field.aliases)
    return text + _members(normalizer.sorted_properties(field.props) if normalized else field.props)


def _props(of: AvroType, normalized: bool) -> str:
    if not of.props:
        return ""
    return _members(normalizer.properties(of) if normalized else of.props)


def _members(props: dict[str, JsonValue]) -> str:
    return "".join(f",{quoted(key)}:{dump(value)}" for key, value in props.items())


def _list(key: str, texts: list[str]) -> str:
    return f',"{key}":[{",".join(map(quoted, texts))}]'
