"""From the bytes of an options message to options with names: the way back from `interpret.py`, for descriptors.

Options whose definition is neither in the schema nor in what it imports have no name and are left out, as Confluent's
registry leaves them out.
"""

import math
from collections.abc import Iterator

from leafcuttr_registry.protobuf import tree, wire
from leafcuttr_registry.protobuf.defaults import double_text, float_text
from leafcuttr_registry.protobuf.model import (
    REPEATED,
    TYPE_BOOL,
    TYPE_BYTES,
    TYPE_ENUM,
    TYPE_FLOAT,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_STRING,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Source,
    Universe,
)

_PACKABLE = {1: 8, 2: 4, 6: 8, 7: 4, 15: 4, 16: 8}


def decode_options(
    universe: Universe, source: Source, message: MessageInfo, options: list[tree.Option]
) -> None:
    """Replace what is encoded in `options`. Raises SchemaError for bytes that are no options."""
    if not any(isinstance(option, tree.Encoded) for option in options):
        return
    decoder = _Decoder(universe, source)
    found: list[tree.Option] = []
    try:
        for option in options:
            if not isinstance(option, tree.Encoded):
                found.append(option)
                continue
            for field, value in decoder.fields(message, wire.fields(option.data), 0):
                part = tree.NamePart(field.name if field.extension else field.proto.name, field.extension)
                found.append(tree.Option((part,), value, -1))
    except ValueError as error:
        raise source.error(-1, f"the options of a descriptor: {error}") from None
    options[:] = found


class _Decoder:
    def __init__(self, universe: Universe, source: Source) -> None:
        self._extensions: dict[tuple[str, int], FieldInfo] = {}
        for each in (*universe.sources.values(), source):
            for extension in each.extensions:
                if extension.message is not None:
                    self._extensions[extension.message.name, extension.proto.number] = extension

    def fields(
        self, message: MessageInfo, raw: list[tuple[int, int, wire.Raw]], depth: int
    ) -> Iterator[tuple[FieldInfo, tree.Value]]:
        if depth > wire.MAX_DEPTH:
            raise ValueError("values are nested too deep")
        numbers = {field.proto.number: field for field in message.fields.values()}
        # What comes twice of a field that is not repeated is merged, or the last counts (encoding.md, "Last One Wins").
        found = [
            (field, wire_type, value)
            for number, wire_type, value in raw
            if (field := numbers.get(number) or self._extensions.get((message.name, number))) is not None
        ]
        merged: dict[int, tuple[int, wire.Raw]] = {}
        for field, wire_type, value in found:
            number = field.proto.number
            before = merged[number][1] if number in merged else None
            if isinstance(before, bytes) and isinstance(value, bytes) and isinstance(field.type, MessageInfo):
                value = before + value
            merged[number] = wire_type, value
        done: set[int] = set()
        for field, wire_type, value in found:
            number = field.proto.number
            if field.proto.label != REPEATED:
                if number in done:
                    continue
                done.add(number)
                wire_type, value = merged[number]
            for each in self._values(field, wire_type, value, depth):
                yield field, each

    def _values(self, field: FieldInfo, wire_type: int, raw: wire.Raw, depth: int) -> Iterator[tree.Value]:
        type_ = field.proto.type
        if type_ in (TYPE_MESSAGE, TYPE_GROUP):
            assert isinstance(field.type, MessageInfo)
            inner = wire.fields(raw) if isinstance(raw, bytes) and wire_type == wire.LENGTH else raw
            if not isinstance(inner, list):
                raise ValueError("a value has another wire type than its field")
            yield tree.Aggregate(
                [
                    tree.Entry(f"[{each.name}]" if each.extension else _key(each), value, -1)
                    for each, value in self.fields(field.type, inner, depth + 1)
                ]
            )
        elif type_ in (TYPE_STRING, TYPE_BYTES):
            if not isinstance(raw, bytes):
                raise ValueError("a value has another wire type than its field")
            yield tree.Text(raw)
        elif isinstance(raw, list):
            raise ValueError("a value has another wire type than its field")
        elif wire_type == wire.LENGTH and isinstance(raw, bytes):
            yield from self._packed(field, raw)
        else:
            yield _scalar(field, wire.unscalar(type_, raw))

    def _packed(self, field: FieldInfo, data: bytes) -> Iterator[tree.Value]:
        type_ = field.proto.type
        size = _PACKABLE.get(type_)
        at = 0
        while at < len(data):
            raw: int | bytes
            if size is None:
                raw, at = wire.read_varint(data, at)
            else:
                raw, at = data[at : at + size], at + size
            yield _scalar(field, wire.unscalar(type_, raw))


def _key(field: FieldInfo) -> str:
    if field.proto.type == TYPE_GROUP and field.type is not None:
        return field.type.name.rpartition(".")[2]
    return field.proto.name


def _scalar(field: FieldInfo, number: float) -> tree.Value:
    type_ = field.proto.type
    if type_ == TYPE_BOOL:
        return tree.Word("true" if number else "false")
    if type_ == TYPE_ENUM and isinstance(field.type, EnumInfo):
        name = next((name for name, value in field.type.values.items() if value == number), None)
        return tree.Word(name) if name is not None else tree.Number(str(number), int(number))
    if isinstance(number, int):
        return tree.Number(str(number), number)
    text = (float_text if type_ == TYPE_FLOAT else double_text)(number)
    if math.isinf(number) or math.isnan(number):
        return tree.Number("-inf", -math.inf) if number < 0 else tree.Word(text)
    return tree.Number(text, float(text))
