"""Schemas that are made to hurt: a verdict or a reason, with a bound on steps and not on the speed of the machine."""

from __future__ import annotations

import base64
import contextlib
import tracemalloc
from collections.abc import Callable

import pytest
from google.protobuf import descriptor_pb2

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.format import FORMAT, PARSE_STEPS
from leafcuttr_registry.protobuf.link import link
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from registry.protobuf.parsing import parsed, refused

P3 = 'syntax = "proto3";\n'
MB = 1 << 20


def times(make: Callable[[int], str], count: int) -> str:
    return "".join(make(at) for at in range(1, count + 1))


TEN_THOUSAND = {
    "fields": f"message M {{ {times(lambda at: f'int32 field_{at} = {at}; ', 10_000)} }}",
    "optional fields": f"message M {{ {times(lambda at: f'optional int32 f{at} = {at}; ', 10_000)} }}",
    "maps": f"message M {{ {times(lambda at: f'map<string, int32> f{at} = {at}; ', 10_000)} }}",
    "oneofs": f"message M {{ {times(lambda at: f'oneof o{at} {{ int32 f{at} = {at}; }} ', 10_000)} }}",
    "messages": f"message M {{ {times(lambda at: f'N{at} f{at} = {at}; message N{at} {{}} ', 10_000)} }}",
    "constants": f"enum E {{ E0 = 0; {times(lambda at: f'E{at} = {at}; ', 10_000)} }}",
    "a chain": times(lambda at: f"message M{at} {{ M{at % 10_000 + 1} a = 1; }} ", 10_000),
    "options": f"message M {{ {times(lambda at: f'int32 f{at} = {at} [deprecated = true]; ', 10_000)} }}",
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TEN_THOUSAND)
def test_ten_thousand_are_within_the_budget(name: str) -> None:
    schema = parsed(P3 + TEN_THOUSAND[name])
    assert schema.record_name is not None
    if name in ("fields", "a chain"):
        assert schema.canonical.count(" = ") >= 10_000
        assert schema.normalized().count(" = ") >= 10_000
        assert FORMAT.differences(schema, schema) == []


COMPLEX = {
    "semicolons": ";" * MB,
    "fields": f"message M {{ {times(lambda at: f'int32 a{at}={at};', 70_000)} }}",
    "messages": times(lambda at: f"message M{at}{{}}", 60_000),
    "reserved numbers": f"message M {{ reserved {','.join(map(str, range(1, 150_000)))}; }}",
    "a name of many parts": "package a" + ".a" * (MB // 2) + ";",
    "an option of many parts": "option a" + ".a" * (MB // 2) + " = 1;",
    "an aggregate without end": "option (a) = " + "{a " * (MB // 3),
    "brackets": "option (a) = {a:" + "[" * MB,
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", COMPLEX)
def test_a_megabyte_is_too_complex(name: str) -> None:
    refused(P3 + COMPLEX[name], "too complex")


LARGE = {
    "a comment": ("/*" + "*" * MB + "*/", ""),
    "a comment without end": ("/*" + "* " * (MB // 2), "has no end"),
    "comments": ("/**/" * (MB // 4), ""),
    "a string": ('option java_package = "' + "a" * MB + '";', ""),
    "a string of escapes": ('option java_package = "' + "\\n" * (MB // 2) + '";', ""),
    "strings": ("option java_package = " + '"a"' * (MB // 3) + ";", ""),
    "a string without end": ('"' + "\\a" * (MB // 2), "does not end in its line"),
    "an identifier": ("message " + "a" * MB + " {}", ""),
    "a number": ("message M { int32 a = " + "1" * MB + "; }", "is too large"),
    "a hexadecimal number": ("message M { int32 a = 0x" + "1" * MB + "; }", "is too large"),
    "an octal number": ("message M { int32 a = 0" + "1" * MB + "; }", "is too large"),
    "spaces": (" " * MB, ""),
    "zero bytes": ("\0" * MB, "control character"),
    "braces": ("message A {" * (MB // 11), "nested more than"),
    "imports": (times(lambda at: f'import "f{at}";', 60_000), "no reference"),
    "an unknown type": ("message M { " + "a" * MB + " b = 1; }", "is not defined"),
    "base64": ("", ""),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", LARGE)
def test_a_megabyte_of_one_thing(name: str) -> None:
    text, saying = LARGE[name]
    if name == "base64":
        with pytest.raises(SchemaError):
            parsed("A" * MB)
    elif saying:
        with pytest.raises(SchemaError, match=saying):
            parsed(P3 + text)
    else:
        parsed(P3 + text)


@pytest.mark.parametrize("name", ["a comment", "a string", "a string without end"])
def test_memory_is_bounded(name: str) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(SchemaError):
            parsed(P3 + LARGE[name][0])
        assert tracemalloc.get_traced_memory()[1] < 64 * MB
    finally:
        tracemalloc.stop()


def test_two_hundred_levels() -> None:
    refused(P3 + "message A {\n" * 200 + "}" * 200, "messages are nested more than 31 deep", 33)


def test_two_hundred_levels_of_a_descriptor() -> None:
    proto = descriptor_pb2.FileDescriptorProto(name="x")
    message = proto.message_type.add(name="A")
    for _ in range(40):
        message = message.nested_type.add(name="A")
    refused(base64.b64encode(proto.SerializeToString()).decode(), "nested more than 31 deep")
    # Deeper ones are no descriptor for protobuf.
    data = b""
    for _ in range(200):
        body = b"\x0a\x01A" + (
            b"\x1a" + bytes((len(data) & 127 | 128, len(data) >> 7)) + data if data else b""
        )
        data = body
    data = b"\x22" + bytes((len(data) & 127 | 128, len(data) >> 7)) + data
    refused(base64.b64encode(data).decode(), "no FileDescriptorProto")


def test_text_that_is_no_unicode() -> None:
    refused(P3 + "\n// \ud800", "not valid Unicode", 3)


def test_a_chain_of_references() -> None:
    references: dict[str, ResolvedReference] = {}
    for at in range(500):
        before = f'import "r{at - 1}";' if at else ""
        references = {f"r{at}": ResolvedReference(f"{before} message R{at} {{}}", references)}
    with pytest.raises(SchemaError, match="more than 100 deep"):
        FORMAT.parse('import "r499";', references)


def test_references_that_explode() -> None:
    """Forty levels of two files, of which each imports both below: a tree of 2^40, and 80 files."""
    references: dict[str, ResolvedReference] = {}
    for at in range(40):
        imports = "".join(f'import "{name}";' for name in references)
        references = {
            f"{side}{at}": ResolvedReference(f"{imports} message {side}{at} {{}}", references)
            for side in "ab"
        }
    FORMAT.parse('import "a39"; import "b39";', references)


@pytest.mark.long
def test_references_share_one_budget() -> None:
    each = ResolvedReference(P3 + ";" * (PARSE_STEPS // 3), {})
    references = {f"r{at}": each for at in range(4)}
    with pytest.raises(SchemaError, match="too complex"):
        FORMAT.parse("".join(f'import "r{at}";' for at in range(4)), references)


def test_steps() -> None:
    """The same text takes the same steps."""
    counts = set()
    for _ in range(2):
        budget = Budget(PARSE_STEPS)
        link(P3 + TEN_THOUSAND["constants"], {}, budget)
        counts.add(budget.left)
    assert len(counts) == 1


def test_reasons_are_short() -> None:
    with pytest.raises(SchemaError) as caught:
        parsed(P3 + f'import "{"x" * MB}";')
    assert len(str(caught.value)) < 500
    with pytest.raises(SchemaError) as caught:
        parsed(P3 + "message M { " + "a" * MB + " b = 1; }")
    assert len(str(caught.value)) < 500


def test_options_with_long_names() -> None:
    """Each part is a message within the one before."""
    text = P3 + 'import "google/protobuf/descriptor.proto"; message O { O o = 1; int32 i = 2; } '
    text += "extend google.protobuf.FileOptions { O opt = 50000; } "
    parsed(text + f"option (opt){'.o' * 98}.i = 1;").normalized()
    with pytest.raises(SchemaError, match="more than 100 parts"):
        parsed(text + f"option (opt){'.o' * 99}.i = 1;")
