"""What options mean: finds the fields that they set, custom ones among them, and encodes their values.

As protoc's OptionInterpreter: an option is a path of fields from the options message of its element; options are merged
in the order of the text, and no field is set twice.
"""

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree, wire
from leafcuttr_registry.protobuf.defaults import INTEGERS, float32, float_of
from leafcuttr_registry.protobuf.model import (
    REPEATED,
    REQUIRED,
    SCALAR_NAMES,
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
from leafcuttr_sdk.schemas import SchemaError

_MESSAGES: Final = (TYPE_MESSAGE, TYPE_GROUP)
_EDITIONS: Final = {"proto2": 998, "proto3": 999}
Contents: TypeAlias = "dict[str, Contents]"
"""Which fields are set, by their full names, and what is set within them."""
_TRUE = ("true", "True", "t")
_FALSE = ("false", "False", "f")


class Interpreter:
    """Interprets the options of one file."""

    def __init__(self, universe: Universe, source: Source, budget: Budget) -> None:
        self._universe = universe
        self._source = source
        self._budget = budget
        self._uses: list[tuple[FieldInfo, int, int]] = []

    def encode(self, options: Sequence[tree.Option], message: MessageInfo, scope: str, target: int) -> bytes:
        """The bytes of an options message. `scope` is the full name of the element; `target` its kind, a
        `FieldOptions.OptionTargetType`. Raises SchemaError."""
        data = bytearray()
        done: Contents = {}
        for option in options:
            self._budget.spend(len(option.name))
            data += self._option(option, message, scope, target, done)
        return bytes(data)

    def check_targets(self) -> None:
        """Whether fields were used for kinds of elements that their own options allow, once these are known."""
        for field, target, at in self._uses:
            targets = field.proto.options.targets
            if targets and target not in targets:
                raise self._source.error(at, f"the option {field.name} cannot be set for {_TARGETS[target]}")

    def _option(
        self,
        option: tree.Option,
        message: MessageInfo,
        scope: str,
        target: int,
        done: "Contents",
    ) -> bytes:
        path: list[FieldInfo] = []
        current: MessageInfo | None = message
        shown = ".".join(f"({part.name})" if part.extension else part.name for part in option.name)[:200]
        for index, part in enumerate(option.name):
            if current is None:
                raise self._source.error(option.at, f"option {shown}: {path[-1].name} is no message")
            field = self._part(part, current, scope, option.at, shown)
            self._uses.append((field, target, option.at))
            self._check_edition(field, option.at)
            last = index == len(option.name) - 1
            if not last and field.proto.label == REPEATED:
                raise self._source.error(
                    option.at,
                    f"option {shown}: {field.name} is repeated: give a whole value in braces, for each time",
                )
            path.append(field)
            current = field.type if isinstance(field.type, MessageInfo) else None
        contents = self._set_once(path, done, option.at, shown)
        data = self._field(path[-1], option.value, option.at, 1, contents, text_format=False)
        for field in reversed(path[:-1]):
            data = wire.field(field.proto.number, field.proto.type, data)
        return data

    def _part(self, part: tree.NamePart, message: MessageInfo, scope: str, at: int, shown: str) -> FieldInfo:
        source = self._source
        if not part.extension:
            field = message.fields.get(part.name)
            if field is None or part.name == "uninterpreted_option":
                raise source.error(at, f"option {shown}: {message.name} has no field {part.name[:80]}")
            return field
        found = self._universe.find(part.name, scope.rpartition(".")[0], source, options=True)
        if not isinstance(found, FieldInfo) or not found.extension:
            reason = self._universe.missing(part.name, scope, source) if found is None else "is no extension"
            raise source.error(at, f"option {shown}: {reason}")
        if found.message is not message:
            raise source.error(at, f"option {shown}: {found.name} does not extend {message.name}")
        return found

    def _check_edition(self, field: FieldInfo, at: int) -> None:
        """Options come and go with editions (`FieldOptions.feature_support`)."""
        options = field.proto.options
        if not options.HasField("feature_support"):
            return
        edition = _EDITIONS.get(self._source.dialect) or self._source.proto.edition
        support = options.feature_support
        if support.edition_introduced and edition < support.edition_introduced:
            raise self._source.error(at, f"{field.name} is of later editions")
        if support.edition_removed and edition >= support.edition_removed:
            raise self._source.error(at, f"{field.name} is of earlier editions only")

    def _set_once(self, path: list[FieldInfo], done: "Contents", at: int, shown: str) -> "Contents":
        """`done`: what is set already. The answer is where the contents of a message go."""
        for field in path[:-1]:
            done = done.setdefault(field.name, {})
        last = path[-1]
        if last.proto.label == REPEATED:
            return {}
        if last.name in done:
            raise self._source.error(at, f"option {shown} is set already")
        contents: Contents = {}
        done[last.name] = contents
        return contents

    def _field(
        self,
        field: FieldInfo,
        value: tree.Value,
        at: int,
        depth: int,
        contents: "Contents",
        *,
        text_format: bool,
    ) -> bytes:
        """A field with its tag."""
        proto = field.proto
        if proto.type in _MESSAGES:
            if not isinstance(value, tree.Aggregate):
                raise self._bad(field, at, "a message, in braces")
            assert isinstance(field.type, MessageInfo)
            body = self._message(field.type, value, at, depth, contents)
        elif proto.type in (TYPE_STRING, TYPE_BYTES):
            if not isinstance(value, tree.Text):
                raise self._bad(field, at, "a string, in quotes")
            body = value.data
        else:
            body = wire.scalar(proto.type, self._number(field, value, at, text_format))
        return wire.field(proto.number, proto.type, body)

    def _number(self, field: FieldInfo, value: tree.Value, at: int, text_format: bool) -> float:
        type_ = field.proto.type
        if type_ in INTEGERS:
            if isinstance(value, tree.Number) and isinstance(value.value, int):
                least, most = INTEGERS[type_]
                if least <= value.value <= most and not (least == 0 and value.text.startswith("-")):
                    return value.value
                raise self._bad(field, at, f"{least} to {most}")
            raise self._bad(field, at, "an integer")
        if type_ == TYPE_BOOL:
            if isinstance(value, tree.Word):
                if value.name == "true" or (text_format and value.name in _TRUE):
                    return 1
                if value.name == "false" or (text_format and value.name in _FALSE):
                    return 0
            if text_format and isinstance(value, tree.Number) and value.text in ("0", "1"):
                return value.value
            raise self._bad(field, at, "true or false")
        if type_ == TYPE_ENUM:
            return self._enum(field, value, at, text_format)
        if text_format and isinstance(value, tree.Word) and value.name.lower() in ("inf", "infinity", "nan"):
            value = tree.Word("nan" if value.name.lower() == "nan" else "inf")
        number = float_of(value)
        if number is None:
            raise self._bad(field, at, "a number")
        return float32(number) if type_ == TYPE_FLOAT and not math.isnan(number) else number

    def _enum(self, field: FieldInfo, value: tree.Value, at: int, text_format: bool) -> int:
        enum = field.type
        assert isinstance(enum, EnumInfo)
        if isinstance(value, tree.Word):
            if value.name in enum.values:
                return enum.values[value.name]
            raise self._bad(field, at, f"a constant of {enum.name}")
        number = value.value if text_format and isinstance(value, tree.Number) else None
        if isinstance(number, int) and (number in enum.values.values() or not enum.closed):
            return number
        raise self._bad(field, at, f"a constant of {enum.name}")

    def _bad(self, field: FieldInfo, at: int, what: str) -> SchemaError:
        kind = SCALAR_NAMES.get(field.proto.type)
        return self._source.error(
            at, f"the value of {field.name}{f' ({kind})' if kind else ''} is not {what}"
        )

    def _message(
        self, message: MessageInfo, value: tree.Aggregate, at: int, depth: int, seen: "Contents"
    ) -> bytes:
        data = bytearray()
        oneofs: set[int] = set()
        for entry in value.entries:
            self._budget.spend()
            if entry.key.startswith("[") and "/" in entry.key:
                data += self._any(message, entry, depth)
                continue
            field = self._named(message, entry)
            self._check_edition(field, entry.at)
            if field.proto.label != REPEATED:
                if field.name in seen:
                    raise self._source.error(entry.at, f"{entry.key[:80]} is set already")
                if field.proto.HasField("oneof_index") and not field.extension:
                    if field.proto.oneof_index in oneofs:
                        raise self._source.error(entry.at, f"{entry.key[:80]}: its oneof is set already")
                    oneofs.add(field.proto.oneof_index)
            within = seen.setdefault(field.name, {})
            items = [entry.value]
            if isinstance(entry.value, tree.Sequence):
                if field.proto.label != REPEATED:
                    raise self._source.error(entry.at, f"{entry.key[:80]} is not repeated")
                items = entry.value.items
            for item in items:
                self._budget.spend()
                inner = within if field.proto.label != REPEATED else {}
                data += self._field(field, item, entry.at, depth + 1, inner, text_format=True)
        for field in message.fields.values():
            if field.proto.label == REQUIRED and field.name not in seen:
                raise self._source.error(at, f"the value lacks the required field {field.name}")
        return bytes(data)

    def _named(self, message: MessageInfo, entry: tree.Entry) -> FieldInfo:
        key = entry.key
        if not key.startswith("["):
            field = message.fields.get(key)
            if field is None:
                # A group goes by the name of its message.
                field = message.fields.get(key.lower())
                if field is not None and (field.proto.type != TYPE_GROUP or _last(field.type) != key):
                    field = None
            if field is None:
                raise self._source.error(entry.at, f"{message.name} has no field {key[:80]}")
            return field
        name = key[1:-1]
        found = self._universe.find(name, message.name, self._source, options=True) or self._universe.find(
            name, "", self._source, options=True
        )
        if not isinstance(found, FieldInfo) or not found.extension or found.message is not message:
            raise self._source.error(entry.at, f"{message.name} has no extension {name[:80]}")
        return found

    def _any(self, message: MessageInfo, entry: tree.Entry, depth: int) -> bytes:
        """The form of google.protobuf.Any that names the type of its message."""
        url = entry.key[1:-1]
        found = self._universe.symbols.get(url.rpartition("/")[2])
        if message.name != "google.protobuf.Any" or not isinstance(found, MessageInfo):
            raise self._source.error(entry.at, f"{message.name} has no field {entry.key[:80]}")
        if not isinstance(entry.value, tree.Aggregate):
            raise self._source.error(entry.at, f"the value of {entry.key[:80]} is not a message, in braces")
        body = self._message(found, entry.value, entry.at, depth + 1, {})
        return wire.field(1, TYPE_STRING, url.encode()) + wire.field(2, TYPE_BYTES, body)


def _last(info: MessageInfo | EnumInfo | None) -> str:
    return info.name.rpartition(".")[2] if info is not None else ""


_TARGETS: Final = {
    1: "files", 2: "extension ranges", 3: "messages", 4: "fields", 5: "oneofs", 6: "enums", 7: "constants of enums",
    8: "services", 9: "methods",
}  # fmt: skip
