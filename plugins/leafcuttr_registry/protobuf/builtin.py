"""Files that each schema may import without a reference: Google's well-known types and common types, and Confluent's.

Those of Google come from the packages protobuf and googleapis-common-protos; Confluent's are written here by its names
and numbers, since clients annotate schemas with them.
"""

from functools import lru_cache
from importlib import import_module
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

MODULES: Final = {
    **{
        f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
        for name in (
            *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct"),
            *("timestamp", "type", "wrappers"),
        )
    },
    **{
        f"google/type/{name}.proto": f"google.type.{name}_pb2"
        for name in (
            *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction"),
            *("interval", "latlng", "localized_text", "money", "month", "phone_number", "postal_address"),
            *("quaternion", "timeofday"),
        )
    },
}
"""The modules that have them, by the names of files."""

TEXTS: Final = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
option java_package = "io.confluent.protobuf";
option java_outer_classname = "MetaProto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
option java_package = "io.confluent.protobuf.type";
option java_multiple_files = true;
option java_outer_classname = "DecimalProto";
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
    "confluent/type/variant.proto": """syntax = "proto3";
package confluent.type;
option java_package = "io.confluent.protobuf.type";
option java_multiple_files = true;
option java_outer_classname = "VariantProto";
message Variant { bytes metadata = 1; bytes value = 2; }
""",
}
NAMES: Final = frozenset((*MODULES, *TEXTS))


@lru_cache(maxsize=len(MODULES))
def builtin_descriptor(name: str) -> FileDescriptorProto:
    """The descriptor of a file of `MODULES`. It is shared: do not change it."""
    serialized: bytes = import_module(MODULES[name]).DESCRIPTOR.serialized_pb
    return FileDescriptorProto.FromString(serialized)
