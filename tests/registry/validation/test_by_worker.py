"""Topics whose values are checked by schemas that some values would keep busy without a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from leafcuttr_registry.checks import values
from leafcuttr_registry.validation.full import SchemaFilter, SchemaValidator
from leafcuttr_registry.validation.settings import options_of
from leafcuttr_sdk import NeedsThread, NotReady, Record
from leafcuttr_sdk.errors import InvalidRecord
from leafcuttr_sdk.testing import running_broker, topic_context
from support.checked_topics import AVRO, Shop, framed, guid_header
from support.registry import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from leafcuttr_sdk import Broker

BUSY = '{"type":"string","pattern":"^(a+)+$"}'
DOUBLING = """{"type": "object", "properties": {"tree": {"$ref": "#/definitions/tree"}}, "definitions": {"tree":
    {"anyOf": [{"type": "array", "items": {"$ref": "#/definitions/tree"}, "minItems": 2},
               {"type": "array", "items": {"$ref": "#/definitions/tree"}, "maxItems": 1}]}}}"""
GOOD = b'"aaa"'
WRONG = b'"b"'
EVIL = b'"' + b"a" * 40 + b'!"'


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evil values are not what the gate's time is for."""
    monkeypatch.setattr(values, "EACH_S", 0.1)


def test_each_value_is_decoded(shop: Shop) -> None:
    topic = shop.topic("busy", value="full")
    schema = shop.register("busy-value", BUSY, "JSON")
    shop.broker.produce(topic, framed(schema, GOOD))
    shop.broker.produce(topic, GOOD, headers=(guid_header(schema),))
    shop.broker.produce(topic, None)
    for data, why in (
        (WRONG, "the value is not of its schema: at \"\\$\": 'b' does not match"),
        (b"3", "the value is not of its schema: "),
        (b"", "the value is not of its schema: "),
        (EVIL, "the value takes longer than 0.1 s to be checked by its schema"),
    ):
        with pytest.raises(InvalidRecord, match=why):
            shop.broker.produce(topic, framed(schema, data))
    assert shop.values(topic) == [framed(schema, GOOD), GOOD, None]


def test_alternatives_that_double_the_work(shop: Shop) -> None:
    topic = shop.topic("doubling", value="full")
    schema = shop.register("doubling-value", DOUBLING, "JSON")
    shop.broker.produce(topic, framed(schema, b'{"tree":[[],[[]]]}'))
    deep = b'{"tree":' + b"[" * 60 + b"0" + b"]" * 60 + b"}"
    with pytest.raises(InvalidRecord, match="the value takes longer than"):
        shop.broker.produce(topic, framed(schema, deep))


def test_a_batch_names_the_records_at_fault(shop: Shop) -> None:
    """Those behind one that takes too long are decoded."""
    topic = shop.topic("busy-batch", value="full")
    schema = shop.register("busy-batch-value", BUSY, "JSON")
    other = shop.register("busy-batch-value", BUSY.replace("}", ',"title":"Other"}'), "JSON")
    sent = [GOOD, WRONG, GOOD, EVIL, WRONG]
    told: list[Any] = []
    producer = Producer({"bootstrap.servers": shop.broker.bootstrap_servers, "linger.ms": 60_000})
    for value in sent:
        producer.produce(
            topic,
            framed(schema, value),
            on_delivery=lambda error, _: told.append(None if error is None else error.name()),
        )
    assert producer.flush(60) == 0
    fine, bad = "_INVALID_DIFFERENT_RECORD", "INVALID_RECORD"
    assert told == [fine, bad, fine, bad, bad]
    told.clear()
    for n in range(600):
        producer.produce(
            topic, framed((schema, other)[n % 2], GOOD), on_delivery=lambda error, _: told.append(error)
        )
    assert producer.flush(60) == 0
    assert told == [None] * 600

    context = _context(shop, "busy-batch")
    validator = SchemaValidator(context, [options_of(context.topic_settings, "value")])
    records = [Record(framed(schema, value)) for value in sent]
    records += [Record(None), Record(b"x"), Record(framed(other, WRONG)), Record(framed(other, GOOD))]

    async def judged(broker: Broker) -> Any:
        import trio

        return await trio.to_thread.run_sync(validator.validate_in_thread, records)

    verdicts = shop.broker.call(judged)
    starts = [verdict and verdict[:21] for verdict in verdicts]
    wrong, slow = "the value is not of i", "the value takes longe"
    assert starts == [None, wrong, None, slow, wrong, None, "the value begins with", wrong, None]
    with pytest.raises(NeedsThread, match=f"schema {schema.id} may keep a check busy without a bound"):
        validator.validate(records[0])
    assert validator.validate(Record(b"x")) == verdicts[6]


def test_bad_ones_become_dead_letters_and_the_others_are_stored(shop: Shop) -> None:
    topic = shop.topic("busy-aside", value="full", key="full", lc_schema_validation_on_error="dlq")
    schema, key = shop.register("busy-aside-value", BUSY, "JSON"), shop.register("busy-aside-key", AVRO)
    good = framed(schema, GOOD)
    shop.broker.produce(topic, good, framed(key, b"\2"))
    shop.broker.produce(topic, framed(schema, EVIL), framed(key, b"\2"))
    shop.broker.produce(topic, good, framed(key, b""))
    shop.broker.produce(topic, good)
    assert shop.values(topic) == [good, good]
    reasons = [
        dict(each.headers)["lc.dead.letter.reason"] for each in shop.broker.consume("busy-aside.dlq", 2)
    ]
    assert [(each or b"")[:26] for each in reasons] == [
        b"the value takes longer tha",
        b"the key is not of its sche",
    ]


def test_two_parts_at_fault_are_told_by_the_first(shop: Shop) -> None:
    shop.topic("busy-both", value="full", key="full")
    schema, key = shop.register("busy-both-value", BUSY, "JSON"), shop.register("busy-both-key", AVRO)
    context = _context(shop, "busy-both", key="full")
    validator = SchemaValidator(
        context, [options_of(context.topic_settings, part) for part in ("key", "value")]
    )

    async def judged(broker: Broker) -> Any:
        import trio

        record = Record(framed(schema, WRONG), framed(key, b""))
        return await trio.to_thread.run_sync(validator.validate_in_thread, [record])

    assert shop.broker.call(judged)[0].startswith("the key is not of its schema")


def test_while_the_registry_is_away_records_wait(shop: Shop) -> None:
    shop.topic("busy-away", value="full")
    schema = shop.register("busy-away-value", BUSY, "JSON")
    context = _context(shop, "busy-away")
    filter = SchemaFilter(context, [options_of(context.topic_settings, "value")])
    record = Record(framed(schema, GOOD))

    async def judged(broker: Broker) -> Any:
        import trio

        first = await trio.to_thread.run_sync(filter.filter_in_thread, [record])
        provider: Any = broker.schemas
        registry, provider.registry = provider.registry, None
        try:
            return first, await trio.to_thread.run_sync(filter.filter_in_thread, [record])
        finally:
            provider.registry = registry

    first, second = shop.broker.call(judged)
    assert first == [record]
    assert second == [
        NotReady("The schema registry cannot answer yet: the topic _schemas is still being read.")
    ]


@pytest.mark.long
def test_the_broker_serves_others_meanwhile(tmp_path: Path) -> None:
    """A producer that sends nothing but values which take too long: another topic and the registry are answered."""
    with running_broker(tmp_path, SETTINGS, ["registry"]) as broker:
        shop = Shop(broker)
        busy, other = shop.topic("b", value="full"), shop.topic("o")
        schema = shop.register("b-value", BUSY, "JSON")
        told: list[Any] = []
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 100})
        for _ in range(5):
            producer.produce(
                busy, framed(schema, EVIL), on_delivery=lambda error, _: told.append(error and error.name())
            )
        producer.flush(0)
        count = 0
        while producer.poll(0) or not told:
            broker.produce(other, b"x")
            shop.register(f"s{count}", AVRO.replace("Order", f"Order{count}"))
            count += 1
        assert producer.flush(60) == 0
        assert told == ["INVALID_RECORD"] * 5
        assert count > 5


def _context(shop: Shop, topic: str, **checks: str) -> Any:
    import leafcuttr_registry

    async def provider(broker: Broker) -> Any:
        return broker.schemas

    schemas = shop.broker.call(provider)
    settings: Any = {
        f"lc.schema.validation.{part}": check for part, check in {"value": "full", **checks}.items()
    }
    context = topic_context(topic, plugin=leafcuttr_registry, topic_settings=settings, schemas=schemas)
    return context._replace(broker=schemas.registry.broker)
