"""Checks of editions: features where they are allowed and make sense, and the style of names from 2024 on."""

import re
from typing import Final

from google.protobuf.descriptor_pb2 import FeatureSet

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.features import Features, merged
from leafcuttr_registry.protobuf.model import (
    REPEATED,
    REQUIRED,
    TYPE_BYTES,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_STRING,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Source,
)

_LENGTH: Final = (TYPE_STRING, TYPE_BYTES, TYPE_MESSAGE, TYPE_GROUP)


def check_features(source: Source, defaults: Features) -> None:
    """Also sets which enums are closed. Raises SchemaError."""
    editions = source.dialect == "editions"
    proto = source.proto
    if not editions:
        _none(source)
        for enum in source.enums:
            enum.closed = source.dialect == "proto2"
        for message in source.messages:
            message.strict_json = source.dialect == "proto3"
        for field in source.fields:
            field.required = field.proto.label == REQUIRED
            field.delimited = field.proto.type == TYPE_GROUP
        return
    _known(source, -1, "the file", proto.options.features)
    if proto.options.features.field_presence == FeatureSet.LEGACY_REQUIRED:
        raise source.error(-1, "features.field_presence: a file cannot make all of its fields required")
    file = merged(defaults, proto.options.features)
    messages: dict[str, Features] = {}
    for message in source.messages:
        around = messages[message.parent.name] if message.parent is not None else file
        messages[message.name] = own = merged(around, message.proto.options.features)
        _known(source, message.at, message.name, message.proto.options.features)
        message.strict_json = own.json_format == FeatureSet.ALLOW
    for enum in source.enums:
        outer = enum.name.rpartition(".")[0]
        features = merged(messages.get(outer, file), enum.proto.options.features)
        _known(source, enum.at, enum.name, enum.proto.options.features)
        enum.closed = features.enum_type == FeatureSet.CLOSED
    for field in source.fields:
        if field.message is None or field.node is None or field.message.map_entry:
            continue
        around = messages[field.message.name]
        if field.node.oneof is not None:
            oneof = field.message.proto.oneof_decl[field.proto.oneof_index]
            around = merged(around, oneof.options.features)
        _field(source, field, around)
    for field in source.extensions:
        _field(source, field, messages.get(field.name.rpartition(".")[0], file))


def _none(source: Source) -> None:
    """proto2 and proto3 have no features."""
    infos: list[MessageInfo | EnumInfo | FieldInfo] = [*source.messages, *source.enums]
    for each in (*infos, *source.fields, *source.extensions):
        if each.proto.HasField("options") and each.proto.options.HasField("features"):
            raise source.error(each.at, f"{each.name}: features are of editions")
    if source.proto.options.HasField("features"):
        raise source.error(-1, "features are of editions")


def _known(source: Source, at: int, name: str, features: FeatureSet) -> None:
    for field, value in features.ListFields():
        if value == 0 and field.name in Features._fields:
            raise source.error(at, f"{name}: features.{field.name} has no known value")


def _field(source: Source, field: FieldInfo, around: Features) -> None:
    proto, own = field.proto, field.proto.options.features
    _known(source, field.at, field.name, own)
    features = merged(around, own)
    is_map = isinstance(field.type, MessageInfo) and field.type.map_entry
    field.required = (
        features.field_presence == FeatureSet.LEGACY_REQUIRED
        and proto.label != REPEATED
        and not field.extension
    )
    field.delimited = (
        features.message_encoding == FeatureSet.DELIMITED and proto.type == TYPE_MESSAGE and not is_map
    )
    length = proto.type in _LENGTH
    given = {each.name for each, _ in own.ListFields()}

    def no(reason: str) -> Exception:
        return source.error(field.at, f"{field.name}: {reason}")

    if proto.options.HasField("packed"):
        raise no("packed is not of editions: set features.repeated_field_encoding")
    if "field_presence" in given:
        if field.extension:
            raise no("features.field_presence is not for extensions")
        if proto.label == REPEATED:
            raise no("features.field_presence is for fields that are not repeated")
        if field.node is not None and field.node.oneof is not None:
            raise no("features.field_presence is not for fields of a oneof")
    implicit = features.field_presence == FeatureSet.IMPLICIT
    singular = proto.label != REPEATED and not field.extension and not proto.HasField("oneof_index")
    if own.field_presence == FeatureSet.IMPLICIT and proto.type in (TYPE_MESSAGE, TYPE_GROUP):
        raise no("the presence of messages is never implicit")
    if implicit and singular:
        if proto.HasField("default_value"):
            raise no("fields of implicit presence have no default values of their own")
        if isinstance(field.type, EnumInfo) and field.type.closed:
            raise no(f"{field.type.name} is closed, and fields of implicit presence need open enums")
    if "repeated_field_encoding" in given:
        if proto.label != REPEATED:
            raise no("features.repeated_field_encoding is for repeated fields")
        if length and own.repeated_field_encoding == FeatureSet.PACKED:
            raise no("only repeated fields of numbers, bool or an enum are packed")
    if "utf8_validation" in given and not _has_strings(field):
        raise no("features.utf8_validation is for strings")
    if "message_encoding" in given and (proto.type != TYPE_MESSAGE or is_map):
        raise no("features.message_encoding is for messages")


def _has_strings(field: FieldInfo) -> bool:
    if isinstance(field.type, MessageInfo) and field.type.map_entry:
        return any(each.proto.type == TYPE_STRING for each in field.type.fields.values())
    return field.proto.type == TYPE_STRING


_LOWER: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*")
_UPPER: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*")
_TITLE: Final = re.compile(r"[A-Z][A-Za-z0-9]*")


def check_style(source: Source, defaults: Features) -> None:
    """The names of edition 2024, unless features.enforce_naming_style says otherwise. Raises SchemaError."""
    file = source.tree
    assert file is not None
    legacy = FeatureSet.STYLE_LEGACY
    top = merged(defaults, source.proto.options.features)

    def must(pattern: re.Pattern[str], name: str, at: int, what: str) -> None:
        if not pattern.fullmatch(name):
            raise source.error(
                at,
                f"the name {name[:80]} is not {what}, the style of edition {file.edition}; "
                "features.enforce_naming_style = STYLE_LEGACY allows it",
            )

    def styled(features: Features) -> bool:
        return features.enforce_naming_style != legacy

    if styled(top) and file.package:
        for part in file.package.split("."):
            must(_LOWER, part, file.package_at, "lower_snake_case")
    messages: dict[str, Features] = {}
    for message in source.messages:
        around = messages[message.parent.name] if message.parent is not None else top
        messages[message.name] = own = merged(around, message.proto.options.features)
        if message.node is None or not styled(own):
            continue
        must(_TITLE, message.proto.name, message.at, "TitleCase")
        for oneof in message.node.oneofs:
            must(_LOWER, oneof.name, oneof.at, "lower_snake_case")
        for field in message.fields.values():
            if styled(merged(own, field.proto.options.features)):
                must(_LOWER, field.proto.name, field.at, "lower_snake_case")
    for enum in source.enums:
        own = merged(messages.get(enum.name.rpartition(".")[0], top), enum.proto.options.features)
        if enum.node is not None and styled(own):
            must(_TITLE, enum.proto.name, enum.at, "TitleCase")
            for value in enum.node.values:
                must(_UPPER, value.name, value.at, "UPPER_SNAKE_CASE")
    for extension in source.extensions:
        if styled(
            merged(messages.get(extension.name.rpartition(".")[0], top), extension.proto.options.features)
        ):
            must(_LOWER, extension.proto.name, extension.at, "lower_snake_case")
    for node in file.body:
        if isinstance(node, tree.RpcService) and styled(top):
            must(_TITLE, node.name, node.at, "TitleCase")
            for method in node.methods:
                must(_TITLE, method.name, method.at, "TitleCase")
