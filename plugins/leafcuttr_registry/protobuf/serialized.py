"""Schemas that are given as descriptors: base64 of a serialized FileDescriptorProto, as Confluent's clients do."""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.describe import json_name
from leafcuttr_registry.protobuf.undescribe import plain_class, tree_of
from leafcuttr_sdk.schemas import SchemaError

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]++={0,2}+\s*+", re.ASCII)
"""It goes through a text once, however many blanks there are."""


def tree_of_text(text: str) -> tree.File | None:
    """The tree of the descriptor that a text is; None for a text that is no base64, and so a `.proto` text. Raises
    SchemaError for a descriptor that has no `.proto` text."""
    if _BASE64.fullmatch(text) is None:
        return None
    try:
        data = base64.b64decode(text, validate=False)
    except binascii.Error:
        return None
    try:
        proto = plain_class().FromString(data)
        # A text such as `message` is base64 too.
        if not proto.name and not proto.ListFields():
            return None
        return tree_of(proto)
    except DecodeError:
        raise SchemaError("the text is base64 of what is no FileDescriptorProto") from None
    except (UnicodeError, TypeError):
        # Where a text is not valid UTF-8, protobuf has bytes in its place.
        raise SchemaError("the descriptor has a text that is not valid UTF-8") from None


def serialized(proto: FileDescriptorProto) -> str:
    """The base64 of a descriptor, without the JSON names that protoc makes: as it is embedded in generated code."""
    copy = FileDescriptorProto()
    copy.CopyFrom(proto)
    _drop_json_names(copy.extension)
    for message in copy.message_type:
        _drop_within(message)
    return base64.b64encode(copy.SerializeToString(deterministic=True)).decode()


def _drop_within(message: DescriptorProto) -> None:
    _drop_json_names(message.field)
    _drop_json_names(message.extension)
    for nested in message.nested_type:
        _drop_within(nested)


def _drop_json_names(fields: Iterable[FieldDescriptorProto]) -> None:
    for field in fields:
        if field.json_name == json_name(field.name):
            field.ClearField("json_name")
