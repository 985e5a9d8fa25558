"""Pipelines whose records have schemas: read and written in Avro, JSON Schema and Protobuf, by both connectors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, dual_schema_id_deserializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from leafcuttr_spark.formats import options
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import DeadLetters, Decoding, Encoding, Pipeline, Step, Table
from leafcuttr_spark.pipelines.operations import Map
from spark.running.pipes import fill, key_as, pipeline, records, run, sink, source
from support import librdkafka
from support.registry import RegistryProcess, running_registry

FIELDS = [{"name": "id", "type": "string"}, {"name": "amount", "type": ["null", "long"], "default": None}]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
STRICT = json.dumps(
    {"type": "record", "name": "Order", "fields": [FIELDS[0], {"name": "twice", "type": "long"}]}
)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


def test_a_schema_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from leafcuttr_spark.running.by_schema import _options

    (tmp_path / "s.avsc").write_text(STRICT)
    strict, pipe = Encoding("avro", schema=Path("s.avsc")), Pipeline("p", {}, file=tmp_path / "p.yaml")
    assert _options(strict, pipe).schema == STRICT.encode()
    monkeypatch.setattr(options, "LARGEST_FILE", len(STRICT) - 1)
    said = f"the schema {tmp_path / 's.avsc'} cannot be read: it is larger than {len(STRICT) - 1} bytes"
    with pytest.raises(OptionError, match=re.escape(said)):
        _options(strict, pipe)


@pytest.mark.parametrize("via", ["leafcuttr", "kafka"])
def test_from_avro_to_all(spark: Any, registry: RegistryProcess, tmp_path: Path, via: Any) -> None:
    if via == "kafka" and "spark-sql-kafka" not in spark.conf.get("spark.jars", ""):
        pytest.skip(f"the Kafka connector of Spark {spark.version} is not here")
    address = registry.broker.address
    topics = {name: f"{via}-{name}" for name in ("in", "avro", "json", "proto", "dead")}
    for topic in topics.values():
        librdkafka.create(address, topic, 2)
    client = SchemaRegistryClient({"url": registry.url})
    serializer = AvroSerializer(client, ORDER)
    place = SerializationContext(topics["in"], MessageField.VALUE)
    rows = [{"id": f"order-{n}", "amount": n if n % 10 else None} for n in range(30)]
    fill(address, topics["in"], [*(serializer(row, place) for row in rows), b"none"])
    (tmp_path / "strict.avsc").write_text(STRICT)
    strict = Encoding("avro", columns=("id", "twice"), schema=tmp_path / "strict.avsc", schema_id="header")
    pipe = pipeline(
        address,
        tmp_path,
        {"orders": source(topics["in"], value=Decoding("avro"), via=via)},
        [Step("doubled", Map({"twice": "amount * 2"}))],
        {
            "avro": sink("doubled", topics["avro"], value=strict, key=Encoding("avro", expression="id")),
            "json": sink("doubled", topics["json"], value=Encoding("json-schema")),
            "proto": sink("doubled", topics["proto"], value=Encoding("protobuf")),
        },
        letters=DeadLetters(topics["dead"]),
        registry={"schema.registry.url": registry.url},
    )
    run(pipe, spark)
    good = [row for row in rows if row["amount"] is not None]
    read = AvroDeserializer(client, conf={"schema.id.deserializer": dual_schema_id_deserializer})
    found = {}
    for one in records(spark, address, topics["avro"], 27):
        key = read(one.key, SerializationContext(topics["avro"], MessageField.KEY))
        ((name, guid),) = one.raw_headers
        found[key] = read(one.value, SerializationContext(topics["avro"], MessageField.VALUE, [(name, guid)]))
    assert found == {row["id"]: {"id": row["id"], "twice": row["amount"] * 2} for row in good}
    # A row that one sink cannot take goes to none of them.
    assert len(records(spark, address, topics["json"], 27)) == 27
    assert len(records(spark, address, topics["proto"], 27)) == 27
    dead = records(spark, address, topics["dead"], 4)
    reasons = sorted(one.headers["lc.dead.letter.reason"] for one in dead)
    assert reasons == ["twice is null, which its schema does not have"] * 3 + [
        "value: the magic byte is 110; it is 0 before an id, 1 before a guid"
    ]


def test_a_deletion_is_a_record_without_a_value_whatever_its_schema_needs(
    spark: Any, registry: RegistryProcess, tmp_path: Path
) -> None:
    address = registry.broker.address
    for topic in ("table", "changes", "changes-dead"):
        librdkafka.create(address, topic, 1)
    fill(address, "table", [{"name": "Ann"}, None], key=b"a")
    fields = [{"name": "name", "type": "string"}]
    (tmp_path / "name.avsc").write_text(json.dumps({"type": "record", "name": "Name", "fields": fields}))
    values = Encoding("avro", columns=("name",), schema=tmp_path / "name.avsc")
    given = Decoding("json", columns="name STRING")
    pipe = pipeline(
        address,
        tmp_path,
        {"names": replace(source("table", value=given, key=Decoding("text")), table=Table(("key",)))},
        [],
        {"out": sink("names", "changes", key=key_as("key"), value=values)},
        letters=DeadLetters("changes-dead"),
        registry={"schema.registry.url": registry.url},
    )
    running = run(pipe, spark)
    assert running.dead_letters == 0
    found = records(spark, address, "changes", 2)
    assert [(one.key, one.value is None) for one in found] == [(b"a", False), (b"a", True)]


def test_what_cannot_be_registered_is_said_at_the_start(
    spark: Any, registry: RegistryProcess, tmp_path: Path
) -> None:
    address = registry.broker.address
    librdkafka.create(address, "plain", 1)
    fill(address, "plain", [{"id": "a", "amount": 1}])
    for how, said in (
        (Encoding("avro", schema=Path("none.avsc")), "the schema .*none.avsc cannot be read: No such file"),
        (
            Encoding("protobuf", columns=("tags",), schema_id="none"),
            "values in Protobuf need a descriptor set",
        ),
    ):
        pipe = pipeline(
            address, tmp_path, {"orders": source("plain")}, [], {"out": sink("orders", "out", value=how)},
            registry={"schema.registry.url": registry.url},
        )  # fmt: skip
        with pytest.raises(PipelineError, match=f"sinks.out: {said}"):
            run(pipe, spark)
