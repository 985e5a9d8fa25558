"""Values by schemas of a registry: read and written, with their ids as they were. The registry is a real one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from leafcuttr_registry.provider import RegistryProvider
from leafcuttr_sdk import DROP, DeadLetter, NeedsThread, NotReady, PluginError, Record, schema_framing
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


PATTERN = json.dumps(
    {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^([a-z@.]+)+$"}}}
)
BUSY = json.dumps({"type": "object", "properties": {"mail": {"type": "string", "pattern": "^(a+)+$"}}})


def test_values_that_need_a_worker_are_filtered_in_a_topic(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("patterns-value", PATTERN, "JSON")
    topic = shop.topic("patterns", lc_filters="mask,when", lc_filters_dead_letter_topic="patterns-set-aside")
    values = (
        framed(schema, b'{"mail":"ann@b.se","id":1}'),
        framed(schema, b'{"mail":"ann@b.se","id":8}'),
        framed(shop.register("users-value", AVRO), avro(7, b"a@b")),
        None,
    )
    for value in values:
        broker.produce(topic, value, key=b"k")
    assert shop.values(topic) == [
        framed(schema, b'{"mail":"x","id":1}'),
        framed(shop.register("users-value", AVRO), avro(7, b"x")),
        None,
    ]


def test_one_that_takes_too_long_is_one_that_cannot_be_handled(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("busy-value", BUSY, "JSON")
    topic = shop.topic("busy", lc_filters="cut", lc_filters_dead_letter_topic="busy-set-aside")
    busy = framed(schema, json.dumps({"mail": "a" * 60 + "!", "id": 1}).encode())
    for value in (framed(schema, b'{"mail":"aa","id":2}'), busy, framed(schema, b'{"mail":"b"}')):
        broker.produce(topic, value)
    assert shop.values(topic) == [framed(schema, b'{"id":2}')]
    letters = broker.consume("busy-set-aside", count=2)
    reasons = [dict(letter.headers)["lc.dead.letter.reason"] or b"" for letter in letters]
    assert letters[0].value == busy
    assert reasons[0].startswith(b"replace: it is not of its schema: a check by its schema takes longer than")
    assert reasons[1].startswith(b"replace: it is not of its schema: ")


def test_outside_of_a_topic_nothing_can_wait_for_a_worker(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("patterns-value", PATTERN, "JSON")
    (verdict,) = judged(broker, "cut", record(framed(schema, b'{"mail":"a@b"}')))
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == f"replace: schema {schema.id}: it may take too long to check values by it"


def test_only_one_that_reads_by_schema_in_a_topic_may_wait(broker: RunningBroker, shop: Shop) -> None:
    schema = shop.register("patterns-value", PATTERN, "JSON")
    value = record(framed(schema, b'{"mail":"a@b"}'))

    async def judge(inside: Broker) -> Any:
        by_schema = made("mask fields=mail decode=schema", routes=False, schemas=inside.schemas)
        with pytest.raises(NeedsThread, match=f"schema {schema.id} may keep a value busy"):
            by_schema.filter(value)
        return by_schema

    assert hasattr(broker.call(judge), "filter_in_thread")
    assert not hasattr(made("mask fields=mail", routes=False), "filter_in_thread")
    assert not hasattr(made("mask fields=mail", routes=False), "forget")
    assert hasattr(made("dedupe by=key", routes=False), "forget")


def test_while_the_registry_reads_records_have_to_come_again(broker: RunningBroker) -> None:
    async def judge(inside: Broker) -> Any:
        early = RegistryProvider()
        return [
            made(text, schemas=early).filter(record(b"\0\0\0\0\x01"))
            for text in ("mask fields=a decode=schema", "deny key=a decode=schema when=value.a")
        ]

    for verdict in broker.call(judge):
        assert isinstance(verdict, NotReady) and "_schemas" in verdict.waits_for


@pytest.mark.long
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
