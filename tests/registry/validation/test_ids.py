"""Topics whose keys or values have to have the id of a schema of their subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import leafcuttr_registry
from leafcuttr_registry.validation.ids import make_for_keys, make_for_values
from leafcuttr_registry.validation.peeks import PEEKED_BYTES, peek_of
from leafcuttr_registry.validation.settings import PARTS, PartName
from leafcuttr_sdk import Record
from leafcuttr_sdk.errors import InvalidRecord
from leafcuttr_sdk.schema_framing import ID_SIZE
from leafcuttr_sdk.testing import topic_context
from support.checked_topics import AVRO, JSON, OTHER, PROTOBUF, Shop, framed, guid_header

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker, SchemaProvider


@pytest.mark.setting("lc.schema.validation.value")
def test_an_id_of_the_subject_is_taken_and_nothing_is_decoded(shop: Shop) -> None:
    topic = shop.topic("ids", value="id")
    schema = shop.register("ids-value", AVRO)
    for value in (framed(schema, b"\2"), framed(schema), framed(schema, b"not Avro"), None):
        shop.broker.produce(topic, value)
    assert len(shop.values(topic)) == 4


@pytest.mark.parametrize(
    "value, why",
    [
        (
            b"",
            "the value is empty: it has neither the magic byte 0 and a schema id nor a header __value_schema_id",
        ),
        (b"{}", "the value begins with the byte 123"),
        (b"\1" + b"x" * 16, "the value begins with the byte 1"),
        (b"\0\0\0\0", "4 bytes end before the schema id"),
        (b"\0\x7f\xff\xff\xff", "there is no schema 2147483647"),
        (b"\0\xff\xff\xff\xff", "there is no schema -1"),
    ],
)
def test_what_is_no_id_of_a_schema_is_refused(shop: Shop, value: bytes, why: str) -> None:
    shop.topic("refusing", value="id")
    with pytest.raises(InvalidRecord) as caught:
        shop.broker.produce("refusing", value)
    assert why in str(caught.value)
    assert shop.values("refusing") == []


def test_a_schema_of_another_subject_is_refused(shop: Shop) -> None:
    topic = shop.topic("own", value="id")
    other = shop.register("else-value", OTHER)
    with pytest.raises(InvalidRecord, match=f"schema {other.id} is none of subject own-value"):
        shop.broker.produce(topic, framed(other))
    shop.register("own-value", OTHER)  # the same schema has the same id in each subject
    shop.broker.produce(topic, framed(other))


def test_a_guid_in_the_header(shop: Shop) -> None:
    topic = shop.topic("guids", value="id")
    schema = shop.register("guids-value", AVRO)
    shop.broker.produce(topic, b"no prefix", headers=[guid_header(schema)])
    shop.broker.produce(topic, b"no prefix", headers=[("__value_schema_id", framed(schema))])
    # The last one counts.
    shop.broker.produce(topic, b"no prefix", headers=[("__value_schema_id", b"?"), guid_header(schema)])
    for header, why in (
        (b"\1short", "the header __value_schema_id is none: 6 bytes end before the schema's guid"),
        (b"\1" + b"x" * 16, "there is no schema 78787878-7878-7878-7878-787878787878"),
        (b"", "the header __value_schema_id is none: there are no bytes"),
        (framed(schema, b"more"), "the header __value_schema_id is none: a path of -55 message indexes"),
        (framed(schema, b"\0more"), "the header __value_schema_id has 10 bytes; it has 6"),
        (framed(schema, b"\0"), "is of type AVRO: the header __value_schema_id has indexes of a message"),
    ):
        with pytest.raises(InvalidRecord) as caught:
            shop.broker.produce(topic, framed(schema), headers=[("__value_schema_id", header)])
        assert why in str(caught.value)
    with pytest.raises(InvalidRecord, match="the header __value_schema_id is none"):
        shop.broker.produce(topic, b"x", headers=[guid_header(schema), ("__value_schema_id", None)])
    # That of keys is another one.
    with pytest.raises(InvalidRecord, match="begins with the byte"):
        shop.broker.produce(topic, b"x", headers=[guid_header(schema, "key")])


@pytest.mark.setting("lc.schema.validation.key")
def test_keys_and_values_each_have_their_own(shop: Shop) -> None:
    topic = shop.topic("keyed", key="id")
    key = shop.register("keyed-key", '"string"')
    shop.broker.produce(topic, b"any value", framed(key, b"\2a"))
    shop.broker.produce(topic, b"any value", None)
    with pytest.raises(InvalidRecord, match="the key begins with the byte 97"):
        shop.broker.produce(topic, b"any value", b"a")
    value = shop.register("keyed-value", AVRO)
    with pytest.raises(InvalidRecord, match=f"schema {value.id} is none of subject keyed-key"):
        shop.broker.produce(topic, b"any value", framed(value))


def test_each_bad_record_of_a_batch_is_named(shop: Shop) -> None:
    topic = shop.topic("batch", value="id")
    good = framed(shop.register("batch-value", AVRO))

    async def produce(broker: Broker) -> list[Any]:
        values = [good, b"a", good + b"x", None, b"b"]
        return await broker.produce_batch(topic, [Record(value=value) for value in values])

    answers = shop.broker.call(produce)
    assert all(isinstance(each, InvalidRecord) for each in answers)
    assert ["begins with the byte" in str(each) for each in answers] == [False, True, False, False, True]
    assert shop.values(topic) == []


@pytest.mark.setting("lc.schema.subject.strategy.value")
@pytest.mark.parametrize(
    "strategy, subject", [("record", "shop.Order"), ("topic-record", "named-topic-record-shop.Order")]
)
def test_subjects_by_the_name_of_the_record(shop: Shop, strategy: str, subject: str) -> None:
    topic = shop.topic(f"named-{strategy}", value="id", lc_schema_subject_strategy_value=strategy)
    wrong = shop.register(f"{topic}-value", AVRO)
    with pytest.raises(InvalidRecord, match=f"is none of subject {subject}"):
        shop.broker.produce(topic, framed(wrong))
    shop.broker.produce(topic, framed(shop.register(subject, AVRO)))


@pytest.mark.setting("lc.schema.subject.strategy.key")
def test_the_subjects_of_keys(shop: Shop) -> None:
    topic = shop.topic("named-keys", key="id", lc_schema_subject_strategy_key="record")
    shop.broker.produce(topic, b"", framed(shop.register("shop.Order", AVRO)))
    with pytest.raises(InvalidRecord, match="is none of subject Other"):
        shop.broker.produce(topic, b"", framed(shop.register("named-keys-key", OTHER)))


def test_a_schema_without_a_name(shop: Shop) -> None:
    topic = shop.topic("nameless", value="id", lc_schema_subject_strategy_value="record")
    schema = shop.register("nameless-value", '{"type":"object"}', "JSON")
    with pytest.raises(InvalidRecord, match="has no name, which the strategy record needs"):
        shop.broker.produce(topic, framed(schema, b"{}"))


def test_messages_of_protobuf_have_names_of_their_own(shop: Shop) -> None:
    topic = shop.topic("messages", value="id", lc_schema_subject_strategy_value="record")
    schema = shop.register("shop.Other", PROTOBUF, "PROTOBUF")
    other, nested, first, none = b"\2\2", b"\4\0\0", b"\0", b"\2\x12"
    shop.broker.produce(topic, framed(schema, other))
    shop.broker.produce(topic, b"data", headers=[guid_header(schema, path=other)])
    shop.broker.produce(topic, b"data", headers=[("__value_schema_id", framed(schema, other))])
    for header, why in (
        (b"", "is of type PROTOBUF: the header __value_schema_id has no indexes of a message"),
        (first, "is none of subject shop.Order"),
        (none, f"schema {schema.guid}: "),
    ):
        with pytest.raises(InvalidRecord) as caught:
            shop.broker.produce(topic, b"data", headers=[guid_header(schema, path=header)])
        assert why in str(caught.value)
    for path, why in (
        (first, "is none of subject shop.Order"),
        (nested, "is none of subject shop.Order.Line"),
        (none, f"schema {schema.id}: "),
        (b"", f"schema {schema.id}: the data end within the message indexes"),
    ):
        with pytest.raises(InvalidRecord) as caught:
            shop.broker.produce(topic, framed(schema, path))
        assert why in str(caught.value)


@pytest.mark.setting(
    "confluent.key.schema.validation",
    "confluent.value.schema.validation",
    "confluent.key.subject.name.strategy",
    "confluent.value.subject.name.strategy",
)
def test_what_confluent_calls_them(shop: Shop) -> None:
    strategies = "io.confluent.kafka.serializers.subject"
    topic = shop.topic(
        "confluents",
        confluent_key_schema_validation="true",
        confluent_value_schema_validation="true",
        confluent_key_subject_name_strategy=f"{strategies}.TopicRecordNameStrategy",
        confluent_value_subject_name_strategy=f"{strategies}.RecordNameStrategy",
    )
    value, key = shop.register("shop.Order", AVRO), shop.register("confluents-Other", OTHER)
    shop.broker.produce(topic, framed(value), framed(key))
    for wrong in ((b"x", framed(key)), (framed(value), b"x"), (framed(key), framed(value))):
        with pytest.raises(InvalidRecord):
            shop.broker.produce(topic, *wrong)


def test_a_version_that_is_deleted_is_none_of_its_subject(shop: Shop) -> None:
    topic = shop.topic("gone", value="id")
    schema = shop.register("gone-value", JSON, "JSON")
    shop.broker.produce(topic, framed(schema, b"{}"))

    async def delete(broker: Broker) -> None:
        registry: Any = broker.schemas
        await registry.registry.delete_version("gone-value", 1, permanent=False)

    shop.broker.call(delete)
    with pytest.raises(InvalidRecord, match="is none of subject gone-value"):
        shop.broker.produce(topic, framed(schema, b"{}"))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strategy, size", [("topic", ID_SIZE), ("record", PEEKED_BYTES)])
def test_only_what_the_strategy_needs_is_taken_out(
    shop: Shop, part: PartName, strategy: str, size: int
) -> None:
    topic_settings = {f"lc.schema.validation.{part}": "id", f"lc.schema.subject.strategy.{part}": strategy}
    context = topic_context(plugin=leafcuttr_registry, topic_settings=topic_settings)

    async def schemas(broker: Broker) -> SchemaProvider | None:
        return broker.schemas

    context = context._replace(schemas=shop.broker.call(schemas))
    made = {"key": make_for_keys, "value": make_for_values}[part](context)
    assert made is not None
    assert made.peek == peek_of(part, size)
    assert (made.peek.key_bytes is None) is (part == "value")
