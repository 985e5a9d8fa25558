"""confluent-kafka's serializers and deserializers, blocking and of asyncio: produce, evolve, consume, through the
broker, whose topics check what they are given."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import confluent_kafka
import kafka
import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from kafka.errors import InvalidRecordError

from support.librdkafka import create, read
from support.registry import RegistryProcess

pytestmark = [pytest.mark.client("confluent-kafka, registry"), pytest.mark.timeout(120)]
AVRO = (
    '{"type":"record","name":"User","namespace":"people","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":["null","int"],"default":null}]}'
)
AVRO_2 = (
    '{"type":"record","name":"User","namespace":"people","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":["null","int"],"default":null},{"name":"mail","type":"string","default":"none"}]}'
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "User",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    }
)
JSON_2 = JSON.replace('"age":', '"mail": {"type": "string"}, "age":')
ADA = {"name": "Ada", "age": 36}


def messages(file: str, fields: dict[str, int], *, before: bool = False, name: str = "User") -> Any:
    """The class of a message of the package people with these fields: their numbers, below 10 those of texts, else of
    numbers. `before`: another message stands before it in its file, so that its index is not the first one."""
    proto = descriptor_pb2.FileDescriptorProto(name=file, package="people", syntax="proto3")
    if before:
        proto.message_type.add(name="Other")
    message = proto.message_type.add(name=name)
    for field, number in fields.items():
        kind = "TYPE_STRING" if number < 10 else "TYPE_INT32"
        message.field.add(name=field, number=number, type=kind, label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"people.{name}"))


class Kind(NamedTuple):
    """How one format is written and read, with a schema and a later one."""

    type: str
    serializer: Callable[[Any, dict[str, Any]], Any]
    later: Callable[[Any, dict[str, Any]], Any]
    deserializer: Callable[[Any], Any]
    value: Any
    later_value: Any
    seen: Callable[[Any], dict[str, Any]]


USER = messages("user.proto", {"name": 1, "age": 10}, before=True)
USER_2 = messages("user.proto", {"name": 1, "age": 10, "mail": 2}, before=True)


def fields(message: Any) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


KINDS = {
    "avro": Kind(
        "AVRO",
        lambda client, conf: AvroSerializer(client, AVRO, conf=conf),
        lambda client, conf: AvroSerializer(client, AVRO_2, conf=conf),
        AvroDeserializer,
        ADA,
        {**ADA, "mail": "a@b"},
        dict,
    ),
    "json": Kind(
        "JSON",
        lambda client, conf: JSONSerializer(JSON, client, conf=conf),
        lambda client, conf: JSONSerializer(JSON_2, client, conf=conf),
        lambda client: JSONDeserializer(None, schema_registry_client=client),
        ADA,
        {**ADA, "mail": "a@b"},
        dict,
    ),
    "protobuf": Kind(
        "PROTOBUF",
        lambda client, conf: ProtobufSerializer(USER, client, conf),
        lambda client, conf: ProtobufSerializer(USER_2, client, conf),
        lambda client: ProtobufDeserializer(USER_2, {}, client),
        USER(**ADA),
        USER_2(**ADA, mail="a@b"),
        fields,
    ),
}
IDS = {"prefix": prefix_schema_id_serializer, "header": header_schema_id_serializer}


@pytest.fixture
def client(registry: RegistryProcess) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


@pytest.fixture(params=["id", "full"])
def topic(request: pytest.FixtureRequest, bootstrap: str, fresh: Callable[[str], str]) -> str:
    """One that checks its values."""
    name = fresh("topic")
    create(bootstrap, name, lc_schema_validation_value=request.param)
    return name


class Sent(NamedTuple):
    error: Any
    value: bytes | None
    headers: list[tuple[str, bytes]]


def send(bootstrap: str, topic: str, serializer: Any, value: Any, *, field: str = MessageField.VALUE) -> Sent:
    """What becomes of one record whose key or value this serializer makes."""
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext(topic, field, headers)
    data = serializer(value, context)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    errors: list[Any] = []
    key = data if field == MessageField.KEY else None
    data = None if field == MessageField.KEY else data
    producer.produce(topic, data, key=key, headers=headers, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return Sent(errors[0], data, headers)


def plain(value: bytes | None, _: SerializationContext) -> bytes | None:
    return value


def received(bootstrap: str, topic: str, count: int, deserializer: Any) -> list[Any]:
    return [
        deserializer(each.value(), SerializationContext(topic, MessageField.VALUE, each.headers()))
        for each in read(bootstrap, topic, count)
    ]


@pytest.mark.one_in(3)
@pytest.mark.duty("encode", "header")
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_produce_evolve_consume(
    bootstrap: str, client: SchemaRegistryClient, topic: str, kind: str, ids: str, registry: RegistryProcess
) -> None:
    one = KINDS[kind]
    conf = {"schema.id.serializer": IDS[ids]}
    first = send(bootstrap, topic, one.serializer(client, conf), one.value)
    assert first.error is None, first.error
    second = send(bootstrap, topic, one.later(client, conf), one.later_value)
    assert second.error is None, second.error
    assert client.get_versions(f"{topic}-value") == [1, 2]
    version = client.get_version(f"{topic}-value", 1)
    assert version.schema.schema_type == one.type
    if ids == "header":
        assert first.headers == [("__value_schema_id", b"\1" + uuid.UUID(version.guid).bytes + index(kind))]
    else:
        assert first.value is not None and not first.headers
        assert first.value[:5] == b"\0" + version.schema_id.to_bytes(4, "big")
    fresh = SchemaRegistryClient({"url": registry.url})
    found = received(bootstrap, topic, 2, one.deserializer(fresh))
    assert [one.seen(each) for each in found] == [one.seen(one.value), one.seen(one.later_value)]


def index(kind: str) -> bytes:
    """The message's index, the second of its file."""
    return b"\2\2" if kind == "protobuf" else b""


@pytest.fixture
def other(bootstrap: str) -> Iterator[kafka.KafkaProducer]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    yield producer
    producer.close()


@pytest.mark.one_in(2)
@pytest.mark.duty("without a schema")
@pytest.mark.parametrize("kind", KINDS)
def test_a_producer_without_a_schema_is_told_why(
    bootstrap: str, client: SchemaRegistryClient, topic: str, kind: str, other: kafka.KafkaProducer
) -> None:
    one = KINDS[kind]
    refusals = {
        b'{"name":"Ada"}': "begins with the byte 123: it has neither the magic byte 0",
        b"\0\0\x0f\x42\x3f....": "there is no schema 999999",
        b"\0\0": "2 bytes end before the schema id",
        b"": "the value is empty",
    }
    for value, why in refusals.items():
        sent = send(bootstrap, topic, plain, value)
        assert sent.error is not None and sent.error.name() == "INVALID_RECORD", (value, sent.error)
        # Of the clients for Python this one shows the message of a record.
        with pytest.raises(InvalidRecordError, match=why):
            other.send(topic, value).get(30)
    assert send(bootstrap, topic, plain, None).error is None  # a tombstone
    # A schema that is known, of another subject.
    elsewhere = one.serializer(client, {"subject.name.strategy": lambda ctx, name: f"{topic}-other"})
    assert send(bootstrap, topic, elsewhere, one.value).error.name() == "INVALID_RECORD"
    assert send(bootstrap, topic, one.serializer(client, {}), one.value).error is None


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_are_not_of_the_schema(
    bootstrap: str, client: SchemaRegistryClient, fresh: Callable[[str], str], kind: str
) -> None:
    """`id` takes what `full` does not."""
    one = KINDS[kind]
    for check, expected in (("id", None), ("full", "INVALID_RECORD")):
        topic = fresh("topic")
        create(bootstrap, topic, lc_schema_validation_value=check)
        good = send(bootstrap, topic, one.serializer(client, {}), one.value)
        assert good.error is None and good.value is not None
        bad = send(bootstrap, topic, plain, good.value[:7] + b"\xff\xff\xff")
        assert (bad.error and bad.error.name()) == expected


def named(kind: str, name: str) -> tuple[Callable[[Any, dict[str, Any]], Any], Any]:
    """A serializer of records of this name, and one."""
    if kind == "avro":
        return lambda client, conf: AvroSerializer(client, AVRO.replace("User", name), conf=conf), ADA
    if kind == "json":
        return lambda client, conf: JSONSerializer(JSON.replace("User", name), client, conf=conf), ADA
    proto = messages(f"{name}.proto", {"name": 1, "age": 10}, name=name)
    return lambda client, conf: ProtobufSerializer(proto, client, conf), proto(**ADA)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("strategy", ["topic", "record", "topic-record"])
@pytest.mark.parametrize("kind", KINDS)
def test_subject_name_strategies(
    bootstrap: str,
    client: SchemaRegistryClient,
    fresh: Callable[[str], str],
    kind: str,
    strategy: str,
    ids: str,
) -> None:
    topic, name = fresh("topic"), fresh("Name").replace("-", "_")
    create(bootstrap, topic, lc_schema_validation_value="full", lc_schema_subject_strategy_value=strategy)
    serializer, value = named(kind, name)
    full = name if kind == "json" else f"people.{name}"
    functions = {
        "topic": (topic_subject_name_strategy, f"{topic}-value"),
        "record": (record_subject_name_strategy, full),
        "topic-record": (topic_record_subject_name_strategy, f"{topic}-{full}"),
    }
    # Its own strategy last: from then on its schema belongs to the subject whoever names it.
    for each in sorted(functions, key=strategy.__eq__):
        function, subject = functions[each]
        conf = {"subject.name.strategy": function, "schema.id.serializer": IDS[ids]}
        sent = send(bootstrap, topic, serializer(client, conf), value)
        assert subject in client.get_subjects()
        if each == strategy:
            assert sent.error is None, sent.error
        else:
            assert sent.error.name() == "INVALID_RECORD", each


def test_keys(bootstrap: str, client: SchemaRegistryClient, fresh: Callable[[str], str]) -> None:
    topic = fresh("topic")
    create(bootstrap, topic, lc_schema_validation_key="full")
    for ids in IDS.values():
        serializer = AvroSerializer(client, '"string"', conf={"schema.id.serializer": ids})
        assert send(bootstrap, topic, serializer, "Ada Lovelace", field=MessageField.KEY).error is None
    assert client.get_versions(f"{topic}-key") == [1]
    assert (
        send(bootstrap, topic, plain, b"Ada Lovelace", field=MessageField.KEY).error.name()
        == "INVALID_RECORD"
    )
    found = [
        AvroDeserializer(client)(each.key(), SerializationContext(topic, MessageField.KEY, each.headers()))
        for each in read(bootstrap, topic, 2)
    ]
    assert found == ["Ada Lovelace"] * 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
def test_without_registering(
    bootstrap: str, client: SchemaRegistryClient, topic: str, kind: str, registry: RegistryProcess
) -> None:
    one = KINDS[kind]
    quiet = {"auto.register.schemas": False}
    with pytest.raises(SchemaRegistryError) as missing:
        send(bootstrap, topic, one.serializer(SchemaRegistryClient({"url": registry.url}), quiet), one.value)
    assert missing.value.error_code == 40401
    assert send(bootstrap, topic, one.serializer(client, {}), one.value).error is None
    other = SchemaRegistryClient({"url": registry.url})
    assert send(bootstrap, topic, one.serializer(other, quiet), one.value).error is None
    assert send(bootstrap, topic, one.later(client, {}), one.later_value).error is None
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    sent = send(bootstrap, topic, one.later(other, latest), one.later_value)
    assert sent.error is None and sent.value is not None
    id = client.get_latest_version(f"{topic}-value").schema_id
    assert sent.value[:5] == b"\0" + id.to_bytes(4, "big")
    by_id = {"auto.register.schemas": False, "use.schema.id": id}
    assert send(bootstrap, topic, one.later(other, by_id), one.later_value).value[:5] == sent.value[:5]  # type: ignore[index]


def test_latest_with_metadata(bootstrap: str, registry: RegistryProcess, topic: str) -> None:
    subject = f"{topic}-value"
    for text, major in ((AVRO, "1"), (AVRO_2, "2")):
        body = {"schema": text, "metadata": {"properties": {"major": major}}}
        assert registry.ask("POST", f"/subjects/{subject}/versions", body).status == 200
    client = SchemaRegistryClient({"url": registry.url})
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    sent = send(bootstrap, topic, AvroSerializer(client, AVRO, conf=conf), ADA)
    assert sent.error is None and sent.value is not None
    assert sent.value[1:5] == client.get_version(subject, 1).schema_id.to_bytes(4, "big")


def test_normalized(bootstrap: str, client: SchemaRegistryClient, topic: str) -> None:
    """The same schema with its members in another order is the same version."""
    turned = json.dumps(dict(reversed(json.loads(JSON).items())))
    conf = {"normalize.schemas": True}
    for text in (JSON, turned):
        assert send(bootstrap, topic, JSONSerializer(text, client, conf=conf), ADA).error is None
    assert client.get_versions(f"{topic}-value") == [1]


def test_avro_references(bootstrap: str, client: SchemaRegistryClient, topic: str) -> None:
    pair = '{"type":"record","name":"Pair","fields":[{"name":"left","type":"people.User"}]}'
    base = f"{topic}-base"
    client.register_schema(base, Schema(AVRO, "AVRO"))
    schema = Schema(pair, "AVRO", [SchemaReference("people.User", base, 1)])
    value = {"left": ADA}
    assert send(bootstrap, topic, AvroSerializer(client, schema), value).error is None
    assert received(bootstrap, topic, 1, AvroDeserializer(client)) == [value]


def test_json_references(bootstrap: str, client: SchemaRegistryClient, topic: str) -> None:
    pair = '{"title":"Pair","type":"object","properties":{"left":{"$ref":"user.json"}}}'
    base = f"{topic}-base"
    client.register_schema(base, Schema(JSON, "JSON"))
    schema = Schema(pair, "JSON", [SchemaReference("user.json", base, 1)])
    value = {"left": ADA}
    assert send(bootstrap, topic, JSONSerializer(schema, client), value).error is None
    deserializer = JSONDeserializer(schema, schema_registry_client=client)
    assert received(bootstrap, topic, 1, deserializer) == [value]


def test_protobuf_references(bootstrap: str, client: SchemaRegistryClient, topic: str) -> None:
    """The serializer registers what the file imports, well-known types too if it is told to."""
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    base, own = f"{topic}/base.proto", f"{topic}/own.proto"
    proto = descriptor_pb2.FileDescriptorProto(name=base, package="people", syntax="proto3")
    name = proto.message_type.add(name="Name")
    name.field.add(name="first", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool.Add(proto)
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    proto = descriptor_pb2.FileDescriptorProto(
        name=own, package="people", syntax="proto3", dependency=[base, "google/protobuf/timestamp.proto"]
    )
    event = proto.message_type.add(name="Event")
    for number, (field, kind) in enumerate(
        {"name": ".people.Name", "at": ".google.protobuf.Timestamp"}.items(), 1
    ):
        event.field.add(
            name=field, number=number, type="TYPE_MESSAGE", type_name=kind, label="LABEL_OPTIONAL"
        )
    nested = event.nested_type.add(name="Inner")
    nested.field.add(name="note", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool.Add(proto)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("people.Event"))
    value: Any = kind()
    value.name.first = "Ada"
    value.at.seconds = 7
    assert send(bootstrap, topic, ProtobufSerializer(kind, client, {}), value).error is None
    schema = client.get_latest_version(f"{topic}-value").schema
    assert [(each.name, each.subject) for each in schema.references] == [(base, base)]
    inner = message_factory.GetMessageClass(pool.FindMessageTypeByName("people.Event.Inner"))
    assert send(bootstrap, topic, ProtobufSerializer(inner, client, {}), inner(note="x")).error is None
    known = f"{topic}-known"
    create(bootstrap, known, lc_schema_validation_value="full")
    assert (
        send(bootstrap, known, ProtobufSerializer(kind, client, {"skip.known.types": False}), value).error
        is None
    )
    names = [each.name for each in client.get_latest_version(f"{known}-value").schema.references]
    assert names == [base, "google/protobuf/timestamp.proto"]
    (found,) = received(bootstrap, known, 1, ProtobufDeserializer(kind, {}, client))
    assert found == value


def test_an_incompatible_schema_is_refused_at_the_producer(
    bootstrap: str, client: SchemaRegistryClient, topic: str
) -> None:
    assert send(bootstrap, topic, AvroSerializer(client, AVRO), ADA).error is None
    bad = AvroSerializer(client, AVRO.replace('["null","int"],"default":null', '"string"'))
    with pytest.raises(SchemaRegistryError, match=r"TYPE_MISMATCH|MISSING_UNION_BRANCH") as refused:
        send(bootstrap, topic, bad, {"name": "Ada", "age": "old"})
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    with pytest.raises(ValueError):
        send(bootstrap, topic, AvroSerializer(client, AVRO), {"nobody": 1})


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as running:
        yield running


@pytest.mark.one_in(3)
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_asyncio(
    bootstrap: str, registry: RegistryProcess, topic: str, kind: str, ids: str, runner: asyncio.Runner
) -> None:
    conf = {"schema.id.serializer": IDS[ids]}
    one = KINDS[kind]

    async def make() -> tuple[Any, Any]:
        client = AsyncSchemaRegistryClient({"url": registry.url})
        if kind == "avro":
            return await AsyncAvroSerializer(client, AVRO, conf=conf), await AsyncAvroDeserializer(client)
        if kind == "json":
            reader = await AsyncJSONDeserializer(None, schema_registry_client=client)
            return await AsyncJSONSerializer(JSON, client, conf=conf), reader
        return await AsyncProtobufSerializer(USER, client, conf), await AsyncProtobufDeserializer(
            USER, {}, client
        )

    serializer, deserializer = runner.run(make())
    sent = send(bootstrap, topic, lambda *given: runner.run(serializer(*given)), one.value)
    assert sent.error is None, sent.error
    (found,) = received(bootstrap, topic, 1, lambda *given: runner.run(deserializer(*given)))
    assert one.seen(found) == one.seen(one.value)
