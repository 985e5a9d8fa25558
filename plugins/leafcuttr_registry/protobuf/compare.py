"""Why data of one schema cannot be read by another: what changed, by the names of Confluent's `Difference.Type`.

Fields are compared by number, as the wire does; types of fields by what they hold, whichever file has them. `writer` is
Confluent's "original", `reader` its "update". Which differences break is in `rules.py`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.compare_oneofs import compare_oneofs
from leafcuttr_registry.protobuf.members import Member, members
from leafcuttr_registry.protobuf.model import SCALAR_NAMES, EnumInfo, FieldInfo, MessageInfo
from leafcuttr_registry.protobuf.rules import BREAKING, sentence
from leafcuttr_registry.protobuf.schema import ProtobufSchema
from leafcuttr_sdk.schemas import Difference

COMPARE_STEPS: Final = 500_000
"""Fields, constants and messages of both schemas."""

KINDS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "GENERAL_NUMBER"),
    **dict.fromkeys(("sint32", "sint64"), "SIGNED_NUMBER"),
    **dict.fromkeys(("string", "bytes"), "STRING_OR_BYTES"),
    **dict.fromkeys(("fixed32", "sfixed32"), "FIXED32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "FIXED64"),
    "float": "FLOAT",
    "double": "DOUBLE",
}
"""Scalars of one group are read as one another (https://protobuf.dev/programming-guides/proto3/#updating)."""


@dataclass(slots=True)
class Pair:
    """A message of the writer and the one of the reader that stands for it."""

    writer: MessageInfo
    reader: MessageInfo
    path: str
    breaks: bool = False
    users: "list[tuple[Pair, str, str, str]]" = field(default_factory=list)
    """Fields of this type: the messages that they are in, their paths, both types."""


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """All of them, also those that break nothing. Raises SchemaError for schemas that are too complex."""
    return _Comparison(reader, writer).compare()


def breaking(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """Those that break. Raises SchemaError for schemas that are too complex."""
    return [each for each in differences(reader, writer) if each.type in BREAKING]


class _Comparison:
    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema) -> None:
        self._reader, self._writer = reader, writer
        self._budget = Budget(COMPARE_STEPS)
        self._found: list[Difference] = []
        self._pairs: dict[tuple[str, str], Pair] = {}
        self._ahead: list[Pair] = []

    def _add(self, type_: str, path: str, old: str | None = None, new: str | None = None) -> None:
        self._found.append(Difference(type_, path, old, new, sentence(type_, path, old, new)))

    def compare(self) -> list[Difference]:
        old, new = self._writer.linked.source, self._reader.linked.source
        if old.proto.package != new.proto.package:
            self._add("PACKAGE_CHANGED", "#/", old.proto.package or None, new.proto.package or None)
        self._types(
            [each for each in old.messages if each.parent is None],
            [each for each in new.messages if each.parent is None],
            _enums(old.enums, old.proto.package),
            _enums(new.enums, new.proto.package),
            "#",
        )
        while self._ahead:
            self._message(self._ahead.pop())
        self._spread()
        return self._found

    def _types(
        self,
        old: Sequence[MessageInfo],
        new: Sequence[MessageInfo],
        old_enums: dict[str, EnumInfo],
        new_enums: dict[str, EnumInfo],
        path: str,
    ) -> None:
        """The messages and enums that are declared at one place."""
        old_messages, new_messages = _declared(old), _declared(new)
        old_order = {name: index for index, name in enumerate(old_messages)}
        new_order = {name: index for index, name in enumerate(new_messages)}
        for name in dict.fromkeys((*old_messages, *new_messages)):
            here = f"{path}/{name}"
            before, after = old_messages.get(name), new_messages.get(name)
            if after is None:
                self._add("MESSAGE_REMOVED", here, name, None)
            elif before is None:
                self._add("MESSAGE_ADDED", here, None, name)
            else:
                self._pair(before, after, here)
                self._nested(before, after, here)
                if old_order[name] != new_order[name]:
                    self._add("MESSAGE_MOVED", here, str(old_order[name]), str(new_order[name]))
        for name in dict.fromkeys((*old_enums, *new_enums)):
            here = f"{path}/{name}"
            if name not in new_enums:
                self._add("ENUM_REMOVED", here, name, None)
            elif name not in old_enums:
                self._add("ENUM_ADDED", here, None, name)
            else:
                self._enum(old_enums[name], new_enums[name], here)

    def _nested(self, old: MessageInfo, new: MessageInfo, path: str) -> None:
        """Types within two messages."""
        sides = []
        for info in (old, new):
            inner = [each for each in info.children if not each.map_entry]
            enums = {each.name.rpartition(".")[2]: each for each in info.enums}
            sides.append((inner, enums))
        (old_inner, old_enums), (new_inner, new_enums) = sides
        self._types(old_inner, new_inner, old_enums, new_enums, path)

    def _pair(self, old: MessageInfo, new: MessageInfo, path: str) -> Pair:
        """The pair, which is compared once however often it is used."""
        key = (old.name, new.name)
        pair = self._pairs.get(key)
        if pair is None:
            self._pairs[key] = pair = Pair(old, new, path)
            self._ahead.append(pair)
        return pair

    def _enum(self, old: EnumInfo, new: EnumInfo, path: str) -> None:
        before, after = _constants(old), _constants(new)
        self._budget.spend(len(before) + len(after))
        for number in sorted(before.keys() | after.keys()):
            here = f"{path}/{number}"
            if number not in after:
                self._add("ENUM_CONST_REMOVED", here, before[number], None)
            elif number not in before:
                self._add("ENUM_CONST_ADDED", here, None, after[number])
            elif before[number] != after[number]:
                self._add("ENUM_CONST_CHANGED", here, before[number], after[number])

    def _message(self, pair: Pair) -> None:
        start = len(self._found)
        old, new = members(pair.writer), members(pair.reader)
        self._budget.spend(1 + len(old) + len(new))
        for change in compare_oneofs(old, new):
            self._add(change.type, f"{pair.path}/{change.path}", change.old, change.new)
        reserved = sorted((each.start, each.end) for each in pair.writer.proto.reserved_range)
        for number in sorted(new.keys() - old.keys()):
            index = bisect_right(reserved, (number, 1 << 31)) - 1
            if index >= 0 and number < reserved[index][1]:
                self._add("RESERVED_NUMBER_USED", f"{pair.path}/{number}", None, new[number].name)
        for number in sorted(old.keys() & new.keys()):
            before, after = old[number], new[number]
            path = f"{after.oneof}/{number}" if after.oneof is not None else str(number)
            self._field(pair, before, after, f"{pair.path}/{path}")
        pair.breaks = any(each.type in BREAKING for each in self._found[start:])

    def _field(self, pair: Pair, old: Member, new: Member, path: str) -> None:
        if old.name != new.name:
            self._add("FIELD_NAME_CHANGED", path, old.name, new.name)
        if new.required and not old.required:
            self._add("REQUIRED_FIELD_ADDED", path, old.label or "optional", "required")
        self._kinds(pair, old, new, path)

    def _kinds(self, pair: Pair, old: Member, new: Member, path: str) -> None:
        old_kind, new_kind = _kind(old.info), _kind(new.info)
        if old_kind != new_kind or (old_kind == "MESSAGE" and old.delimited != new.delimited):
            self._add("FIELD_KIND_CHANGED", path, _shown(old), _shown(new))
        elif old_kind == "SCALAR":
            self._scalars(old, new, path)
        elif old_kind == "MAP":
            assert isinstance(old.info.type, MessageInfo)
            assert isinstance(new.info.type, MessageInfo)
            olds = members(old.info.type)
            news = members(new.info.type)
            for number in (1, 2):
                self._kinds(pair, olds[number]._replace(label=None), news[number]._replace(label=None), path)
        else:
            self._messages(pair, old, new, path)

    def _scalars(self, old: Member, new: Member, path: str) -> None:
        kind, other = KINDS[_scalar(old.info)], KINDS[_scalar(new.info)]
        if kind != other:
            self._add("FIELD_SCALAR_KIND_CHANGED", path, old.type, new.type)
            return
        both = old.label is not None and new.label is not None
        if (both and old.label != new.label) or old.repeated != new.repeated:
            type_ = "FIELD_NUMERIC_LABEL_CHANGED"
            if kind == "STRING_OR_BYTES":
                type_ = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
            self._add(type_, path, old.label, new.label)
        if new.required and new.closed:
            assert isinstance(new.info.type, EnumInfo)
            known = set(new.info.type.values.values())
            if not isinstance(old.info.type, EnumInfo):
                self._add("REQUIRED_ENUM_CONST_REMOVED", path, old.type, new.type)
                return
            self._budget.spend(len(old.info.type.values))
            lost = [name for name, number in old.info.type.values.items() if number not in known]
            if lost or (not old.closed):
                self._add("REQUIRED_ENUM_CONST_REMOVED", path, ", ".join(lost[:5]) or old.type, new.type)

    def _messages(self, pair: Pair, old: Member, new: Member, path: str) -> None:
        before, after = old.info.type, new.info.type
        assert isinstance(before, MessageInfo)
        assert isinstance(after, MessageInfo)
        if _local(before) != _local(after):
            self._add("FIELD_NAMED_TYPE_CHANGED", path, before.name, after.name)
            return
        inner = self._pair(before, after, "#/" + _local(before).replace(".", "/"))
        inner.users.append((pair, path, before.name, after.name))

    def _spread(self) -> None:
        """A field is of another type where a field of its message is."""
        ahead = [pair for pair in self._pairs.values() if pair.breaks]
        said: set[str] = set()
        while ahead:
            for user, path, old, new in ahead.pop().users:
                if path not in said:
                    said.add(path)
                    self._add("FIELD_NAMED_TYPE_CHANGED", path, old, new)
                if not user.breaks:
                    user.breaks = True
                    ahead.append(user)


def _declared(messages: Sequence[MessageInfo]) -> dict[str, MessageInfo]:
    """By their own names, in order, without those of maps and groups."""
    return {each.proto.name: each for each in messages if not each.synthetic and not each.map_entry}


def _enums(enums: Sequence[EnumInfo], package: str) -> dict[str, EnumInfo]:
    """Those outside of messages."""
    return {each.proto.name: each for each in enums if each.name.rpartition(".")[0] == package}


def _constants(enum: EnumInfo) -> dict[int, str]:
    """By number; of aliases the last one, as Confluent takes it."""
    return {number: name for name, number in enum.values.items()}


def _kind(info: FieldInfo) -> str:
    if isinstance(info.type, MessageInfo):
        return "MAP" if info.type.map_entry else "MESSAGE"
    return "SCALAR"


def _scalar(info: FieldInfo) -> str:
    return "enum" if isinstance(info.type, EnumInfo) else SCALAR_NAMES[info.proto.type]


def _shown(member: Member) -> str:
    return f"{member.type}, delimited" if member.delimited else member.type


def _local(message: MessageInfo) -> str:
    """The name without the package."""
    package = message.source.proto.package
    return message.name.removeprefix(f"{package}.") if package else message.name
