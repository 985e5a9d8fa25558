"""Hostile schemas, data, bodies and records at the schema registry: no exception leaves the formats, their codecs and
what reads bodies and `_schemas`, but for those that say what is wrong; a datum that is checked is one that is decoded.

The slice of the gate is some thousand of them, `--long` ten minutes (`LEAFCUTTR_FUZZ_SECONDS` overrides both). The seed
is printed; `LEAFCUTTR_FUZZ_SEED` repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from fuzz.mutate import mutate
from leafcuttr_registry.api import requests
from leafcuttr_registry.api.bodies import parse
from leafcuttr_registry.checks import work
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.formats import formats
from leafcuttr_registry.inline_tags import Tagged, Tags
from leafcuttr_registry.storage import keys, values
from leafcuttr_registry.subjects import tags
from leafcuttr_registry.subjects.config import read_update
from leafcuttr_registry.subjects.events import Event, OtherKey
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk import schema_framing as framing
from leafcuttr_sdk.errors import InvalidRecord
from leafcuttr_sdk.schemas import DataError, ParsedSchema, SchemaError, SchemaFormat
from leafcuttr_sdk.testing import running_broker
from leafcuttr_sdk.web.errors import ApiError
from support.checked_topics import AVRO, JSON, PROTOBUF, Shop
from support.registry import SETTINGS

LEAST: Final = 1000
FORMATS: Final = {each.name: each for each in formats()}
REFUSED: Final = (ApiError, Refusal, ValueError)

SCHEMAS: Final[dict[str, list[str]]] = {
    "AVRO": [
        AVRO,
        '{"type":"record","name":"a.B","aliases":["C"],"fields":[{"name":"u","type":["null","string",{"type":"fixed",'
        '"name":"F","size":2}],"default":null},{"name":"m","type":{"type":"map","values":{"type":"array","items":"a.B"}},'
        '"default":{}},{"name":"e","type":{"type":"enum","name":"E","symbols":["X","Y"],"default":"X"}},{"name":"d",'
        '"type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}},{"name":"f","type":"double",'
        '"order":"ignore","aliases":["g"]},{"name":"b","type":"boolean"}]}',
        '["null","long",{"type":"array","items":"float"}]',
    ],
    "JSON": [
        JSON,
        '{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://a/b","definitions":{"x":{"type":["integer",'
        '"null"],"multipleOf":0.5,"minimum":-1e3}},"properties":{"a":{"$ref":"#/definitions/x"},"b":{"items":[{"enum":[1,'
        '"a",null,{"k":[]}]}],"additionalItems":false,"uniqueItems":true}},"patternProperties":{"^(a|b)+$":{"pattern":'
        '"[a-z]{2,}"}},"dependencies":{"a":["b"],"b":{"not":{"const":0}}},"if":{"required":["a"]},"then":false,"anyOf":'
        '[true,{"maxProperties":3}]}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicAnchor":"n","prefixItems":[{"$dynamicRef":'
        '"#n"}],"unevaluatedItems":false,"contains":{"type":"string","format":"date"},"minContains":0,"$defs":{"a":'
        '{"$anchor":"z","dependentSchemas":{"q":{"$ref":"#z"}},"unevaluatedProperties":{"oneOf":[{},false]}}}}',
    ],
    "PROTOBUF": [
        PROTOBUF,
        'syntax = "proto2"; package p.q; import "google/protobuf/timestamp.proto"; import "google/protobuf/'
        'descriptor.proto"; option java_package = "x\\n\\x41"; message M { reserved 5, 7 to 9, 100 to max; '
        'reserved "r"; '
        "required int32 a = 1 [default = -0x1F, deprecated = true]; optional group G = 2 { repeated sint64 v = 1 "
        "[packed = true]; } oneof o { string s = 3; bytes b = 4; } map<string, M> m = 6; extensions 10 to 20; enum E { "
        'option allow_alias = true; A = 0; B = -1; C = 0; } optional E e = 21 [default = B, json_name = "é"]; optional '
        "google.protobuf.Timestamp t = 22; optional double d = 23 [default = -inf]; } extend M { optional M x = 10; } "
        "extend google.protobuf.FieldOptions { optional M opt = 50000; } service S { rpc F (stream M) returns (.p.q.M) "
        "{ option idempotency_level = IDEMPOTENT; } }",
        'edition = "2023"; option features.field_presence = IMPLICIT; message A { repeated A a = 1 [features.'
        "repeated_field_encoding = EXPANDED]; string s = 2 [features.field_presence = EXPLICIT]; oneof o "
        "{ int32 i = 3; "
        "A m = 4; } reserved foo; }",
    ],
}
DATA: Final = {
    "AVRO": [b"\2", b"\0\0\0\0\2\x01\0\0\0\0\0\0\0\0\1", b"\2\6abc\2\2k\0\0\0", b"\4\2\0\0\x80\x3f\0"],
    "JSON": [
        b'{"id":1}',
        b'{"a":0.5,"b":["a"],"ab":"xyz"}',
        b'[["2020-01-01"],[],1e5,null,"\\ud83d\\ude00"]',
    ],
    "PROTOBUF": [
        b"\x08\1",
        b"\x08\1\x13\x0a\2\1\2\x14\x1a\1a\x32\5\x0a\1k\x12\0",
        b"\x0a\4\x0a\0\x12\0\x18\1\x22\0",
    ],
}
WORDS: Final = (
    '"type"',
    '"items"',
    '"$ref"',
    '"#"',
    '"default"',
    '"name"',
    '"string"',
    '"null"',
    "{}",
    "[]",
    "true",
    "1e400",
    "-0",
    "\\u0000",
    "\\ud800",
    '""',
    "message",
    "enum",
    "oneof",
    "map",
    "reserved",
    "extend",
    "option",
    "repeated",
    "optional",
    "=",
    ";",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ".",
    "-",
    '"int32',
    "2147483648",
    "99999999999999999999",
    "é",
    "\x00",
    "/*",
    "//",
    '"pattern"',
    '"(a*)*$"',
    '"multipleOf"',
    "0",
    '"allOf"',
    '"fields"',
    '"symbols"',
    '"size"',
    "group",
    "to",
    "max",
    "import",
    "weak",
    "public",
)
BODIES: Final[list[dict[str, Any]]] = [
    {
        "schema": '"string"',
        "schemaType": "AVRO",
        "references": [{"name": "a", "subject": "b", "version": -1}],
        "metadata": {"tags": {"a": ["b"]}, "properties": {"c": "d"}, "sensitive": ["e"]},
        "ruleSet": {
            "domainRules": [
                {
                    "name": "r",
                    "kind": "CONDITION",
                    "mode": "READ",
                    "type": "CEL",
                    "tags": ["t"],
                    "params": {"p": "q"},
                    "expr": "x",
                    "onFailure": "NONE",
                    "disabled": False,
                }
            ],
            "migrationRules": [],
            "enableAt": "z",
        },
        "id": 5,
        "version": 1,
        "deleted": False,
        "subject": "s",
    },
    {
        "schemaTagsToAdd": [
            {"schemaEntity": {"entityType": "sr_record", "entityPath": "Order"}, "tags": ["t"]}
        ]
    },
    {
        "compatibility": "FULL",
        "normalize": True,
        "alias": "a",
        "overrideMetadata": {"properties": {"a": "b"}},
    },
    {"compatibilityLevel": "NONE", "defaultRuleSet": {"domainRules": []}, "mode": "IMPORT"},
]
KEYS: Final = [
    b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
    b'{"keytype":"CONFIG","subject":":.c:a","magic":0}',
    b'{"keytype":"MODE","magic":0}',
    b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}',
    b'{"keytype":"CLEAR_SUBJECT","subject":":.c:","magic":0}',
    b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
    b'{"magic":0,"keytype":"NOOP"}',
]


def damaged_text(rng: random.Random, text: str, other: str) -> str:
    """A text with words of its language where they do not belong, or with parts missing, doubled or of another one."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 2, 5, 20, 100)))
        match rng.randrange(6):
            case 0:
                text = text[:at] + rng.choice(WORDS) + text[end:]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:at] + text[at:end] * rng.randint(2, 30) + text[end:]
            case 3:
                cut = rng.randrange(len(other) + 1)
                text = text[:at] + other[cut : cut + 50] + text[end:]
            case 4:
                text = (
                    text[:at]
                    + chr(rng.choice((0, 9, 10, 34, 92, 127, 0xA0, 0x2028, 0xD800, 0x1F600)))
                    + text[end:]
                )
            case 5:
                digits = str(rng.choice((0, -1, 2**31, 2**63, 10**30, 1e308)))
                text = text[:at] + digits + text[end:]
    return text


def damaged_value(rng: random.Random, value: Any) -> Any:
    """A value of JSON that has another type somewhere."""
    if rng.random() < 0.2:
        return rng.choice((None, True, 0, -1, 2**31, 1.5, "", "\ud800", "x" * 300, [], {}, [1], {"a": {}}))
    if isinstance(value, dict) and value:
        name = rng.choice(list(value))
        changed = {**value, name: damaged_value(rng, value[name])}
        if rng.random() < 0.1:
            del changed[name]
        return changed
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [*value[:at], damaged_value(rng, value[at]), *value[at:]]
    if isinstance(value, str) and rng.random() < 0.5:
        return damaged_text(rng, value, "a")
    return value


def schema(rng: random.Random) -> bool:
    """Whether it was one. All that a format does with it, and with data."""
    name = rng.choice(list(SCHEMAS))
    format, good = FORMATS[name], rng.choice(SCHEMAS[name])
    if name != "PROTOBUF" and rng.random() < 0.5:
        text = json.dumps(damaged_value(rng, json.loads(good)))
    else:
        text = damaged_text(rng, good, rng.choice(SCHEMAS[name]))
    try:
        parsed = format.parse(text, {})
        again = format.parse(parsed.canonical, {})
        assert again.canonical == parsed.canonical
        parsed.normalized()
        for how in ("resolved", "serialized", "ignore_extensions", "none"):
            parsed.formatted(how)
        assert parsed.record_name is None or isinstance(parsed.record_name, str)
        work.compare(format, Source(text, {}), [(Source(good, {}), True, True)])
        work.fields(format, Source(text, {}))
        tagged(format, Source(text, {}))
    except SchemaError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 2000
        return False
    for _ in range(3):
        datum(rng, name, parsed)
    return True


def tagged(format: SchemaFormat, source: Source) -> None:
    """All that can be tagged comes back with a tag, and without it."""
    known = work.tags(format, source)
    parsed = work.parse(format, source)
    assert isinstance(parsed, Tagged)
    everything: Tags = {place: ["fuzz"] for place in parsed.places()}
    text = work.with_tags(format, source, everything, {}, {})
    assert work.tags(format, Source(text, {})) == {
        place: list(dict.fromkeys((*known.get(place, ()), "fuzz"))) for place in everything
    }
    again = work.with_tags(format, Source(text, {}), {}, everything, {})
    assert work.tags(format, Source(again, {})) == known


def datum(rng: random.Random, name: str, parsed: ParsedSchema) -> None:
    path = rng.choice(((0,), (0,), (1,), (0, 0), (-1,), (10**9,)))
    data = mutate(rng, DATA[name]) if rng.random() < 0.9 else rng.randbytes(rng.randint(0, 50))
    try:
        codec = parsed.codec(path)
    except DataError:
        return
    good, value = True, None
    try:
        value = codec.decode(data)
    except DataError:
        good = False
    checked = True
    try:
        codec.check(data)
    except DataError:
        checked = False
    assert checked == good, (name, parsed.canonical, data)
    with suppress(DataError):
        codec.encode(damaged_value(rng, value))


def body(rng: random.Random) -> bool:
    given = damaged_value(rng, rng.choice(BODIES))
    data = json.dumps(given, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        data = mutate(rng, [data])
    try:
        found = parse(data)
    except ValueError:
        return False
    if not isinstance(found, dict):
        return False
    read = 0
    readers: list[Callable[[], Any]] = [
        lambda: requests.registration(found).content("x").digest,
        lambda: read_update(found),
        lambda: work.with_tags(
            FORMATS["AVRO"], Source(AVRO, {}), tags.read(found, "schemaTagsToAdd"), {}, {}
        ),
    ]
    for reader in readers:
        try:
            reader()
            read += 1
        except REFUSED:
            pass
    return read > 0


def record(rng: random.Random, state: State) -> bool:
    """What is read is applied, written, and read again as the same."""
    key_bytes = rng.choice(KEYS)
    if rng.random() < 0.3:
        key_bytes = mutate(rng, [key_bytes])
    elif rng.random() < 0.5:
        key_bytes = json.dumps(damaged_value(rng, json.loads(key_bytes))).encode()
    value_bytes = json.dumps(damaged_value(rng, rng.choice(BODIES))).encode() if rng.random() < 0.9 else None
    try:
        key = keys.decode(key_bytes)
        value = values.decode(key, value_bytes)
    except ValueError:
        return False
    state.apply(Event(key, value), 0)
    if isinstance(key, OtherKey):
        return True  # which is kept as it is, and not written
    assert keys.decode(keys.encode(key)) == key
    encoded = values.encode(Event(key, value))
    assert values.encode(Event(key, values.decode(key, encoded))) == encoded
    return True


def rounds(request: pytest.FixtureRequest, share: float, least: int = LEAST) -> Iterator[random.Random]:
    """As many as there is time for."""
    long = request.config.getoption("--long")
    seconds = float(os.environ.get("LEAFCUTTR_FUZZ_SECONDS", "600" if long else "0")) * share
    seed = int(os.environ.get("LEAFCUTTR_FUZZ_SEED", str(random.randrange(1 << 32))))
    print(f"LEAFCUTTR_FUZZ_SEED={seed}")
    rng = random.Random(seed)
    end, done = time.monotonic() + seconds, 0
    while done < least or time.monotonic() < end:
        yield rng
        done += 1
    print(f"{done} rounds")


@pytest.mark.timeout(0)  # its own clock ends it
def test_schemas_and_their_data(request: pytest.FixtureRequest) -> None:
    good = [schema(rng) for rng in rounds(request, 0.6)]
    assert sum(good) > len(good) / 20


@pytest.mark.timeout(0)
def test_bodies(request: pytest.FixtureRequest) -> None:
    good = [body(rng) for rng in rounds(request, 0.1)]
    assert sum(good) > len(good) / 20


@pytest.mark.timeout(0)
def test_records_of_the_topic(request: pytest.FixtureRequest) -> None:
    state = State()
    good = [record(rng, state) for rng in rounds(request, 0.1)]
    assert sum(good) > len(good) / 20


@pytest.mark.timeout(0)
def test_records_of_topics_that_are_checked(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with running_broker(tmp_path, SETTINGS, ["registry"]) as broker:
        shop = Shop(broker)
        prefixes = []
        for name, texts in SCHEMAS.items():
            for text in texts[:2]:
                topic = shop.topic(f"t{len(prefixes)}", value="full")
                found = shop.register(f"{topic}-value", text, name)
                index = b"\0" if name == "PROTOBUF" else b""
                prefixes.append((topic, name, framing.id_prefix(found.id) + index))
        stored = 0
        for rng in rounds(request, 0.2, 300):
            topic, name, prefix = rng.choice(prefixes)
            data = prefix + (mutate(rng, DATA[name]) if rng.random() < 0.8 else rng.choice(DATA[name]))
            if rng.random() < 0.3:
                data = mutate(rng, [data])
            headers = (("__value_schema_id", rng.randbytes(rng.choice((0, 1, 16, 17)))),)
            try:
                broker.produce(topic, data, headers=headers if rng.random() < 0.1 else ())
                stored += 1
            except InvalidRecord as error:
                assert str(error)
        assert stored > 10
