"""Values by schemas of a registry: read and written, with their ids as they were. The registry is a real one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from leafcuttr_registry.provider import RegistryProvider
from leafcuttr_sdk import DROP, DeadLetter, NotReady, PluginError, Record, schema_framing
from leafcuttr_sdk.testing import RunningBroker, running_broker
from support.checked_topics import Shop, framed, guid_header
from support.making_filters import NOW, made
from support.registry import SETTINGS

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker

AVRO = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "long"}, {"name": "mail", "type": "string"}],
    }
)
PROTOBUF = 'syntax = "proto3"; message A { string mail = 1; } message B { string mail = 1; int64 id = 2; }'
FILTERS = {
    "mask": "mask fields=mail decode=schema replacement=x",
    "cut": "replace exclude=mail decode=schema on.error=dead-letter",
    "some": "allow field=id field.value=7 decode=schema",
    "when": "deny key.regex=. decode=schema when='value.id > 7 and key != \"kept\"'",
    "which": "allow condition='value.mail contains \"@\"' decode=schema",
    "json": "mask fields=mail decode=json replacement=x on.error=dead-letter",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {**SETTINGS, **{f"lc.record.filter.{name}": text for name, text in FILTERS.items()}}
    with running_broker(tmp_path_factory.mktemp("schemas"), settings, ["registry"]) as running:
        yield running


@pytest.fixture(scope="module")
def shop(broker: RunningBroker) -> Shop:
    return Shop(broker)


def avro(number: int, mail: bytes) -> bytes:
    assert -64 <= number < 64 and len(mail) < 64
    return bytes([number << 1, len(mail) << 1]) + mail


def judged(broker: RunningBroker, name: str, *records: Record) -> Sequence[Any]:
    async def judge(inside: Broker) -> Sequence[Any]:
        chain = await inside.record_filters((name,), "users")
        try:
            return chain.filter(records)
        finally:
            chain.close()

    return broker.call(judge)


def record(value: bytes | None, **more: Any) -> Record:
    return Record(value, timestamp=NOW, **more)


def test_avro_is_written_again_behind_its_id(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("users-value", AVRO)
    came, tombstone = record(framed(schema, avro(7, b"ann@b.se"))), record(None)
    left, none = judged(broker, "mask", came, tombstone)
    assert left == record(framed(schema, avro(7, b"x"))) and none is tombstone
    header = guid_header(schema)
    in_header = record(avro(7, b"ann@b.se"), headers=(("__value_schema_id", b"old"), header))
    assert judged(broker, "mask", in_header) == [in_header._replace(value=avro(7, b"x"))]


def test_protobuf_keeps_the_path_to_its_message(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("mails-value", PROTOBUF, "PROTOBUF")
    path = schema_framing.indexes((1,))
    data = b"\x0a\x04a@b." + b"\x10\x05"
    (left,) = judged(broker, "mask", record(framed(schema, path + data)))
    assert left == record(framed(schema, path + b"\x0a\x01x\x10\x05"))
    name, guid = guid_header(schema)
    in_header = record(data, headers=((name, guid + path),))
    assert judged(broker, "mask", in_header) == [in_header._replace(value=b"\x0a\x01x\x10\x05")]


def test_fields_and_conditions_read_by_schema(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("users-value", AVRO)
    seven, nine = (record(framed(schema, avro(number, b"a")), key=b"k") for number in (7, 9))
    plain = record(b'{"id": 7}', key=b"k")
    assert [one is DROP for one in judged(broker, "some", seven, nine, plain)] == [False, True, True]
    kept = nine._replace(key=b"kept")
    assert [one is DROP for one in judged(broker, "when", seven, nine, kept, plain)] == [
        False,
        True,
        False,
        False,
    ]
    with_at = record(framed(schema, avro(1, b"a@b")))
    assert [one is DROP for one in judged(broker, "which", with_at, seven, plain)] == [False, True, True]


def test_what_is_not_of_its_schema_or_cannot_be_again(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("users-value", AVRO)
    came = framed(schema, avro(7, b"a"))
    reasons = [
        verdict.reason if isinstance(verdict, DeadLetter) else verdict
        for verdict in judged(
            broker, "cut",
            record(came), record(came[:-1]), record(b""), record(b"{}"), record(b"\0" + struct.pack(">i", 99_999)),
        )
    ]  # fmt: skip
    assert reasons[0].startswith("replace: what becomes of it is not of its schema: ")
    assert reasons[1].startswith("replace: it is not of its schema: ")
    assert (
        reasons[2] == "replace: it is not of its schema: there are no bytes where the magic byte is expected"
    )
    assert "the magic byte is 123" in reasons[3] and reasons[4] == "replace: there is no schema 99999"
    assert judged(broker, "json", record(came))[0].reason == "mask: it is no JSON"


def test_while_the_registry_reads_records_have_to_come_again(broker: RunningBroker) -> None:
    async def judge(inside: Broker) -> Any:
        early = RegistryProvider()
        return [
            made(text, schemas=early).filter(record(b"\0\0\0\0\x01"))
            for text in ("mask fields=a decode=schema", "deny key=a decode=schema when=value.a")
        ]

    for verdict in broker.call(judge):
        assert isinstance(verdict, NotReady) and "_schemas" in verdict.waits_for


def test_without_a_registry_it_is_not_made() -> None:
    for text in (
        "flatten decode=schema",
        "deny key=a decode=schema condition=value.a",
        "extract field=a decode=schema",
    ):
        with pytest.raises(
            PluginError, match=r"decode=schema needs a schema registry in this broker: lc\.schema"
        ):
            made(text)
