"""Confluent's serializers and deserializers for Python beside the proxy; and the requests of the REST proxy's
documentation, sent by curl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from support.broker_process import running_broker
from support.http_schemas import AVRO, JSONSCHEMA, ORDER, PERSON, PROTOBUF, REGISTRY, USER, V2

PATIENCE_S = 60


class Site(NamedTuple):
    """Addresses of a broker, its registry and its proxy."""

    kafka: str
    registry: str
    proxy: str

    def registry_client(self) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": self.registry})

    def produce(self, topic: str, body: Any, type: str) -> Any:
        answer = httpx.post(
            f"{self.proxy}/topics/{topic}", content=json.dumps(body).encode(), headers={"content-type": type}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def consume(self, topic: str, format: str, count: int) -> list[Any]:
        """By the calls that the REST proxy's documentation makes."""
        with httpx.Client(base_url=self.proxy, timeout=30, headers={"content-type": V2}) as client:
            body = {"format": format, "auto.offset.reset": "earliest"}
            made = client.post(f"/consumers/{topic}-readers", content=json.dumps(body)).json()
            base = httpx.URL(made["base_uri"]).path
            answer = client.post(f"{base}/subscription", content=json.dumps({"topics": [topic]}))
            assert answer.status_code == 204
            accept = {"accept": f"application/vnd.kafka.{format}.v2+json"}
            found: list[Any] = []
            for _ in range(PATIENCE_S):
                answer = client.get(f"{base}/records", headers=accept)
                assert answer.status_code == 200, answer.text
                found += answer.json()
                if len(found) >= count:
                    break
            client.delete(base)
        return found

    def read(self, topic: str) -> Any:
        """The one message of the topic."""
        reader = Consumer(
            {"bootstrap.servers": self.kafka, "group.id": "readers", "auto.offset.reset": "earliest"}
        )
        reader.subscribe([topic])
        try:
            message = reader.poll(PATIENCE_S)
            assert message is not None and message.error() is None
            return message
        finally:
            reader.close()

    def write(self, topic: str, value: bytes, headers: Any = None) -> None:
        producer = Producer({"bootstrap.servers": self.kafka})
        producer.produce(topic, value, headers=headers or None)
        assert producer.flush(PATIENCE_S) == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {**REGISTRY, "lc.http.proxy.enable": "true", "lc.http.proxy.port": "0"}
    with running_broker(tmp_path_factory.mktemp("site"), settings) as process:
        addresses = process.about["plugin_listeners"]
        yield Site(
            process.address,
            f"http://{addresses['lc.schema.registry']}",
            f"http://{addresses['lc.http.proxy']}",
        )


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The classes that protoc makes."""
    import importlib

    from grpc_tools import protoc

    folder = tmp_path_factory.mktemp("protoc")
    (folder / "proxy_orders.proto").write_text(ORDER)
    assert protoc.main(["protoc", f"-I{folder}", f"--python_out={folder}", "proxy_orders.proto"]) == 0
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("proxy_orders_pb2")
    finally:
        sys.path.remove(str(folder))


def at(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


def test_confluents_deserializers_read_what_was_produced_over_http(site: Site, orders: ModuleType) -> None:
    with_age = {"name": "ann", "age": {"int": 7}}
    site.produce("a1", {"value_schema": USER, "records": [{"value": with_age}]}, AVRO)
    read: Any = AvroDeserializer(site.registry_client())
    assert read(site.read("a1").value(), at("a1")) == {"name": "ann", "age": 7}
    site.produce("j1", {"value_schema": PERSON, "records": [{"value": {"name": "ann"}}]}, JSONSCHEMA)
    read = JSONDeserializer(PERSON, schema_registry_client=site.registry_client())
    assert read(site.read("j1").value(), at("j1")) == {"name": "ann"}
    site.produce("p1", {"value_schema": ORDER, "records": [{"value": {"id": "5", "note": "n"}}]}, PROTOBUF)
    read = ProtobufDeserializer(orders.Order, {}, site.registry_client())
    assert read(site.read("p1").value(), at("p1")) == orders.Order(id=5, note="n")


@pytest.mark.parametrize("in_header", [False, True])
def test_the_proxy_reads_what_confluents_serializers_write(
    site: Site, orders: ModuleType, in_header: bool
) -> None:
    config = {"schema.id.serializer": header_schema_id_serializer} if in_header else {}
    suffix = "h" if in_header else "p"
    client = site.registry_client()
    writers: list[tuple[str, str, Any, Any, Any]] = [
        ("a", "avro", AvroSerializer(client, USER, conf=config), {"name": "ann", "age": 7},
         {"name": "ann", "age": {"int": 7}}),
        ("j", "jsonschema", JSONSerializer(PERSON, client, conf=config), {"name": "ann"}, {"name": "ann"}),
        ("o", "protobuf", ProtobufSerializer(orders.Order, client, config), orders.Order(id=5),
         {"id": "5", "note": ""}),
        ("l", "protobuf", ProtobufSerializer(orders.Order.Line, client, config), orders.Order.Line(n=3),
         {"n": 3}),
    ]  # fmt: skip
    for name, format, write, value, read in writers:
        topic = f"{name}-{suffix}"
        context = at(topic)
        data = write(value, context)
        assert bool(context.headers) == in_header
        site.write(topic, data, context.headers)
        (record,) = site.consume(topic, format, 1)
        assert record["value"] == read


@pytest.mark.long
def test_the_requests_of_the_documentation(site: Site, tmp_path: Path) -> None:
    """https://docs.confluent.io/platform/current/kafka-rest/quickstart.html"""
    schema = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
    body = {"value_schema": json.dumps(schema), "records": [{"value": {"name": "testUser"}}]}
    answer = curl(
        "-X", "POST",
        "-H", f"Content-Type: {AVRO}",
        "-H", f"Accept: {V2}",
        "--data", json.dumps(body),
        f"{site.proxy}/topics/avrotest",
    )  # fmt: skip
    assert answer["offsets"] == [{"partition": 0, "offset": 0, "error_code": None, "error": None}]
    assert answer["key_schema_id"] is None
    id = answer["value_schema_id"]
    assert site.registry_client().get_latest_version("avrotest-value").schema_id == id
    keyed = {
        "key_schema": '{"name":"user_id","type": "int"}',
        "value_schema_id": id,
        "records": [{"key": 1, "value": {"name": "testUser"}}],
    }
    answer = curl("-H", f"Content-Type: {AVRO}", "--data", json.dumps(keyed), f"{site.proxy}/topics/avrotest")
    assert answer["value_schema_id"] == id and type(answer["key_schema_id"]) is int
    found = site.consume("avrotest", "avro", 2)
    assert [(each["key"], each["value"], each["offset"]) for each in found] == [
        (None, {"name": "testUser"}, 0),
        (1, {"name": "testUser"}, 1),
    ]


def curl(*words: str) -> Any:
    answer = subprocess.run(
        ["curl", "-sS", *words], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return json.loads(answer.stdout)
