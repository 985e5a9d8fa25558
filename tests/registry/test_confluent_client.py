"""Confluent's client library for Python, as it is: every call of `SchemaRegistryClient` that an application makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, ServerConfig
from confluent_kafka.schema_registry.common.schema_registry_client import Metadata, MetadataProperties
from confluent_kafka.schema_registry.error import SchemaRegistryError

from support.registry import RegistryProcess

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
OLDER = USER.replace("]", ',{"name":"age","type":"int","default":0}]')
BAD = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},{"name":"mail","type":"string"}]}'


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    yield SchemaRegistryClient({"url": registry.url})


def test_register_read_evolve_delete(client: SchemaRegistryClient, registry: RegistryProcess) -> None:
    id = client.register_schema("cc-value", Schema(USER, "AVRO"))
    assert client.register_schema("cc-value", Schema(USER, "AVRO")) == id
    full = client.register_schema_full_response("cc-full", Schema(USER, "AVRO"))
    assert (full.schema_id, full.version) == (id, 1) and full.guid is not None
    fresh = SchemaRegistryClient({"url": registry.url})
    assert fresh.get_schema(id).schema_str == USER and fresh.get_schema(id).schema_type == "AVRO"
    assert fresh.get_schema_by_guid(full.guid).schema_str == USER
    assert {each.subject for each in fresh.get_schema_versions(id)} == {"cc-value", "cc-full"}
    assert "cc-value" in client.get_subjects()
    found = fresh.lookup_schema("cc-value", Schema(USER, "AVRO"))
    assert (found.schema_id, found.version, found.subject) == (id, 1, "cc-value")
    assert fresh.get_latest_version("cc-value").schema_id == id
    assert fresh.get_version("cc-value", 1).schema.schema_str == USER
    assert client.test_compatibility("cc-value", Schema(OLDER, "AVRO"))
    assert not client.test_compatibility("cc-value", Schema(BAD, "AVRO"))
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refused:
        client.register_schema("cc-value", Schema(BAD, "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert client.register_schema("cc-value", Schema(OLDER, "AVRO")) > id
    assert client.get_versions("cc-value") == [1, 2]
    assert client.delete_version("cc-value", 1) == 1
    assert client.delete_version("cc-value", 1, permanent=True) == 1
    assert client.delete_subject("cc-value") == [2]
    assert client.delete_subject("cc-value", permanent=True) == [2]
    with pytest.raises(SchemaRegistryError) as missing:
        client.get_versions("cc-value")
    assert missing.value.error_code == 40401


def test_config(client: SchemaRegistryClient) -> None:
    assert client.set_compatibility(level="BACKWARD") == {"compatibility": "BACKWARD"}
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema("cc-config", Schema(USER, "AVRO"))
    client.set_compatibility("cc-config", "NONE")
    assert client.get_compatibility("cc-config") == "NONE"
    client.register_schema("cc-config", Schema(BAD, "AVRO"))
    client.set_config("cc-config", ServerConfig(compatibility_group="major"))
    assert client.get_config("cc-config").compatibility_group == "major"
    client.delete_config("cc-config")


def test_modes_contexts_references_metadata(client: SchemaRegistryClient) -> None:
    assert client.get_global_mode() == "READWRITE"
    client.update_mode("cc-mode", "READONLY")
    assert client.get_mode("cc-mode") == "READONLY"
    client.update_mode("cc-mode", "READWRITE")
    client.register_schema(":.cc:a", Schema(USER, "AVRO"))
    assert ".cc" in client.get_contexts()
    client.register_schema("cc-base", Schema("base", "COLUMNS"))
    owner = Metadata(None, MetadataProperties({"owner": "Ada"}), None)
    schema = Schema("@base", "COLUMNS", [SchemaReference("base", "cc-base", 1)], owner)
    id = client.register_schema("cc-uses", schema)
    assert client.get_referenced_by("cc-base", 1) == [id]
    found = client.get_latest_with_metadata("cc-uses", {"owner": "Ada"})
    assert found.schema_id == id and found.schema.references[0].subject == "cc-base"
