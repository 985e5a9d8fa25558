"""Short `.proto` texts, right ones and wrong ones: the parser and protoc have to agree on each.

`P2(...)` is a file of proto2 with these statements, `M2(...)` one with a message of these, and so on.
"""

# ruff: noqa: E501
from typing import Final


def P2(text: str) -> str:
    return f'syntax = "proto2";\n{text}\n'


def P3(text: str) -> str:
    return f'syntax = "proto3";\n{text}\n'


def E3(text: str) -> str:
    return f'edition = "2023";\n{text}\n'


def E4(text: str) -> str:
    return f'edition = "2024";\n{text}\n'


def M2(text: str) -> str:
    return P2(f"message M {{\n{text}\n}}")


def M3(text: str) -> str:
    return P3(f"message M {{\n{text}\n}}")


def ME(text: str) -> str:
    return E3(f"message M {{\n{text}\n}}")


def OPTIONS(text: str, declarations: str = "") -> str:
    """Custom options of all kinds, and a use of them."""
    return f"""syntax = "proto2";
package opt;
import "google/protobuf/descriptor.proto";
enum Color {{ RED = 0; BLUE = 5; }}
message Deep {{
  optional int32 n = 1;
  optional Deep deep = 2;
  repeated int32 many = 3;
  repeated Deep deeps = 4;
  optional string s = 5;
  optional group Grp = 6 {{ optional int32 g = 1; }}
  map<string, int32> m = 7;
  oneof which {{ int32 a = 8; string b = 9; }}
  extensions 100 to 200;
}}
message Strict {{ required int32 r = 1; optional int32 o = 2; }}
extend Deep {{ optional int32 ext = 100; optional Deep ext_deep = 101; }}
extend google.protobuf.MessageOptions {{
  optional int32 i32 = 50001; optional int64 i64 = 50002; optional uint32 u32 = 50003; optional uint64 u64 = 50004;
  optional sint32 s32 = 50005; optional sint64 s64 = 50006; optional fixed32 f32 = 50007; optional fixed64 f64 = 50008;
  optional sfixed32 sf32 = 50009; optional sfixed64 sf64 = 50010; optional float fl = 50011; optional double db = 50012;
  optional bool bo = 50013; optional string st = 50014; optional bytes by = 50015; optional Color color = 50016;
  optional Deep deep = 50017; repeated int32 ints = 50018; repeated Deep deeps = 50019; optional Strict strict = 50020;
}}
extend google.protobuf.FieldOptions {{ optional string note = 50001; repeated Color colors = 50002; }}
{declarations}
message Uses {{
  {text}
}}
"""


TEXTS: Final[dict[str, str]] = {
    # Lexical elements.
    "empty": "",
    "no syntax": "message A {}",
    "comments": "// a\n/* b\n * c **/ syntax = 'proto3' /**/ ; message /* x */ A { // y\n }",
    "comment without end": P3("/* a"),
    "nested comment": P3("/* a /* b */"),
    "string over lines": P3('option java_package = "a\nb";'),
    "string without end": P3('option java_package = "a'),
    "escapes": P3(r'option java_package = "\a\b\f\n\r\t\v\\\?\x41\102\u0041\U00000042";'),
    "upper case hexadecimal escape": P3(r'option java_package = "\X41";'),
    "escape unknown": P3(r'option java_package = "\q";'),
    "escape hexadecimal without digits": P3(r'option java_package = "\xg";'),
    "escape of a short code point": P3(r'option java_package = "\u41";'),
    "escape above Unicode": P3(r'option java_package = "\U00110000";'),
    "pieces of strings": P3('option java_package = "a" \'b\'\n"c";'),
    "quotes in quotes": P3('option java_package = "it\'s";'),
    "unicode in strings": P3('option java_package = "ü€";'),
    "unicode in names": P3("message Ü {}"),
    "unicode in comments": P3("// ü"),
    "control character": P3("message A { \x01 }"),
    "hexadecimal number": M3("int32 a = 0x1F;"),
    "octal number": M3("int32 a = 017;"),
    "octal number with 8": M3("int32 a = 018;"),
    "hexadecimal without digits": M3("int32 a = 0x;"),
    "number and name": M3("int32 a = 1b;"),
    "two points": M2("optional double a = 1 [default = 1.2.3];"),
    "float with f": M2("optional float a = 1 [default = 1.5f];"),
    "exponent without digits": M2("optional float a = 1 [default = 1e];"),
    "point first": M2("optional float a = 1 [default = .5];"),
    "point last": M2("optional float a = 1 [default = 5.];"),
    "byte order mark": "\ufeffsyntax = 'proto3'; message A {}",
    "stray symbol": P3("@"),
    # Files.
    "syntax unknown": 'syntax = "proto4";',
    "syntax late": 'message A {} syntax = "proto3";',
    "syntax twice": 'syntax = "proto3"; syntax = "proto3";',
    "syntax in pieces": 'syntax = "pro" "to3"; message A { int32 a = 1; }',
    "edition unknown": 'edition = "2022";',
    "edition as number": "edition = 2023;",
    "edition and syntax": 'edition = "2023"; syntax = "proto3";',
    "package": P3("package a.b.c; message A { A a = 1; a.b.c.A b = 2; .a.b.c.A c = 3; b.c.A d = 4; }"),
    "package twice": P3("package a; package b;"),
    "package with a dot first": P3("package .a;"),
    "package and message": P3("package A; message A { A b = 1; }"),
    "empty statements": P3(";;; message A {;;} ; enum E {; A = 0;;} service S {;}"),
    "import missing": P3('import "nowhere.proto";'),
    "import twice": P3('import "google/protobuf/any.proto"; import "google/protobuf/any.proto";'),
    "import weak": P3('import weak "google/protobuf/any.proto";'),
    "import public": P3(
        'import public "google/protobuf/any.proto"; message A { google.protobuf.Any a = 1; }'
    ),
    "import private": P3("import private 'google/protobuf/any.proto';"),
    "import without quotes": P3("import google;"),
    "import through an import": P3(
        'import "google/protobuf/api.proto"; message A { google.protobuf.SourceContext s = 1; }'
    ),
    "file ends early": P3("message A {"),
    "brace too many": P3("message A {}}"),
    "unknown statement": P3("messag A {}"),
    "keywords as names": M3(
        "string message = 1; string syntax = 2; int32 int32 = 3; bool optional = 4; bool oneof = 5;"
        " bool rpc = 6; bool max = 7; bool to = 8; bool map = 9; bool true = 10; bool group = 11; bool stream = 12;"
    ),
    "keyword as type": P3(
        "message stream {} message rpc {} message M { stream a = 1; rpc b = 2; map c = 3; } message map {}"
    ),
    "message named as keyword": P3("message message { message a = 1; }"),
    "option as a name of a constant": P3("enum E { option = 0; }"),
    # Fields.
    "all scalars": M3(
        "".join(
            f"{name} f{index} = {index};\n"
            for index, name in enumerate(
                [
                    "double",
                    "float",
                    "int32",
                    "int64",
                    "uint32",
                    "uint64",
                    "sint32",
                    "sint64",
                    "fixed32",
                    "fixed64",
                    "sfixed32",
                    "sfixed64",
                    "bool",
                    "string",
                    "bytes",
                ],
                1,
            )
        )
    ),
    "labels of proto2": M2("optional int32 a = 1; required int32 b = 2; repeated int32 c = 3;"),
    "label missing in proto2": M2("int32 a = 1;"),
    "required in proto3": M3("required int32 a = 1;"),
    "optional in proto3": M3(
        "optional int32 a = 1; optional M b = 2; int32 c = 3; optional string _d = 4; optional int32 X_a = 6;"
    ),
    "optional takes names": M3("int32 _a = 1; optional int32 a = 2; oneof X_a { int32 z = 3; }"),
    "optional in editions": ME("optional int32 a = 1;"),
    "required in editions": ME("required int32 a = 1;"),
    "repeated in editions": ME("repeated int32 a = 1;"),
    "number zero": M3("int32 a = 0;"),
    "number negative": M3("int32 a = -1;"),
    "number largest": M3("int32 a = 536870911;"),
    "number too large": M3("int32 a = 536870912;"),
    "number above int32": M3("int32 a = 2147483648;"),
    "number huge": M3("int32 a = 99999999999999999999999;"),
    "number 18999": M3("int32 a = 18999;"),
    "number 19000": M3("int32 a = 19000;"),
    "number 19999": M3("int32 a = 19999;"),
    "number 20000": M3("int32 a = 20000;"),
    "number twice": M3("int32 a = 1; int32 b = 1;"),
    "number twice with a oneof": M3("int32 a = 1; oneof o { int32 b = 1; }"),
    "number missing": M3("int32 a;"),
    "number as string": M3('int32 a = "1";'),
    "name twice": M3("int32 a = 1; int32 a = 2;"),
    "name missing": M3("int32 = 1;"),
    "name of a nested message": M3("int32 A = 1; message A {}"),
    "semicolon missing": M3("int32 a = 1"),
    "type missing": M3("Nothing a = 1;"),
    "type is a field": M3("int32 a = 1; a b = 2;"),
    "type is a package": P3("package p; message M { p a = 1; }"),
    "type is a constant": P3("enum E { A = 0; } message M { A a = 1; }"),
    "JSON names": M3(
        "int32 foo_bar = 1; int32 _foo = 2; int32 foo__baz9_x = 3; int32 Foo_Baz = 4; int32 a_ = 5;"
    ),
    "JSON name given": M3('int32 a = 1 [json_name = "@x"];'),
    "JSON name twice": M3('int32 a = 1 [json_name = "x", json_name = "y"];'),
    "JSON name as number": M3("int32 a = 1 [json_name = 1];"),
    "JSON name in brackets": M3('int32 a = 1 [json_name = "[a]"];'),
    "JSON names the same": M3('int32 a = 1 [json_name = "x"]; int32 b = 2 [json_name = "x"];'),
    "JSON name of another field": M3('int32 a = 1 [json_name = "b"]; int32 b = 2;'),
    "JSON names of two fields": M3("int32 foo_bar = 1; int32 fooBar = 2;"),
    "JSON names of two fields in proto2": M2("optional int32 foo_bar = 1; optional int32 fooBar = 2;"),
    "JSON names of two fields, allowed": M3(
        "option deprecated_legacy_json_field_conflicts = true; int32 foo_bar = 1; int32 fooBar = 2;"
    ),
    "JSON name exchanged": M3('int32 a = 1 [json_name = "b"]; int32 b = 2 [json_name = "a"];'),
    "JSON name of another field in proto2": M2(
        'optional int32 a = 1 [json_name = "b"]; optional int32 b = 2;'
    ),
    # Defaults.
    "defaults": M2(
        r"""optional int32 a = 1 [default = -2147483648]; optional int64 b = 2 [default = 0x7FFFFFFFFFFFFFFF];
        optional uint64 c = 3 [default = 18446744073709551615]; optional bool d = 4 [default = true];
        optional string e = 5 [default = "a\n\"ü"]; optional bytes f = 6 [default = "\xff\0'a\"\\\t\177"];
        optional float g = 7 [default = 1.1]; optional double h = 8 [default = 1.1]; optional float i = 9 [default = inf];
        optional double j = 10 [default = -inf]; optional float k = 11 [default = nan]; optional double l = 12 [default = 3];
        optional float m = 13 [default = 1e10]; optional double n = 14 [default = 1e-300]; optional E o = 15 [default = B];
        optional float p = 16 [default = 16777217]; optional double q = 17 [default = 123456789.123456789];
        optional int32 r = 18 [default = 017]; optional float s = 19 [default = 3.4e39]; optional float t = 20 [default = -0.0];
        optional double u = 21 [default = -nan]; optional double v = 22 [default = 12345678901234567890];
        optional float w = 23 [default = 1e-46]; optional double x = 24 [default = 2e308];
        enum E { A = 0; B = 1; }"""
    ),
    "default of no UTF-8": M2(r"optional string a = 1 [default = '\xff'];"),
    "message set of large numbers": P2(
        "message M { option message_set_wire_format = true; extensions 2000000000 to max; }"
    ),
    "ranges beyond max": M2("extensions 2000000000 to max;"),
    "default in proto3": M3("int32 a = 1 [default = 1];"),
    "default in editions": ME("int32 a = 1 [default = 1];"),
    "default twice": M2("optional int32 a = 1 [default = 1, default = 2];"),
    "default of a repeated field": M2("repeated int32 a = 1 [default = 1];"),
    "default of a message": M2("optional M a = 1 [default = 1];"),
    "default of a message by name": M2("optional M a = 1 [default = a];"),
    "default too large": M2("optional int32 a = 1 [default = 2147483648];"),
    "default too small": M2("optional int32 a = 1 [default = -2147483649];"),
    "default too large for 64 bits": M2("optional uint64 a = 1 [default = 18446744073709551616];"),
    "default negative and unsigned": M2("optional uint32 a = 1 [default = -1];"),
    "default minus zero and unsigned": M2("optional uint32 a = 1 [default = -0];"),
    "default float of an int": M2("optional int32 a = 1 [default = 1.0];"),
    "default string of an int": M2('optional int32 a = 1 [default = "1"];'),
    "default int of a string": M2("optional string a = 1 [default = 1];"),
    "default int of a bool": M2("optional bool a = 1 [default = 1];"),
    "default word of a bool": M2("optional bool a = 1 [default = yes];"),
    "default unknown constant": M2("optional E a = 1 [default = C]; enum E { A = 0; }"),
    "default number of an enum": M2("optional E a = 1 [default = 0]; enum E { A = 0; }"),
    "default minus word": M2("optional double a = 1 [default = -foo];"),
    # Groups.
    "group": M2(
        "optional group G = 1 { optional int32 a = 1; } repeated group H = 2 { optional group I = 1 {} }"
    ),
    "group in small letters": M2("optional group g = 1 {}"),
    "group without label": M2("group G = 1 {}"),
    "group with options": M2("optional group G = 1 [deprecated = true] {}"),
    "group without body": M2("optional group G = 1;"),
    "group in proto3": M3("repeated group G = 1 {}"),
    "group in editions": ME("repeated group G = 1 {}"),
    "group in a oneof": M2("oneof o { group G = 1 { optional int32 a = 1; } int32 b = 2; }"),
    "group and its field": M2("optional group G = 1 {} optional int32 g = 2;"),
    "group as a type": M2("optional group G = 1 {} optional G h = 2;"),
    # Oneofs.
    "oneof": M3("oneof o { int32 a = 1; M b = 2; } oneof p { string c = 3; }"),
    "oneof empty": M3("oneof o {}"),
    "oneof with a label": M3("oneof o { optional int32 a = 1; }"),
    "oneof with repeated": M3("oneof o { repeated int32 a = 1; }"),
    "oneof with a map": M3("oneof o { map<int32, int32> a = 1; }"),
    "oneof with a semicolon": M3("oneof o { int32 a = 1;; }"),
    "oneof named as a field": M3("oneof o { int32 o = 1; }"),
    "oneof with options": M3("oneof o { option (x) = 1; int32 a = 1; }"),
    "oneof in proto2": M2("oneof o { int32 a = 1 [default = 3]; }"),
    "oneof twice": M3("oneof o { int32 a = 1; } oneof o { int32 b = 2; }"),
    "oneof within a oneof": M3("oneof o { oneof p { int32 a = 1; } }"),
    # Maps.
    "maps": M3("map<string, M> a_b = 1; map<int32, bytes> c = 2; map<bool, E> d = 3; enum E { A = 0; }"),
    "map in proto2": M2("map<string, M> a = 1;"),
    "map of floats": M3("map<float, int32> a = 1;"),
    "map of bytes": M3("map<bytes, int32> a = 1;"),
    "map of messages": M3("map<M, int32> a = 1;"),
    "map of enums": M3("map<E, int32> a = 1; enum E { A = 0; }"),
    "map of maps": M3("map<int32, map<int32, int32>> a = 1;"),
    "map with a label": M3("repeated map<int32, int32> a = 1;"),
    "map of an unknown type": M3("map<int32, Nothing> a = 1;"),
    "map with the name of its entry": M3("map<int32, int32> a = 1; message AEntry {}"),
    "map as an extension": P2("message M { extensions 1 to max; } extend M { map<int32, int32> a = 1; }"),
    "map of an enum without zero": P2("enum E { A = 1; } message M { map<int32, E> a = 1; }"),
    "map with a default": M2("map<int32, int32> a = 1 [default = 1];"),
    "entry as a type": M3("map<int32, int32> a = 1; repeated AEntry b = 2;"),
    "entries of two maps": M3("map<int32, int32> a_b = 1; map<int32, int32> aB = 2;"),
    # Enums.
    "enum": P3("enum E { A = 0; B = -1; C = 2147483647; D = -2147483648; F = 0x10; }"),
    "enum empty": P3("enum E {}"),
    "enum without zero": P3("enum E { A = 1; }"),
    "enum without zero in proto2": P2("enum E { A = 1; }"),
    "enum without zero in editions": E3("enum E { A = 1; }"),
    "enum closed without zero in editions": E3("enum E { option features.enum_type = CLOSED; A = 1; }"),
    "enum too large": P3("enum E { A = 0; B = 2147483648; }"),
    "enum too small": P3("enum E { A = 0; B = -2147483649; }"),
    "enum alias": P3("enum E { option allow_alias = true; A = 0; B = 0; }"),
    "enum alias missing": P3("enum E { A = 0; B = 0; }"),
    "enum alias without use": P3("enum E { option allow_alias = true; A = 0; B = 1; }"),
    "enum alias false": P3("enum E { option allow_alias = false; A = 0; B = 1; }"),
    "enum constant twice": P3("enum E { A = 0; A = 1; }"),
    "enum constants as siblings": P3("enum E { A = 0; } enum F { A = 0; }"),
    "enum constant and message": P3("enum E { A = 0; } message A {}"),
    "enum prefixes": P3("enum FooBar { FOO_BAR_A = 0; A = 1; }"),
    "enum prefixes with case": P3("enum FooBar { FOO_BAR_A = 0; FOOBAR_B = 1; foo_bar_c = 2; FOO_BAR = 3; }"),
    "enum prefixes of aliases": P3("enum F { option allow_alias = true; F_A = 0; A = 0; }"),
    "enum reserved": P3('enum E { A = 0; reserved 2, 4 to 6, -5 to -1, 100 to max; reserved "B", "C"; }'),
    "enum reserved number": P3("enum E { A = 0; reserved 1 to 3; B = 2; }"),
    "enum reserved name": P3('enum E { A = 0; reserved "B"; B = 2; }'),
    "enum reserved overlap": P3("enum E { A = 0; reserved 1 to 3, 3; }"),
    "enum reserved empty": P3("enum E { A = 0; reserved 3 to 1; }"),
    "enum reserved twice": P3('enum E { A = 0; reserved "B", "B"; }'),
    "enum reserved words": E3("enum E { A = 0; reserved B, C; }"),
    "enum of proto2 in proto3": P3(
        'import "google/protobuf/descriptor.proto"; message M { google.protobuf.FieldDescriptorProto.Type a = 1; }'
    ),
    "enum value options": P3("enum E { A = 0 [deprecated = true]; }"),
    # Reserved fields and ranges for extensions.
    "reserved": M3('reserved 2, 15, 9 to 11, 100 to max; reserved "foo", "bar"; int32 a = 1;'),
    "reserved number": M3("reserved 1; int32 a = 1;"),
    "reserved number of a oneof": M3("oneof o { int32 a = 5; } reserved 2 to 7;"),
    "reserved name": M3('reserved "a"; int32 a = 1;'),
    "reserved overlap": M3("reserved 1 to 5, 5;"),
    "reserved overlap apart": M3("reserved 1 to 5; reserved 7, 3;"),
    "reserved empty": M3("reserved 5 to 1;"),
    "reserved zero": M3("reserved 0;"),
    "reserved negative": M3("reserved -1;"),
    "reserved twice": M3('reserved "a", "a";'),
    "reserved words": M3("reserved a;"),
    "reserved strings in editions": ME('reserved "a";'),
    "reserved words in editions": ME("reserved a, b; reserved 1;"),
    "reserved mixed": M3('reserved 1, "a";'),
    "reserved too large": M3("reserved 536870911 to 536870912;"),
    "reserved no identifier": M3('reserved "1 a";'),
    "ranges": M2("extensions 1; extensions 5 to 10, 100 to max;"),
    "ranges in proto3": M3("extensions 1;"),
    "ranges overlap": M2("extensions 1 to 5, 3;"),
    "ranges and reserved": M2("extensions 1 to 5; reserved 3;"),
    "ranges and fields": M2("extensions 1 to 5; optional int32 a = 3;"),
    "ranges zero": M2("extensions 0;"),
    "ranges too large": M2("extensions 1 to 536870912;"),
    "ranges to the largest": M2("extensions 1 to 536870911;"),
    "ranges with options": M2(
        'extensions 5 to 10 [verification = UNVERIFIED]; extensions 20 [declaration = { number: 20 full_name: ".x" type: "int32" }];'
    ),
    "ranges to int32": M2("extensions 1 to 2147483647;"),
    "reserved to int32": M2("reserved 1 to 2147483647;"),
    "reserved below int32": M2("reserved 1 to 2147483646;"),
    "message set to int32": P2(
        "message M { option message_set_wire_format = true; extensions 4 to 2147483647; }"
    ),
    "message set below int32": P2(
        "message M { option message_set_wire_format = true; extensions 4 to 2147483646; }"
    ),
    "declaration right": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a.b" type: ".c.D" repeated: true }];'
    ),
    "declaration out of its range": M2(
        'extensions 5 to 10 [declaration = { number: 4 full_name: ".a" type: "int32" }];'
    ),
    "declaration twice": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a" type: "int32" }, declaration = { number: 5 full_name: ".b" type: "int32" }];'
    ),
    "declaration name twice": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a" type: "int32" }, declaration = { number: 6 full_name: ".a" type: "int32" }];'
    ),
    "declaration without type": M2('extensions 5 to 10 [declaration = { number: 5 full_name: ".a" }];'),
    "declaration without name": M2('extensions 5 to 10 [declaration = { number: 5 type: "int32" }];'),
    "declaration empty": M2("extensions 5 to 10 [declaration = { number: 5 }];"),
    "declaration reserved": M2("extensions 5 to 10 [declaration = { number: 5 reserved: true }];"),
    "declaration reserved with name": M2(
        'extensions 5 to 10 [declaration = { number: 5 reserved: true full_name: ".a" }];'
    ),
    "declaration reserved with both": M2(
        'extensions 5 to 10 [declaration = { number: 5 reserved: true full_name: ".a" type: "int32" }];'
    ),
    "declaration without a dot": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: "a" type: "int32" }];'
    ),
    "declaration type without a dot": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a" type: "A" }];'
    ),
    "declaration of no name": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a b" type: "int32" }];'
    ),
    "declaration group type": M2(
        'extensions 5 to 10 [declaration = { number: 5 full_name: ".a" type: "group" }];'
    ),
    "declaration unverified": M2(
        'extensions 5 to 10 [verification = UNVERIFIED, declaration = { number: 5 full_name: ".a" type: "int32" }];'
    ),
    "declaration empty name": M2('extensions 5 to 10 [declaration = { number: 5 full_name: "" type: "" }];'),
    # Extensions.
    "extend": P2(
        "message M { extensions 100 to 200; } extend M { optional int32 a = 100; repeated M b = 101; }"
    ),
    "extend nested": P2(
        "message M { extensions 100 to 200; extend M { optional N n = 150; } message N { extend M { optional int32 a = 101; } } }"
    ),
    "extend with a group": P2(
        "message M { extensions 1 to 9; } extend M { optional group G = 1 { optional int32 x = 1; } }"
    ),
    "extend out of range": P2("message M { extensions 100 to 200; } extend M { optional int32 a = 99; }"),
    "extend twice": P2(
        "message M { extensions 1; } extend M { optional int32 a = 1; } extend M { optional int32 b = 1; }"
    ),
    "extend required": P2("message M { extensions 1; } extend M { required int32 a = 1; }"),
    "extend empty": P2("message M { extensions 1; } extend M {}"),
    "extend nothing": P2("extend Nothing { optional int32 a = 1; }"),
    "extend an enum": P2("enum E { A = 0; } extend E { optional int32 a = 1; }"),
    "extend with json_name": P2(
        'message M { extensions 1; } extend M { optional int32 a = 1 [json_name = "x"]; }'
    ),
    "extend in proto3": P3(
        'import "google/protobuf/descriptor.proto"; extend google.protobuf.FileOptions { string a = 50000; optional int32 b = 50001; repeated int32 c = 50002; }'
    ),
    "extend a message in proto3": P3(
        'import "google/protobuf/descriptor.proto"; extend google.protobuf.FileDescriptorProto { string a = 50000; }'
    ),
    "extend with 19000": P2("message M { extensions 1 to max; } extend M { optional int32 a = 19000; }"),
    "extend declared": P2(
        'message M { extensions 5 to 6 [verification = DECLARATION, declaration = { number: 5, full_name: ".a", type: "int32" }]; } extend M { optional int32 a = 5; }'
    ),
    "extend declared otherwise": P2(
        'message M { extensions 5 to 6 [verification = DECLARATION, declaration = { number: 5, full_name: ".a", type: "int64" }]; } extend M { optional int32 a = 5; }'
    ),
    "extend not declared": P2(
        'message M { extensions 5 to 6 [verification = DECLARATION, declaration = { number: 5, full_name: ".a", type: "int64" }]; } extend M { optional int32 b = 6; }'
    ),
    "message set": P2(
        "message M { option message_set_wire_format = true; extensions 4 to max; } message N { extend M { optional N n = 2000000000; } }"
    ),
    "message set with fields": P2(
        "message M { option message_set_wire_format = true; optional int32 a = 1; }"
    ),
    "message set of numbers": P2(
        "message M { option message_set_wire_format = true; extensions 4 to max; } extend M { optional int32 n = 5; }"
    ),
    # Scopes.
    "scope innermost": P3(
        "package a.b; message A { message B { message C {} } message D { B b = 1; B.C c = 2; A.B.C d = 3; b.A e = 4; } }"
    ),
    "scope shadowed": P3("package a; message b { message C {} } message M { message b {} b.C x = 1; }"),
    "scope of packages shadowed": P3("package a.a; message M { a.a.M x = 1; }"),
    "scope of a field": P3("message A { message x {} message B { int32 x = 1; x y = 2; } }"),
    "scope after use": P3("message A { B b = 1; } message B { A a = 1; }"),
    "scope by dot": P3("package p; message A { .A b = 1; }"),
    "names twice": P3("message A {} enum A { X = 0; }"),
    "names twice in messages": M3("message A {} message A {}"),
    "name of the package": P3("package a.b; message a { a.b.c x = 1; } message c {}"),
    "nested 31": P3("message A { " * 31 + "}" * 31),
    "nested 32": P3("message A { " * 32 + "}" * 32),
    "nested 33": P3("message A { " * 33 + "}" * 33),
    # Services.
    "service": P3(
        "message A {} service S { option deprecated = true; rpc a(A) returns (A); rpc b(stream A) returns (stream .A) { option deprecated = true; option idempotency_level = IDEMPOTENT; } rpc c(A) returns (A) {} }"
    ),
    "service without types": P3("service S { rpc a(A) returns (B); }"),
    "service with scalars": P3("service S { rpc a(int32) returns (int32); }"),
    "service with enums": P3("enum E { A = 0; } service S { rpc a(E) returns (E); }"),
    "service methods twice": P3("message A {} service S { rpc a(A) returns (A); rpc a(A) returns (A); }"),
    "service and message": P3("message A {} service A {}"),
    "service stream": P3(
        "message stream {} service S { rpc a(stream stream) returns (stream stream); rpc b(.stream) returns (.stream); }"
    ),
    # Options.
    "file options": P3(
        'option java_package = "a"; option java_multiple_files = true; option optimize_for = CODE_SIZE; option deprecated = true; option cc_enable_arenas = false;'
    ),
    "option unknown": P3("option nothing = 1;"),
    "option twice": P3('option java_package = "a"; option java_package = "b";'),
    "option of another kind": P3("option java_package = 1;"),
    "option bool as number": P3("option deprecated = 1;"),
    "option bool as string": P3('option deprecated = "true";'),
    "option enum unknown": P3("option optimize_for = FAST;"),
    "option enum as number": P3("option optimize_for = 1;"),
    "option uninterpreted": P3("option uninterpreted_option = {};"),
    "option map_entry": M3("option map_entry = true;"),
    "option map_entry false": M3("option map_entry = false;"),
    "option packed": M2("repeated int32 a = 1 [packed = true]; repeated string b = 2 [packed = false];"),
    "option packed string": M2("repeated string b = 2 [packed = true];"),
    "option packed optional": M2("optional int32 b = 2 [packed = true];"),
    "option packed in editions": ME("repeated int32 b = 2 [packed = true];"),
    "option lazy": M2("optional M a = 1 [lazy = true];"),
    "option lazy int": M2("optional int32 a = 1 [lazy = true];"),
    "option jstype": M2(
        "optional int64 a = 1 [jstype = JS_STRING]; optional int32 b = 2 [jstype = JS_NORMAL];"
    ),
    "option jstype int32": M2("optional int32 b = 2 [jstype = JS_STRING];"),
    "option ctype": M2("optional string b = 2 [ctype = CORD];"),
    "option ctype int": M2("optional int32 b = 2 [ctype = CORD];"),
    "option lists": M2("optional int32 a = 1 [deprecated = true, (nothing) = 1];"),
    "option empty brackets": M2("optional int32 a = 1 [];"),
    "option weak": M2("optional M a = 1 [weak = true];"),
    "option debug": M3("int32 a = 1 [debug_redact = true, retention = RETENTION_SOURCE];"),
    "option targets": M3("int32 a = 1 [targets = TARGET_TYPE_FILE, targets = TARGET_TYPE_MESSAGE];"),
    "custom numbers": OPTIONS(
        "option (i32) = -5; option (i64) = -9223372036854775808; option (u32) = 4294967295; option (u64) = 0xFFFFFFFFFFFFFFFF;"
        " option (s32) = -1; option (s64) = -64; option (f32) = 7; option (f64) = 8; option (sf32) = -7; option (sf64) = -8;"
        " option (fl) = 1.5; option (db) = -2; option (bo) = true; option (st) = 'a\\n' \"b\"; option (by) = '\\xff';"
        " option (color) = BLUE; option (opt.ints) = 1; option (.opt.ints) = 2;"
    ),
    "custom infinite": OPTIONS("option (fl) = inf; option (db) = -inf;"),
    "custom nan": OPTIONS("option (fl) = nan; option (db) = 12e3;"),
    "custom int32 too large": OPTIONS("option (i32) = 2147483648;"),
    "custom uint32 negative": OPTIONS("option (u32) = -1;"),
    "custom uint64 too large": OPTIONS("option (u64) = 18446744073709551616;"),
    "custom int32 as float": OPTIONS("option (i32) = 1.0;"),
    "custom int32 as string": OPTIONS("option (i32) = '1';"),
    "custom bool": OPTIONS("option (bo) = True;"),
    "custom string as word": OPTIONS("option (st) = abc;"),
    "custom enum unknown": OPTIONS("option (color) = GREEN;"),
    "custom path": OPTIONS(
        "option (deep).n = 1; option (deep).deep.deep.n = 3; option (deep).(ext) = 4; option (deep).many = 1; option (deep).many = 2;"
    ),
    "custom path twice": OPTIONS("option (deep).n = 1; option (deep).n = 2;"),
    "custom path after a whole": OPTIONS("option (deep) = { n: 1 }; option (deep).deep.n = 2;"),
    "custom path before a whole": OPTIONS("option (deep).n = 1; option (deep) = { n: 1 };"),
    "custom path of a scalar": OPTIONS("option (i32).n = 1;"),
    "custom path of a repeated message": OPTIONS("option (deep).deeps.n = 1;"),
    "custom path unknown": OPTIONS("option (deep).nothing = 1;"),
    "custom path of a group": OPTIONS("option (deep).grp.g = 1;"),
    "custom message as number": OPTIONS("option (deep) = 1;"),
    "custom aggregate": OPTIONS(
        "option (deep) = { n: 1, deep { n: -2; many: [1, 2, 3] many: 4 } deeps: [{n: 1}, {n: 2}] deeps { } s: 'a' \"b\""
        " Grp { g: 3 } m { key: 'k' value: 1 } m: { key: 'l' } a: 5 [opt.ext]: 7 [opt.ext_deep] < n: 0x10 > };"
    ),
    "custom aggregate group in small letters": OPTIONS("option (deep) = { grp { g: 1 } };"),
    "custom aggregate twice": OPTIONS("option (deep) = { n: 1 n: 2 };"),
    "custom aggregate oneof twice": OPTIONS("option (deep) = { a: 1 b: 'x' };"),
    "custom aggregate unknown": OPTIONS("option (deep) = { nothing: 1 };"),
    "custom aggregate without colon": OPTIONS("option (deep) = { n 1 };"),
    "custom aggregate list of one": OPTIONS("option (deep) = { n: [1] };"),
    "custom aggregate empty list": OPTIONS("option (deep) = { many: [] };"),
    "custom aggregate wrong end": OPTIONS("option (deep) = { deep < n: 1 } };"),
    "custom aggregate of strings": OPTIONS("option (deep) = { s: abc };"),
    "custom aggregate extension by a short name": OPTIONS("option (deep) = { [ext]: 7 };"),
    "custom aggregate extension unknown": OPTIONS("option (deep) = { [foo.bar]: 7 };"),
    "custom required": OPTIONS("option (strict) = { r: 1 };"),
    "custom required missing": OPTIONS("option (strict) = { o: 1 };"),
    "custom repeated": OPTIONS("option (deeps) = { n: 1 }; option (deeps) = {}; option (ints) = 5;"),
    "custom field options": OPTIONS(
        "optional int32 a = 1 [(note) = 'x', (opt.colors) = RED, (colors) = BLUE, deprecated = true];"
    ),
    "custom of another element": OPTIONS("option (note) = 'x';"),
    "custom unknown": OPTIONS("option (nothing) = 1;"),
    "custom is no extension": OPTIONS("option (Deep) = 1;"),
    "custom within itself": OPTIONS(
        "extend google.protobuf.MessageOptions { optional int32 own = 60000; } option (own) = 1;"
    ),
    "custom within itself by its name": OPTIONS(
        "extend google.protobuf.MessageOptions { optional int32 own = 60000; } option (Uses.own) = 1;"
    ),
    "custom with targets": OPTIONS(
        "option (t) = 1;",
        "extend google.protobuf.MessageOptions { optional int32 t = 60000 [targets = TARGET_TYPE_FIELD]; }",
    ),
    "custom with its targets": OPTIONS(
        "option (t) = 1;",
        "extend google.protobuf.MessageOptions { optional int32 t = 60000 [targets = TARGET_TYPE_MESSAGE]; }",
    ),
    # Editions.
    "features": E3(
        "option features.field_presence = IMPLICIT; message M { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; "
        "int32 c = 3 [features.field_presence = LEGACY_REQUIRED]; repeated int32 d = 4 [features.repeated_field_encoding = EXPANDED]; "
        "string e = 5 [features.utf8_validation = NONE]; M f = 6 [features.message_encoding = DELIMITED]; map<string, string> g = 7 [features.utf8_validation = NONE]; }"
    ),
    "features in proto3": M3("int32 a = 1 [features.field_presence = IMPLICIT];"),
    "features unknown": ME("int32 a = 1 [features.field_presence = FIELD_PRESENCE_UNKNOWN];"),
    "features required file": E3("option features.field_presence = LEGACY_REQUIRED;"),
    "features presence of a message": ME("M a = 1 [features.field_presence = IMPLICIT];"),
    "features presence of repeated": ME("repeated int32 a = 1 [features.field_presence = IMPLICIT];"),
    "features presence of a oneof": ME("oneof o { int32 a = 1 [features.field_presence = IMPLICIT]; }"),
    "features presence of a default": ME("int32 a = 1 [features.field_presence = IMPLICIT, default = 2];"),
    "features presence of a closed enum": ME(
        "E a = 1 [features.field_presence = IMPLICIT]; enum E { option features.enum_type = CLOSED; A = 0; }"
    ),
    "features packed strings": ME("repeated string a = 1 [features.repeated_field_encoding = PACKED];"),
    "features packed singular": ME("int32 a = 1 [features.repeated_field_encoding = PACKED];"),
    "features utf8 of int": ME("int32 a = 1 [features.utf8_validation = NONE];"),
    "features encoding of int": ME("int32 a = 1 [features.message_encoding = DELIMITED];"),
    "features encoding of a map": ME("map<int32, M> a = 1 [features.message_encoding = DELIMITED];"),
    "features of a message": ME(
        "option features.json_format = LEGACY_BEST_EFFORT; int32 a_b = 1; int32 aB = 2;"
    ),
    "features JSON": ME("int32 a_b = 1; int32 aB = 2;"),
    "features enum on a field": ME("int32 a = 1 [features.enum_type = CLOSED];"),
    "features aggregate": E3(
        "option features = { field_presence: IMPLICIT enum_type: CLOSED }; message M { int32 a = 1; }"
    ),
    "features of an extension": E3(
        "message M { extensions 1; } extend M { int32 a = 1 [features.field_presence = EXPLICIT]; }"
    ),
    "edition 2024": E4(
        "package a_b.c; export message M { int32 a_b1 = 1; } local enum E { E_A = 0; } message N { enum O { O_A = 0; } }"
    ),
    "edition 2024 style of fields": E4("message M { int32 aB = 1; }"),
    "edition 2024 style of messages": E4("message m_x {}"),
    "edition 2024 style of constants": E4("enum E { eA = 0; }"),
    "edition 2024 style of numbers": E4("message M { int32 a_1 = 1; }"),
    "edition 2024 style of packages": E4("package A;"),
    "edition 2024 style of services": E4("service s {}"),
    "edition 2024 legacy style": E4(
        "option features.enforce_naming_style = STYLE_LEGACY; message m_x { int32 aB = 1; }"
    ),
    "edition 2024 weak": E4('import weak "google/protobuf/any.proto";'),
    "edition 2024 import option": E4(
        'import option "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; }'
    ),
    "edition 2024 ctype": E4("message M { string a = 1 [ctype = CORD]; }"),
    "edition 2024 multiple files": E4("option java_multiple_files = true;"),
    "edition 2023 export": E3("export message M {}"),
    "edition 2023 style": E3("option features.enforce_naming_style = STYLE2024; message M {}"),
}
