"""Decoding by schemas on a real Spark, of what Confluent's serializers have written with a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from support import librdkafka
from support.registry import RegistryProcess, running_registry

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "lines", "type": {"type": "array", "items": "string"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": FIELDS}
NEWER = {**ORDER, "fields": [*FIELDS, {"name": "note", "type": ["null", "string"], "default": None}]}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


def order(number: int) -> dict[str, Any]:
    at = datetime(2024, 1, 1, 0, 0, number % 60, tzinfo=UTC)
    return {"id": number, "customer": f"c{number}", "lines": ["a"] * (number % 3), "at": at}


def options(registry: RegistryProcess, topic: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": registry.broker.address,
        "subscribe": topic,
        "value.format": "avro",
        "schema.registry.url": registry.url,
        **more,
    }


def test_avro_of_two_schemas_and_what_is_none(spark: Any, registry: RegistryProcess, tmp_path: Path) -> None:
    address = registry.broker.address
    librdkafka.create(address, "orders", 2)
    client = SchemaRegistryClient({"url": registry.url})
    producer = Producer({"bootstrap.servers": address})
    place = SerializationContext("orders", MessageField.VALUE)
    for schema in (ORDER, NEWER):
        serializer = AvroSerializer(client, json.dumps(schema))
        for number in range(50):
            value = order(number) | ({"note": "new"} if schema is NEWER else {})
            producer.produce("orders", serializer(value, place), b"%d" % number, partition=number % 2)
    producer.produce("orders", b"\0\0\0\xff\xff\x02", b"unknown id", partition=0)
    producer.produce("orders", b"text", b"no id", partition=1)
    producer.produce("orders", None, b"tombstone", partition=1)
    assert producer.flush(30) == 0

    frame = (
        spark.read.format("leafcuttr")
        .options(**options(registry, "orders", columns="key,value,error,valueBytes"))
        .load()
    )
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,customer:string,lines:array<string>,at:timestamp,note:string>"
    )
    rows = frame.collect()
    good = [row for row in rows if row["value"] is not None]
    assert sorted(row["value"]["id"] for row in good) == sorted([*range(50), *range(50)])
    assert {row["value"]["note"] for row in good} == {None, "new"}
    assert all(row["value"]["lines"] == ["a"] * (row["value"]["id"] % 3) for row in good)
    bad = {bytes(row["key"]): (row["error"], row["valueBytes"]) for row in rows if row["value"] is None}
    assert bad[b"tombstone"] == (None, None)
    assert bad[b"unknown id"][0].startswith("value: schema 65535: ")
    assert bad[b"no id"][0].startswith("value: the magic byte is 116;") and bad[b"no id"][1] == b"text"
    assert frame.where("value.id = 7").select("value.customer").distinct().collect()[0][0] == "c7"

    stream = (
        spark.readStream.format("leafcuttr")
        .options(**options(registry, "orders", startingOffsets="earliest"))
        .load()
    )
    query = (
        stream.select("value.*")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(
        Exception, match=r"cannot be decoded: value: .*; with a column error the query goes on"
    ):
        query.awaitTermination()


def test_what_cannot_be_used_is_said_at_once(spark: Any, registry: RegistryProcess) -> None:
    for given, said in (
        ({"value.subject": "nothing"}, "the registry has no schema of the subject nothing"),
        ({"value.format": "arvo"}, "the option value.format has the value 'arvo'"),
        ({"value.schema": '{"type": "record"}'}, "the schema of values cannot be used: a record has no name"),
        (
            {"schema.registry.url": "http://127.0.0.1:9", "schema.registry.max.retries": "0"},
            "no schema registry answers at http://127.0.0.1:9",
        ),
    ):
        with pytest.raises(Exception, match=said):
            spark.read.format("leafcuttr").options(**{**options(registry, "orders"), **given}).load()
