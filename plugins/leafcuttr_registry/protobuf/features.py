"""The features of editions: what each element has, from its own options, those around it and the edition's defaults.

Spec: https://protobuf.dev/editions/features/. Files of proto2 and proto3 have fixed ones.
"""

from typing import Final, NamedTuple

from google.protobuf.descriptor_pb2 import FeatureSet

F = FeatureSet


class Features(NamedTuple):
    field_presence: int
    enum_type: int
    repeated_field_encoding: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    enforce_naming_style: int = 2
    default_symbol_visibility: int = 1


PROTO2: Final = Features(F.EXPLICIT, F.CLOSED, F.EXPANDED, F.NONE, F.LENGTH_PREFIXED, F.LEGACY_BEST_EFFORT)
PROTO3: Final = Features(F.IMPLICIT, F.OPEN, F.PACKED, F.VERIFY, F.LENGTH_PREFIXED, F.ALLOW)
DEFAULTS: Final = {
    "2023": Features(F.EXPLICIT, F.OPEN, F.PACKED, F.VERIFY, F.LENGTH_PREFIXED, F.ALLOW),
    "2024": Features(F.EXPLICIT, F.OPEN, F.PACKED, F.VERIFY, F.LENGTH_PREFIXED, F.ALLOW, 1, 2),
}


def defaults_of(dialect: str, edition: str | None) -> Features:
    if dialect == "proto2":
        return PROTO2
    if dialect == "proto3":
        return PROTO3
    return DEFAULTS[edition or "2023"]


def merged(around: Features, own: FeatureSet) -> Features:
    """Those of an element within another one."""
    given = {
        field.name: value for field, value in own.ListFields() if field.name in Features._fields and value
    }
    return around._replace(**given) if given else around
