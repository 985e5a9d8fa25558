"""A tree without differences that mean nothing, as Confluent's `normalize=true`: fields, constants, ranges, imports and
options in order, names of types in full with a leading dot, custom options whole, entries as maps, numbers as decimals.

The order of messages and enums stays: message indexes depend on it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.defaults import double_text
from leafcuttr_registry.protobuf.model import (
    SCALAR_NAMES,
    TYPE_GROUP,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Source,
    Universe,
)


def normalized(universe: Universe, source: Source) -> tree.File:
    """The tree of a schema that is linked."""
    assert source.tree is not None
    return _Normalizer(universe, source).file(source.tree)


class _Normalizer:
    def __init__(self, universe: Universe, source: Source) -> None:
        self._universe = universe
        self._source = source
        self._fields = {
            id(field.node): field for field in (*source.fields, *source.extensions) if field.node is not None
        }
        self._messages = {id(each.node): each for each in source.messages if each.node is not None}
        self._enums = {id(each.node): each for each in source.enums if each.node is not None}

    def file(self, file: tree.File) -> tree.File:
        scope = f"{file.package}.dummy" if file.package else "dummy"
        imports = {(each.kind, each.name): each for each in file.imports}
        services = iter(self._source.proto.service)
        body: list[tree.Message | tree.Enum | tree.Extend | tree.RpcService] = []
        for node in file.body:
            match node:
                case tree.Message():
                    body.append(self._message(node))
                case tree.Enum():
                    body.append(self._enum(node))
                case tree.RpcService():
                    body.append(self._service(node, next(services)))
                case tree.Extend():
                    pass
        body.extend(self._extends(file.body))
        return replace(
            file,
            syntax="proto3" if file.syntax == "proto3" else None,
            imports=[imports[key] for key in sorted(imports)],
            options=self._options(file.options, scope),
            body=body,
        )

    def _message(self, node: tree.Message) -> tree.Message:
        info = self._messages[id(node)]
        body: list[tree.Field | tree.Message | tree.Enum | tree.Extend] = []
        oneofs: dict[int, tree.Oneof] = {}
        for oneof in node.oneofs:
            fields = sorted((self._field(each) for each in oneof.fields), key=_number)
            oneofs[id(oneof)] = made = replace(
                oneof, fields=fields, options=self._options(oneof.options, f"{info.name}.{oneof.name}")
            )
            for each in fields:
                each.oneof = made
            body.extend(fields)
        plain = [
            self._field(each) for each in node.body if isinstance(each, tree.Field) and each.oneof is None
        ]
        plain.sort(key=_number)
        body.extend(plain)
        for child in node.body:
            if isinstance(child, tree.Message):
                if not self._messages[id(child)].map_entry:
                    body.append(self._message(child))
            elif isinstance(child, tree.Enum):
                body.append(self._enum(child))
        body.extend(self._extends(node.body))
        return replace(
            node,
            body=body,
            oneofs=sorted(oneofs.values(), key=lambda each: each.fields[0].number),
            options=self._options(node.options, info.name),
            reserved=_reserved(node.reserved),
            extensions=sorted(
                (
                    tree.Extensions([each], self._options(part.options, info.name))
                    for part in node.extensions
                    for each in part.ranges
                ),
                key=lambda part: part.ranges[0].start,
            ),
        )

    def _field(self, node: tree.Field) -> tree.Field:
        info = self._fields[id(node)]
        kind: str | tree.MapType | tree.Message
        label = node.label
        if isinstance(node.type, tree.Message):
            kind = self._message(node.type)
        elif isinstance(info.type, MessageInfo) and info.type.map_entry:
            key, value = info.type.fields["key"], info.type.fields["value"]
            kind = tree.MapType(_type(key), _type(value))
            label = None
        else:
            kind = _type(info)
        default = node.default
        if isinstance(default, tree.Number):
            default = _decimal(default)
        return replace(
            node, type=kind, label=label, options=self._options(node.options, info.name), default=default
        )

    def _extends(self, body: Iterable[object]) -> list[tree.Extend]:
        found: dict[str, tree.Extend] = {}
        for node in body:
            if isinstance(node, tree.Extend):
                for field in node.fields:
                    extendee = self._fields[id(field)].proto.extendee
                    extend = found.setdefault(extendee, tree.Extend(extendee, -1))
                    extend.fields.append(self._field(field))
        for extend in found.values():
            extend.fields.sort(key=_number)
        return list(found.values())

    def _enum(self, node: tree.Enum) -> tree.Enum:
        info = self._enums[id(node)]
        scope = info.name.rpartition(".")[0]
        first = node.values[0]
        values = sorted(
            (
                replace(value, options=self._options(value.options, f"{scope}.{value.name}".lstrip(".")))
                for value in node.values
            ),
            # The first constant is the default: it stays first.
            key=lambda value: (
                value.number != first.number,
                value.name != first.name,
                value.number,
                value.name,
            ),
        )
        return replace(
            node,
            values=values,
            options=self._options(node.options, info.name),
            reserved=_reserved(node.reserved),
        )

    def _service(self, node: tree.RpcService, proto: "object") -> tree.RpcService:
        name = f"{self._source.proto.package}.{node.name}".lstrip(".")
        methods = [
            replace(
                method,
                input=described.input_type,
                output=described.output_type,
                options=self._options(method.options, f"{name}.{method.name}"),
            )
            for method, described in zip(node.methods, proto.method, strict=True)  # type: ignore[attr-defined]
        ]
        return replace(node, methods=methods, options=self._options(node.options, name))

    def _options(self, options: list[tree.Option], scope: str) -> list[tree.Option]:
        found: dict[tuple[str, ...], tree.Option] = {}
        for index, option in enumerate(options):
            first = option.name[0]
            if not first.extension:
                key = tuple(part.name for part in option.name)
                value = self._value(option.value, None)
                # Repeated ones stay apart.
                found[(*key, f"#{index:06}")] = replace(option, value=value)
                continue
            extension = self._extension(first.name, scope)
            if extension is None:
                found[(first.name, f"#{index:06}")] = option
                continue
            inner = extension.type if isinstance(extension.type, MessageInfo) else None
            value = self._value(self._whole(option.name[1:], option.value, inner), inner)
            key = (extension.name,)
            name = (tree.NamePart(extension.name, True),)
            if extension.proto.label == 3:
                found[(extension.name, f"#{index:06}")] = tree.Option(name, value, option.at)
            elif key in found:
                merged = _merged(found[key].value, value, inner)
                found[key] = tree.Option(name, merged, option.at)
            else:
                found[key] = tree.Option(name, value, option.at)
        return [found[key] for key in sorted(found)]

    def _extension(self, name: str, scope: str) -> FieldInfo | None:
        found = self._universe.find(name, scope.rpartition(".")[0], self._source, options=True)
        return found if isinstance(found, FieldInfo) else None

    def _whole(
        self, path: tuple[tree.NamePart, ...], value: tree.Value, message: MessageInfo | None
    ) -> tree.Value:
        """A path below an option as the braces that say the same."""
        for part in reversed(path):
            name = part.name
            if part.extension:
                extension = self._extension(name, "dummy") if message is not None else None
                name = f"[{extension.name if extension is not None else name.lstrip('.')}]"
            value = tree.Aggregate([tree.Entry(name, value, -1)])
        return value

    def _value(self, value: tree.Value, message: MessageInfo | None) -> tree.Value:
        match value:
            case tree.Number():
                return _decimal(value)
            case tree.Sequence():
                return tree.Sequence([self._value(item, message) for item in value.items])
            case tree.Aggregate():
                return self._aggregate(value, message)
            case _:
                return value

    def _aggregate(self, value: tree.Aggregate, message: MessageInfo | None) -> tree.Aggregate:
        entries: list[tree.Entry] = []
        for entry in value.entries:
            if isinstance(entry.value, tree.Sequence) and not entry.value.items:
                continue
            key = entry.key
            field: FieldInfo | None = None
            if key.startswith("["):
                scope = message.name if message is not None else ""
                found = self._universe.find(key[1:-1], scope, self._source, options=True)
                if isinstance(found, FieldInfo):
                    key, field = f"[{found.name}]", found
            elif message is not None:
                field = message.fields.get(key)
            inner = field.type if field is not None and isinstance(field.type, MessageInfo) else None
            item = self._value(entry.value, inner)
            if isinstance(item, tree.Sequence) and len(item.items) == 1:
                item = item.items[0]
            entries.append(tree.Entry(key, item, entry.at))
        return tree.Aggregate(sorted(entries, key=lambda entry: entry.key))


def _merged(old: tree.Value, new: tree.Value, message: MessageInfo | None) -> tree.Value:
    """Two wholes of one singular message: singular messages within them are merged too."""
    if not isinstance(old, tree.Aggregate) or not isinstance(new, tree.Aggregate):
        return new
    entries = list(old.entries)
    for entry in new.entries:
        field = message.fields.get(entry.key) if message is not None else None
        singular = field is not None and field.proto.label != 3
        index = next((at for at, each in enumerate(entries) if each.key == entry.key), None)
        if index is not None and singular and isinstance(entry.value, tree.Aggregate):
            assert field is not None
            inner = field.type if isinstance(field.type, MessageInfo) else None
            entries[index] = tree.Entry(entry.key, _merged(entries[index].value, entry.value, inner), -1)
        else:
            entries.append(entry)
    return tree.Aggregate(sorted(entries, key=lambda entry: entry.key))


def _type(info: FieldInfo) -> str:
    if isinstance(info.type, (MessageInfo, EnumInfo)) and info.proto.type != TYPE_GROUP:
        return f".{info.type.name}"
    return SCALAR_NAMES[info.proto.type]


def _number(field: tree.Field) -> int:
    return field.number


def _decimal(number: tree.Number) -> tree.Number:
    value = number.value
    if isinstance(value, int):
        return tree.Number("-0" if number.text.startswith("-") and not value else str(value), value)
    return tree.Number(double_text(value), value)


def _reserved(reserved: list[tree.Reserved]) -> list[tree.Reserved]:
    """One statement for each range, in order, then one for each name."""
    by_start: Callable[[tree.Range], tuple[int, int]] = lambda each: (each.start, each.end)  # noqa: E731
    ranges = sorted((each for part in reserved for each in part.ranges), key=by_start)
    names = sorted((name, part.quoted) for part in reserved for name, _ in part.names)
    return [
        *(tree.Reserved([each], []) for each in ranges),
        *(tree.Reserved([], [(name, -1)], quoted) for name, quoted in names),
    ]
