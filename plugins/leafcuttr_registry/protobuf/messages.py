"""Messages, their fields, enums and extensions in `.proto` texts."""

from typing import Final

from leafcuttr_registry.protobuf.cursor import Cursor
from leafcuttr_registry.protobuf.lexer import IDENTIFIER, STRING
from leafcuttr_registry.protobuf.option_parser import assignment, bracketed, option_statement, scalar
from leafcuttr_registry.protobuf.tree import (
    MAX_FIELD_NUMBER,
    MAX_INT32,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Label,
    MapType,
    Message,
    Oneof,
    Range,
    Reserved,
)

MAX_NESTING: Final = 31
"""Of messages and groups, as protoc has it."""
LABELS: Final[dict[str, Label]] = {"optional": "optional", "required": "required", "repeated": "repeated"}


class MessageParser:
    """Parses what is in braces. One is used for one file."""

    __slots__ = ("_cursor", "_depth", "_dialect", "_with_visibility")

    def __init__(self, cursor: Cursor, file: File) -> None:
        self._cursor = cursor
        self._dialect = file.dialect
        self._with_visibility = file.edition not in (None, "2023")
        self._depth = 0

    def visibility(self) -> str | None:
        """`export` or `local`, of edition 2024 and later ones, before a message or an enum."""
        cursor = self._cursor
        if cursor.token in ("export", "local") and cursor.after in ("message", "enum"):
            if not self._with_visibility:
                raise cursor.fail(f"{cursor.token} before a type is of edition 2024 and later ones")
            return cursor.take()
        return None

    def message(self, visibility: str | None = None) -> Message:
        """What follows the word `message`."""
        at = self._cursor.at
        message = Message(self._cursor.identifier("the name of the message"), at, visibility=visibility)
        self._block(message)
        return message

    def _block(self, message: Message) -> None:
        cursor = self._cursor
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise cursor.fail(f"messages are nested more than {MAX_NESTING} deep")
        cursor.expect("{")
        while not cursor.accept("}"):
            self._statement(message)
        self._depth -= 1

    def _statement(self, message: Message) -> None:
        cursor = self._cursor
        word = cursor.token
        at = cursor.at
        if word in ("export", "local"):
            visibility = self.visibility()
            if visibility is not None:
                nested = self.message if cursor.take() == "message" else self.enum
                message.body.append(nested(visibility))
                return
        if word == ";":
            cursor.take()
        elif word == "message":
            cursor.take()
            message.body.append(self.message())
        elif word == "enum":
            cursor.take()
            message.body.append(self.enum())
        elif word == "extensions":
            cursor.take()
            message.extensions.append(self._extensions())
        elif word == "reserved":
            cursor.take()
            message.reserved.append(self._reserved(MAX_FIELD_NUMBER))
        elif word == "extend":
            cursor.take()
            message.body.append(self.extend(at))
        elif word == "option":
            cursor.take()
            message.options.append(option_statement(cursor))
        elif word == "oneof":
            cursor.take()
            self._oneof(message)
        else:
            message.body.append(self._field())

    def _field(self, oneof: Oneof | None = None, extension: bool = False) -> Field:
        cursor = self._cursor
        at = cursor.at
        label = LABELS.get(cursor.token)
        if label is not None:
            self._check_label(label, oneof)
            cursor.take()
        kind = self._type(label, oneof, extension)
        if label is None and oneof is None and self._dialect == "proto2" and not isinstance(kind, MapType):
            raise cursor.fail(
                f"{cursor.text[at : at + 40].split()[0]} where a label is expected: fields of proto2 are "
                "optional, required or repeated",
                at,
            )
        if isinstance(kind, Message):
            return self._group(label, kind, oneof, at)
        name = cursor.identifier("the name of the field")
        cursor.expect("=")
        number_at = cursor.at
        field = Field(label, kind, name, cursor.integer("the number of the field"), at, number_at)
        field.oneof = oneof
        if cursor.token == "[":
            self._options(field)
        cursor.expect(";")
        return field

    def _check_label(self, label: Label, oneof: Oneof | None) -> None:
        cursor = self._cursor
        if oneof is not None:
            raise cursor.fail(f"fields of a oneof have no label such as {label}")
        if self._dialect == "editions" and label != "repeated":
            raise cursor.fail(f"{label} is not of editions: set features.field_presence")
        if self._dialect == "proto3" and label == "required":
            raise cursor.fail("required fields are not of proto3")

    def _type(self, label: Label | None, oneof: Oneof | None, extension: bool) -> str | MapType | Message:
        cursor = self._cursor
        if cursor.token == "map" and cursor.after == "<":
            if label is not None:
                raise cursor.fail(f"maps have no label such as {label}")
            if oneof is not None or extension:
                raise cursor.fail("a map is neither of a oneof nor an extension")
            cursor.take()
            cursor.take()
            key = cursor.type_name("the type of the map's keys")
            cursor.expect(",")
            value = cursor.type_name("the type of the map's values")
            cursor.expect(">")
            return MapType(key, value)
        if cursor.token == "group":
            if self._dialect != "proto2":
                raise cursor.fail("groups are of proto2 only")
            cursor.take()
            return Message("", cursor.at)
        if cursor.kind == IDENTIFIER or cursor.token == ".":
            return cursor.type_name("the type of the field")
        raise cursor.expected("a field or another statement")

    def _group(self, label: Label | None, message: Message, oneof: Oneof | None, at: int) -> Field:
        cursor = self._cursor
        message.at = cursor.at
        message.name = name = cursor.identifier("the name of the group")
        if not "A" <= name[0] <= "Z":
            raise cursor.fail(f"the name of the group {name} has to begin with a capital letter", message.at)
        cursor.expect("=")
        number_at = cursor.at
        field = Field(label, message, name.lower(), cursor.integer("the number of the field"), at, number_at)
        field.oneof = oneof
        if cursor.token == "[":
            self._options(field)
        if cursor.token != "{":
            raise cursor.expected("the body of the group")
        self._block(message)
        return field

    def _options(self, field: Field) -> None:
        """With `default` and `json_name`, which look like options and are none."""
        cursor = self._cursor
        if cursor.after not in ("default", "json_name"):
            field.options = options = []
        else:
            options = field.options
        cursor.take()
        while True:
            if cursor.token == "default":
                if field.default is not None:
                    raise cursor.fail("a second default value")
                cursor.take()
                cursor.expect("=")
                field.special_at = cursor.at
                field.default = scalar(cursor, "the default value")
            elif cursor.token == "json_name":
                if field.json_name is not None:
                    raise cursor.fail("a second json_name")
                cursor.take()
                cursor.expect("=")
                field.special_at = cursor.at
                field.json_name = cursor.utf8("the JSON name, a string")
            else:
                options.append(assignment(cursor))
            if not cursor.accept(","):
                break
        cursor.expect("]")

    def _oneof(self, message: Message) -> None:
        cursor = self._cursor
        at = cursor.at
        oneof = Oneof(cursor.identifier("the name of the oneof"), at)
        message.oneofs.append(oneof)
        cursor.expect("{")
        while not cursor.accept("}"):
            if cursor.accept("option"):
                oneof.options.append(option_statement(cursor))
                continue
            field = self._field(oneof)
            oneof.fields.append(field)
            message.body.append(field)

    def extend(self, at: int) -> Extend:
        """What follows the word `extend`."""
        cursor = self._cursor
        extend = Extend(cursor.type_name("the name of a message"), at)
        cursor.expect("{")
        while True:
            extend.fields.append(self._field(extension=True))
            if cursor.accept("}"):
                return extend

    def _extensions(self) -> Extensions:
        ranges = [self._range(MAX_FIELD_NUMBER, signed=False)]
        while self._cursor.accept(","):
            ranges.append(self._range(MAX_FIELD_NUMBER, signed=False))
        options = bracketed(self._cursor)
        self._cursor.expect(";")
        return Extensions(ranges, options)

    def _range(self, most: int, *, signed: bool) -> Range:
        cursor = self._cursor
        at = cursor.at
        what = "a number of a range"
        start = cursor.signed(what) if signed else cursor.integer(what)
        if not cursor.accept("to"):
            return Range(start, start, at)
        if cursor.accept("max"):
            return Range(start, most, at, True)
        return Range(start, cursor.signed(what) if signed else cursor.integer(what), at)

    def _reserved(self, most: int, *, signed: bool = False) -> Reserved:
        cursor = self._cursor
        reserved = Reserved([], [])
        if cursor.kind == STRING or (cursor.kind == IDENTIFIER):
            reserved.quoted = cursor.kind == STRING
            if reserved.quoted and self._dialect == "editions":
                raise cursor.fail("reserved names are written without quotes in editions")
            if not reserved.quoted and self._dialect != "editions":
                raise cursor.fail("reserved names are in quotes; only editions write them without")
            while True:
                at = cursor.at
                name = (
                    cursor.utf8("a reserved name")
                    if reserved.quoted
                    else cursor.identifier("a reserved name")
                )
                reserved.names.append((name, at))
                if not cursor.accept(","):
                    break
        else:
            while True:
                reserved.ranges.append(self._range(most, signed=signed))
                if not cursor.accept(","):
                    break
        cursor.expect(";")
        return reserved

    def enum(self, visibility: str | None = None) -> Enum:
        """What follows the word `enum`."""
        cursor = self._cursor
        at = cursor.at
        enum = Enum(cursor.identifier("the name of the enum"), at, visibility=visibility)
        cursor.expect("{")
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            if cursor.accept("option"):
                enum.options.append(option_statement(cursor))
            elif cursor.accept("reserved"):
                enum.reserved.append(self._reserved(MAX_INT32, signed=True))
            else:
                enum.values.append(self._enum_value())
        return enum

    def _enum_value(self) -> EnumValue:
        cursor = self._cursor
        at = cursor.at
        name = cursor.identifier("the name of a constant")
        cursor.expect("=")
        number = cursor.signed("the number of the constant")
        value = EnumValue(name, number, at, bracketed(cursor))
        cursor.expect(";")
        return value
