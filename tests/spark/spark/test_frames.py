"""Topics by the source here and by Spark's own connector, and columns as values that Confluent's deserializers read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace
from leafcuttr_spark.options import OptionError
from support import librdkafka
from support.registry import RegistryProcess, running_registry

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


def test_both_ways_give_the_same_rows(spark: Any, registry: RegistryProcess) -> None:
    from leafcuttr_spark.spark.frames import topic_frame

    if "spark-sql-kafka" not in spark.conf.get("spark.jars", ""):
        pytest.skip(f"the Kafka connector of Spark {spark.version} is not here")
    address = registry.broker.address
    librdkafka.create(address, "ways", 2)
    producer = Producer({"bootstrap.servers": address})
    serializer = AvroSerializer(SchemaRegistryClient({"url": registry.url}), SCHEMA)
    place = SerializationContext("ways", MessageField.VALUE)
    for number in range(100):
        value = serializer({"id": number}, place) if number % 10 else b"none"
        producer.produce("ways", value, b"k%d" % number, headers=[("n", b"1")])
    assert producer.flush(30) == 0
    given = {"kafka.bootstrap.servers": address, "subscribe": "ways"}
    avro = {
        **given,
        "value.format": "avro",
        "schema.registry.url": registry.url,
        "columns": "key,value,topic,partition,offset,timestamp,timestampType,headers,error,keyBytes,valueBytes",
    }
    for options in (given, avro):
        ours, theirs = (topic_frame(spark, options, stream=False, via=via) for via in ("leafcuttr", "kafka"))
        assert ours.columns == theirs.columns
        assert [one.dataType for one in ours.schema] == [one.dataType for one in theirs.schema]
        order = ["partition", "offset"]
        rows = ours.orderBy(*order).collect()
        assert rows == theirs.orderBy(*order).collect() and len(rows) == 100
    assert sum(row["error"] is not None for row in rows) == 10
    stream = topic_frame(spark, {**avro, "startingOffsets": "earliest"}, stream=True, via="kafka")
    assert stream.isStreaming
    with pytest.raises(OptionError, match="via is 'spark'; allowed is leafcuttr or kafka"):
        topic_frame(spark, given, stream=False, via="spark")


def test_columns_are_written_by_their_format(spark: Any, registry: RegistryProcess) -> None:
    from pyspark.sql import functions as f

    from leafcuttr_spark.spark.frames import encoded, planned_encoding

    rows = spark.createDataFrame(
        [(1, "a", [1.5], {"k": None}), (2, None, [], {}), (None, "c", None, None)],
        "id BIGINT, name STRING, many ARRAY<DOUBLE>, tags MAP<STRING, TIMESTAMP>",
    ).select(f.when(f.col("id").isNull(), None).otherwise(f.struct("*")).alias("value"))
    settings = {"schema.registry.url": registry.url}
    client = SchemaRegistryClient({"url": registry.url})
    wanted = [
        {"id": 1, "name": "a", "many": [1.5], "tags": {"k": None}},
        {"id": 2, "name": None, "many": [], "tags": {}},
        None,
    ]
    for name, read in (
        (FormatName.AVRO, AvroDeserializer(client)),
        (FormatName.JSON_SCHEMA, JSONDeserializer(None, schema_registry_client=client)),
    ):
        how = planned_encoding(
            rows, "value", FormatOptions(name, id=IdPlace.PAYLOAD, registry=settings), f"{name.value}-value"
        )
        found = rows.select(encoded(f.col("value"), how).alias("made")).select("made.*").collect()
        assert [row["error"] for row in found] == [None, None, None]
        place = SerializationContext("t", MessageField.VALUE)
        assert [row["data"] and read(bytes(row["data"]), place) for row in found] == wanted
