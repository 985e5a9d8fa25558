"""The rules of compatibility, one row each: the names are those of Confluent's `Difference.Type` where it has one."""

from typing import Final

from leafcuttr_sdk.schemas import SchemaRule

_HEAD: Final = 'syntax = "proto3";\n'
_HEAD2: Final = 'syntax = "proto2";\n'


def _rule(
    type_: str, breaks: bool, summary: str, old: str, new: str, head: str = _HEAD, new_head: str | None = None
) -> SchemaRule:
    return SchemaRule(type_, summary, breaks, head + old, (head if new_head is None else new_head) + new)


def _message(text: str) -> str:
    return f"message M {{ {text} }}"


RULES: Final = (
    _rule(
        "PACKAGE_CHANGED",
        True,
        "The package is another one.",
        "package a; message M {}",
        "package b; message M {}",
    ),
    _rule("MESSAGE_ADDED", False, "A message is new.", "message M {}", "message M {} message N {}"),
    _rule("MESSAGE_REMOVED", True, "A message is gone.", "message M {} message N {}", "message M {}"),
    _rule(
        "MESSAGE_MOVED",
        False,
        "A message is at another place. Records have the id of the schema that their message indexes refer to.",
        "message M {} message N {}",
        "message N {} message M {}",
    ),
    _rule("ENUM_ADDED", False, "An enum is new.", "message M {}", "message M {} enum E { A = 0; }"),
    _rule("ENUM_REMOVED", False, "An enum is gone.", "message M {} enum E { A = 0; }", "message M {}"),
    _rule(
        "ENUM_CONST_ADDED",
        False,
        "A constant of an enum is new.",
        "message M { E e = 1; } enum E { A = 0; }",
        "message M { E e = 1; } enum E { A = 0; B = 1; }",
    ),
    _rule(
        "ENUM_CONST_CHANGED",
        False,
        "A constant of an enum has another name: numbers are what is encoded.",
        "message M { E e = 1; } enum E { A = 0; B = 1; }",
        "message M { E e = 1; } enum E { A = 0; C = 1; }",
    ),
    _rule(
        "ENUM_CONST_REMOVED",
        False,
        "A constant of an enum is gone: readers keep its number, or keep the field as an unknown one.",
        "message M { E e = 1; } enum E { A = 0; B = 1; }",
        "message M { E e = 1; } enum E { A = 0; }",
    ),
    _rule(
        "REQUIRED_ENUM_CONST_REMOVED",
        True,
        "A required field of a closed enum may have a number that the reader's enum has not: the reader takes the "
        "field as missing. A rule of this registry.",
        "message M { required E e = 1; } enum E { A = 0; B = 1; }",
        "message M { required E e = 1; } enum E { A = 0; }",
        _HEAD2,
    ),
    _rule(
        "FIELD_ADDED",
        False,
        "A field is new.",
        _message("int32 a = 1;"),
        _message("int32 a = 1; int32 b = 2;"),
    ),
    _rule(
        "FIELD_REMOVED",
        False,
        "A field is gone: readers keep it as an unknown one.",
        _message("int32 a = 1; int32 b = 2;"),
        _message("int32 a = 1;"),
    ),
    _rule(
        "FIELD_NAME_CHANGED",
        False,
        "A field has another name: numbers are what is encoded.",
        _message("int32 a = 1;"),
        _message("int32 b = 1;"),
    ),
    _rule(
        "FIELD_KIND_CHANGED",
        True,
        "A field is a message, a map, a group or a scalar, and was another of these.",
        _message("int32 a = 1;"),
        _message("M a = 1;"),
    ),
    _rule(
        "FIELD_SCALAR_KIND_CHANGED",
        True,
        "A scalar is of another group: int32, int64, uint32, uint64, bool and enums are one; sint32 and sint64; "
        "fixed32 and sfixed32; fixed64 and sfixed64; string and bytes; float; double.",
        _message("int32 a = 1;"),
        _message("sint32 a = 1;"),
    ),
    _rule(
        "FIELD_NAMED_TYPE_CHANGED",
        True,
        "A field is of another message, or of one that changed so that it cannot be read.",
        _message("A a = 1; message A {} message B {}"),
        _message("B a = 1; message A {} message B {}"),
    ),
    _rule(
        "FIELD_NUMERIC_LABEL_CHANGED",
        True,
        "A number has another label, as repeated: it may be encoded in another way.",
        _message("optional int32 a = 1;"),
        _message("repeated int32 a = 1;"),
    ),
    _rule(
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        False,
        "A string or bytes have another label: readers of one value take the last.",
        _message("optional string a = 1;"),
        _message("repeated string a = 1;"),
    ),
    _rule(
        "REQUIRED_FIELD_ADDED",
        True,
        "A field is required that the writer need not have.",
        _message("optional int32 a = 1;"),
        _message("optional int32 a = 1; required int32 b = 2;"),
        _HEAD2,
    ),
    _rule(
        "REQUIRED_FIELD_REMOVED",
        True,
        "A required field is gone.",
        _message("required int32 a = 1;"),
        _message(""),
        _HEAD2,
    ),
    _rule(
        "RESERVED_NUMBER_USED",
        False,
        "A field has a number that the writer's schema reserved: data older than both may have another field there. A "
        "rule of this registry.",
        _message("reserved 2; int32 a = 1;"),
        _message("int32 a = 1; int32 b = 2;"),
    ),
    _rule(
        "ONEOF_ADDED",
        False,
        "A oneof is new.",
        _message("int32 a = 1;"),
        _message("oneof o { int32 a = 1; }"),
    ),
    _rule(
        "ONEOF_REMOVED",
        False,
        "A oneof is gone, with all of its fields or without.",
        _message("oneof o { int32 a = 1; }"),
        _message("int32 a = 1;"),
    ),
    _rule(
        "ONEOF_FIELD_ADDED",
        False,
        "A field of a oneof is new.",
        _message("oneof o { int32 a = 1; }"),
        _message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
    _rule(
        "ONEOF_FIELD_REMOVED",
        True,
        "A field of a oneof is gone: readers take the oneof as not set.",
        _message("oneof o { int32 a = 1; int32 b = 2; }"),
        _message("oneof o { int32 a = 1; }"),
    ),
    _rule(
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
        False,
        "A field is out of its oneof.",
        _message("oneof o { int32 a = 1; int32 b = 2; }"),
        _message("oneof o { int32 a = 1; } int32 b = 2;"),
    ),
    _rule(
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        True,
        "Several fields are of one oneof now: of data that have them all, readers take the last.",
        _message("int32 a = 1; int32 b = 2;"),
        _message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
    _rule(
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        True,
        "A field is of a oneof with others now: of data that have both, readers take the last.",
        _message("int32 a = 1; oneof o { int32 b = 2; }"),
        _message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
)

BREAKING: Final = frozenset(rule.type for rule in RULES if rule.breaks)

_SENTENCES: Final = {
    "PACKAGE_CHANGED": "The package was {old} and is {new}.",
    "MESSAGE_ADDED": "The message {new} is new.",
    "MESSAGE_REMOVED": "The message {old} is gone.",
    "MESSAGE_MOVED": "The message was number {old} and is number {new} at its place, counted from 0.",
    "ENUM_ADDED": "The enum {new} is new.",
    "ENUM_REMOVED": "The enum {old} is gone.",
    "ENUM_CONST_ADDED": "The constant {new} is new.",
    "ENUM_CONST_CHANGED": "The constant was {old} and is {new}.",
    "ENUM_CONST_REMOVED": "The constant {old} is gone.",
    "REQUIRED_ENUM_CONST_REMOVED": (
        "The field is required and of the closed enum {new}, which has not all that the writer may have written "
        "({old}): the reader takes such a field as missing."
    ),
    "FIELD_ADDED": "The field {new} is new.",
    "FIELD_REMOVED": "The field {old} is gone.",
    "FIELD_NAME_CHANGED": "The field was {old} and is {new}.",
    "FIELD_KIND_CHANGED": "The field was of {old} and is of {new}, which is encoded in another way.",
    "FIELD_SCALAR_KIND_CHANGED": "The field was of {old} and is of {new}, which is encoded in another way.",
    "FIELD_NAMED_TYPE_CHANGED": "The field was of {old} and is of {new}, which cannot read it.",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label of the number was {old} and is {new}.",
    "FIELD_STRING_OR_BYTES_LABEL_CHANGED": "The label of the string or bytes was {old} and is {new}.",
    "REQUIRED_FIELD_ADDED": "The field is required, and data of the other schema need not have it.",
    "REQUIRED_FIELD_REMOVED": "The required field {old} is gone.",
    "RESERVED_NUMBER_USED": "The field {new} has a number that the other schema reserves.",
    "ONEOF_ADDED": "The oneof {new} is new.",
    "ONEOF_REMOVED": "The oneof {old} is gone.",
    "ONEOF_FIELD_ADDED": "The field {new} of the oneof is new.",
    "ONEOF_FIELD_REMOVED": "The field {old} of the oneof is gone: the reader takes the oneof as not set.",
    "ONEOF_FIELD_MOVED_TO_TOP_LEVEL": "The field is out of the oneof {old}.",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "The fields {old} could be set together and exclude one another now, in the oneof {new}."
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "The fields {old} could be set together and exclude one another now, in the oneof {new}."
    ),
}


def sentence(type_: str, path: str, old: str | None, new: str | None) -> str:
    """What is said of a difference, for a person."""
    text = _SENTENCES[type_].format(old=_short(old), new=_short(new))
    return f"{path}: {text}"


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return value if len(value) <= 200 else f"{value[:200]} ..."
