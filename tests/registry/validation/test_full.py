"""Topics whose keys or values are decoded by their schemas before they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from leafcuttr_registry.validation.full import PartCheck, SchemaFilter
from leafcuttr_registry.validation.settings import options_of
from leafcuttr_sdk import DROP, DeadLetter, NotReady, Record
from leafcuttr_sdk.errors import InvalidRecord, NotReadyError
from leafcuttr_sdk.testing import HandClock, topic_context
from support.checked_topics import AVRO, JSON, PROTOBUF, Shop, framed, guid_header

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker

FULL = {"lc.schema.validation.value": "full"}


def test_avro(shop: Shop) -> None:
    topic = shop.topic("avro", value="full")
    schema = shop.register("avro-value", AVRO)
    shop.broker.produce(topic, framed(schema, b"\2"))
    shop.broker.produce(topic, b"\2", headers=[guid_header(schema)])
    shop.broker.produce(topic, None)
    for data in (b"", b"\2\2", b"\x80"):
        with pytest.raises(InvalidRecord, match="the value is not of its schema: "):
            shop.broker.produce(topic, framed(schema, data))
    assert shop.values(topic) == [framed(schema, b"\2"), b"\2", None]


def test_json(shop: Shop) -> None:
    topic = shop.topic("json", value="full")
    schema = shop.register("json-value", JSON, "JSON")
    shop.broker.produce(topic, framed(schema, b'{"id":1}'))
    for data in (b"", b"{}", b'{"id":"1"}', b'{"id":1', b'{"id":1}{"id":1}'):
        with pytest.raises(InvalidRecord, match="the value is not of its schema: "):
            shop.broker.produce(topic, framed(schema, data))


def test_protobuf_with_the_path_to_its_message(shop: Shop) -> None:
    topic = shop.topic("protobuf", value="full")
    schema = shop.register("protobuf-value", PROTOBUF, "PROTOBUF")
    for path, data in (
        (b"\0", b"\x08\1"),
        (b"\0", b""),
        (b"\2\2", b"\x0a\1a"),
        (b"\4\0\0", b"\x0a\1a"),
        (b"\2\0", b"\x08\1"),
    ):
        shop.broker.produce(topic, framed(schema, path + data))
        shop.broker.produce(topic, data, headers=[guid_header(schema, path=path)])
    for path, data, why in (
        (b"", b"\0\x08\1", "the header __value_schema_id has no indexes of a message"),
        (b"\0", b"\x08", "are no message shop.Order"),
        (b"\2\2", b"\x0a\1\xff", "are no message shop.Other"),
        (b"\2\x12", b"", "in the header __value_schema_id the message indexes [9] lead to no message"),
    ):
        with pytest.raises(InvalidRecord) as caught:
            shop.broker.produce(topic, data, headers=[guid_header(schema, path=path)])
        assert why in str(caught.value)
    for data, why in (
        (b"", "the data end within the message indexes"),
        (b"\2\x12", "9"),
        (b"\0\x08", "are no message shop.Order"),
        (b"\2\2\x0a\1\xff", "are no message shop.Other"),
    ):
        with pytest.raises(InvalidRecord) as caught:
            shop.broker.produce(topic, framed(schema, data))
        assert "the value is not of its schema: " in str(caught.value) and why in str(caught.value)


def test_each_message_has_the_subject_of_its_own_name(shop: Shop) -> None:
    """What is remembered of a schema does not stand for all of its messages."""
    topic = shop.topic("full-named", value="full", lc_schema_subject_strategy_value="record")
    text = PROTOBUF.replace("package shop", "package own")
    schema = shop.register("own.Other", text, "PROTOBUF")
    other, first = framed(schema, b"\2\2\x0a\1a"), framed(schema, b"\0\x08\1")
    for _ in range(2):
        shop.broker.produce(topic, other)
        with pytest.raises(InvalidRecord, match=r"is none of subject own\.Order"):
            shop.broker.produce(topic, first)


def test_keys_too(shop: Shop) -> None:
    topic = shop.topic("both", key="full", value="id")
    key, value = shop.register("both-key", '"string"'), shop.register("both-value", AVRO)
    shop.broker.produce(topic, framed(value), framed(key, b"\2a"))
    shop.broker.produce(topic, framed(value), None)
    with pytest.raises(InvalidRecord, match="the key is not of its schema"):
        shop.broker.produce(topic, framed(value), framed(key, b"\4a"))
    with pytest.raises(InvalidRecord, match=f"schema {key.id} is none of subject both-value"):
        shop.broker.produce(topic, framed(key, b"\2a"), framed(key, b"\2a"))


def test_an_enveloped_schema_with_references(shop: Shop) -> None:
    from leafcuttr_sdk import SchemaReference

    topic = shop.topic("referring", value="full")
    shop.register("item", '{"type":"record","name":"Item","fields":[{"name":"n","type":"int"}]}')

    async def register(broker: Broker) -> Any:
        assert broker.schemas is not None
        return await broker.schemas.register(
            "referring-value",
            "AVRO",
            '{"type":"record","name":"Cart","fields":[{"name":"first","type":"Item"}]}',
            [SchemaReference("Item", "item", 1)],
        )

    schema = shop.broker.call(register)
    shop.broker.produce(topic, framed(schema, b"\2"))
    with pytest.raises(InvalidRecord, match="not of its schema"):
        shop.broker.produce(topic, framed(schema, b""))


@pytest.mark.setting("lc.schema.validation.on.error")
def test_bad_records_become_dead_letters(shop: Shop) -> None:
    topic = shop.topic("aside", value="full", lc_schema_validation_on_error="dlq")
    schema = shop.register("aside-value", AVRO)
    good, bad = framed(schema, b"\2"), framed(schema, b"\2\2")
    shop.broker.produce(topic, good)
    shop.broker.produce(topic, bad, b"k", headers=[("a", b"1")])
    shop.broker.produce(topic, b"none")
    assert shop.values(topic) == [good]
    first, second = shop.broker.consume("aside.dlq", 2)
    headers = dict(first.headers)
    assert (first.value, first.key, headers["a"]) == (bad, b"k", b"1")
    reason = headers["lc.dead.letter.reason"]
    assert reason is not None and reason.startswith(b"the value is not of its schema: ")
    assert second.value == b"none"


def test_dead_letters_of_ids_alone(shop: Shop) -> None:
    topic = shop.topic("ids-aside", value="id", lc_schema_validation_on_error="dlq")
    schema = shop.register("ids-aside-value", AVRO)
    shop.broker.produce(topic, framed(schema, b"not Avro"))
    shop.broker.produce(topic, b"none")
    assert shop.values(topic) == [framed(schema, b"not Avro")]
    assert [letter.value for letter in shop.broker.consume("ids-aside.dlq", 1)] == [b"none"]


def test_without_a_check_dead_letters_are_not_asked_for(shop: Shop) -> None:
    topic = shop.topic("unchecked", lc_schema_validation_on_error="dlq")
    shop.broker.produce(topic, b"anything")
    assert shop.values(topic) == [b"anything"]


def test_a_schema_that_is_deleted_is_refused_within_a_second(shop: Shop) -> None:
    """What is remembered of a claim is asked for again, so that it follows the registry."""
    schema = shop.register("forgotten-value", AVRO)

    async def provider(broker: Broker) -> Any:
        return broker.schemas

    async def delete(broker: Broker) -> None:
        registry: Any = broker.schemas
        await registry.registry.delete_version("forgotten-value", 1, permanent=False)

    import leafcuttr_registry

    clock = HandClock()
    context = topic_context(
        "forgotten",
        plugin=leafcuttr_registry,
        topic_settings=FULL,
        clock=clock,
        schemas=shop.broker.call(provider),
    )
    check = PartCheck(context, options_of(context.topic_settings, "value"))
    record = Record(value=framed(schema, b"\2"))
    assert check.why_not(record) is None
    shop.broker.call(delete)
    assert check.why_not(record) is None
    clock.ms += 1001
    assert check.why_not(record) == f"schema {schema.id} is none of subject forgotten-value"


class Loading:
    """A registry that is still read."""

    waits_for = "the topic _schemas is still being read"

    def get(self, key: int | str, subject: str | None = None) -> None:
        return None


def test_while_the_registry_is_read_records_wait() -> None:
    import leafcuttr_registry

    loading: Any = Loading()
    context = topic_context("t", plugin=leafcuttr_registry, topic_settings=FULL, schemas=loading)
    filter = SchemaFilter(context, [options_of(context.topic_settings, "value")])
    assert filter.filter(Record(value=b"\0\0\0\0\1")) == NotReady(Loading.waits_for)
    verdict = filter.filter(Record(value=b"x"))
    assert isinstance(verdict, DeadLetter) and verdict is not DROP
    assert NotReadyError is not None
