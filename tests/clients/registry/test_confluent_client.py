"""confluent-kafka's clients of a registry, the blocking one and the one of asyncio: each of their methods."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError

from support.registry import RegistryProcess

pytestmark = [pytest.mark.client("confluent-kafka, registry"), pytest.mark.timeout(120)]
AVRO = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
AVRO_2 = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":"int","default":0}]}'
)
AVRO_BAD = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},{"name":"mail","type":"string"}]}'
JSON = '{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false}'
JSON_2 = JSON.replace('"string"}}', '"string"},"age":{"type":"integer"}}')
JSON_BAD = '{"type":"object","properties":{"name":{"type":"integer"}},"additionalProperties":false}'
PROTO = 'syntax = "proto3";\npackage people;\n\nmessage User {\n  string name = 1;\n}\n'
PROTO_2 = 'syntax = "proto3";\npackage people;\n\nmessage User {\n  string name = 1;\n  int32 age = 2;\n}\n'
PROTO_BAD = 'syntax = "proto3";\npackage people;\n\nmessage User {\n  int32 name = 1;\n}\n'
TYPES = {
    "AVRO": (AVRO, AVRO_2, AVRO_BAD, "READER_FIELD_MISSING_DEFAULT_VALUE"),
    "JSON": (JSON, JSON_2, JSON_BAD, "TYPE_CHANGED"),
    "PROTOBUF": (PROTO, PROTO_2, PROTO_BAD, "FIELD_SCALAR_KIND_CHANGED"),
}


class Waiting:
    """A client of asyncio whose methods wait for what they answer. `called` has their names."""

    def __init__(self, client: Any, run: Callable[[Any], Any]) -> None:
        self._client = client
        self._run = run
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        self.called.add(name)
        return lambda *args, **kwargs: self._run(method(*args, **kwargs))


async def waited_for(found: Awaitable[Any]) -> Any:
    return await found


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def new(kind: str, registry: RegistryProcess) -> Iterator[Callable[[], Any]]:
    """A client that has seen nothing."""
    config = {"url": registry.url}
    if kind == "blocking":
        yield lambda: Waiting(SchemaRegistryClient(config), lambda found: found)
        return
    with asyncio.Runner() as runner:

        def run(found: Any) -> Any:
            return runner.run(waited_for(found)) if inspect.isawaitable(found) else found

        yield lambda: Waiting(AsyncSchemaRegistryClient(config), run)


@pytest.fixture
def client(new: Callable[[], Any]) -> Any:
    return new()


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[int, int]:
    """The status and the code of an answer that is none."""
    with pytest.raises(SchemaRegistryError) as error:
        call(*args, **kwargs)
    return error.value.http_status_code, error.value.error_code


@pytest.mark.one_in(3)
@pytest.mark.duty("register", "evolve", "refuse")
@pytest.mark.parametrize("type", TYPES)
def test_register_evolve_and_be_refused(
    new: Callable[[], Any], fresh: Callable[[str], str], type: str
) -> None:
    client, subject = new(), fresh("subject")
    first, second, bad, why = TYPES[type]
    id = client.register_schema(subject, Schema(first, type))
    assert new().register_schema(subject, Schema(first, type)) == id
    full = client.register_schema_full_response(fresh("subject"), Schema(first, type))
    assert (full.schema_id, full.version) == (id, 1)
    assert client.test_compatibility(subject, Schema(second, type))
    assert client.test_compatibility_all_versions(subject, Schema(second, type))
    assert not client.test_compatibility(subject, Schema(bad, type))
    assert not client.test_compatibility_all_versions(subject, Schema(bad, type))
    with pytest.raises(SchemaRegistryError, match=why) as error:
        client.register_schema(subject, Schema(bad, type))
    assert (error.value.http_status_code, error.value.error_code) == (409, 409)
    later = client.register_schema(subject, Schema(second, type))
    assert later > id
    assert client.get_versions(subject) == [1, 2]
    other = new()
    assert other.get_schema(id).schema_str == first and other.get_schema(id).schema_type == type
    assert other.get_schema(later).schema_str == second
    found = other.lookup_schema(subject, Schema(first, type))
    assert (found.subject, found.version, found.schema_id, found.guid) == (subject, 1, id, full.guid)
    latest = other.get_latest_version(subject)
    assert (latest.version, latest.schema_id, latest.schema.schema_str) == (2, later, second)
    assert other.get_version(subject, 1).schema_id == id
    assert other.get_schema_by_guid(full.guid).schema_str == first
    assert subject in other.get_subjects_by_schema_id(later)
    assert (subject, 2) in [(each.subject, each.version) for each in other.get_schema_versions(later)]


@pytest.mark.duty("look up")
def test_what_is_not_there(client: Any, fresh: Callable[[str], str]) -> None:
    subject = fresh("subject")
    assert refused(client.get_versions, subject) == (404, 40401)
    assert refused(client.get_latest_version, subject) == (404, 40401)
    assert refused(client.lookup_schema, subject, Schema(AVRO, "AVRO")) == (404, 40401)
    assert refused(client.get_schema, 2_000_000) == (404, 40403)
    assert refused(client.get_schema_by_guid, "00000000-0000-0000-0000-000000000000") == (404, 40403)
    assert refused(client.delete_subject, subject) == (404, 40401)
    assert refused(client.register_schema, subject, Schema("{", "AVRO")) == (422, 42201)
    assert refused(client.register_schema, subject, Schema('"int"', "THRIFT")) == (422, 42201)
    client.register_schema(subject, Schema(AVRO, "AVRO"))
    assert refused(client.get_version, subject, 9) == (404, 40402)
    assert refused(client.lookup_schema, subject, Schema(AVRO_2, "AVRO")) == (404, 40403)
    assert refused(client.get_latest_with_metadata, subject, {"owner": "Ada"}) == (404, 40403)


@pytest.mark.duty("deletion")
def test_delete(new: Callable[[], Any], fresh: Callable[[str], str]) -> None:
    client, subject = new(), fresh("subject")
    for text in (AVRO, AVRO_2):
        client.register_schema(subject, Schema(text, "AVRO"))
    assert refused(client.delete_version, subject, 1, permanent=True) == (404, 40407)
    assert client.delete_version(subject, 1) == 1
    assert refused(client.delete_version, subject, 1) == (404, 40406)
    assert client.get_versions(subject) == [2]
    assert client.get_versions(subject, deleted=True) == [1, 2]
    # It asks for deleted_only, where the API has deletedOnly: neither registry knows what it means.
    assert client.get_versions(subject, deleted_only=True) == [2]
    assert new().get_version(subject, 1, deleted=True).schema.schema_str == AVRO
    assert refused(new().get_version, subject, 1) == (404, 40402)
    assert new().lookup_schema(subject, Schema(AVRO, "AVRO"), deleted=True).version == 1
    assert client.delete_version(subject, 1, permanent=True) == 1
    assert client.get_versions(subject, deleted=True) == [2]
    assert client.delete_subject(subject) == [2]
    assert refused(client.delete_subject, subject) == (404, 40404)
    assert subject not in client.get_subjects()
    assert subject in client.get_subjects(deleted=True)
    other = fresh("subject")
    client.register_schema(other, Schema(AVRO, "AVRO"))
    assert refused(client.delete_subject, other, permanent=True) == (404, 40405)
    assert client.delete_subject(other) == client.delete_subject(other, permanent=True) == [1]
    assert other not in client.get_subjects(deleted=True)
    assert client.delete_subject(subject, permanent=True) == [2]
    assert subject not in client.get_subjects(deleted=True)


def test_lists(client: Any, fresh: Callable[[str], str]) -> None:
    prefix = fresh("many")
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        client.register_schema(name, Schema(AVRO, "AVRO"))
    assert client.get_subjects(subject_prefix=prefix) == names
    assert client.get_subjects(subject_prefix=prefix, offset=1, limit=2) == names[1:3]
    assert set(client.get_schema_types()) >= {"AVRO", "JSON", "PROTOBUF"}
    id = client.lookup_schema(names[0], Schema(AVRO, "AVRO")).schema_id
    mine = client.get_subjects_by_schema_id(id, subject_name=names[0])
    assert names[0] in mine
    assert len(client.get_schema_versions(id, offset=1, limit=3)) == 3
    assert client.get_versions(names[0], offset=0, limit=1) == [1]


def test_a_subject_with_a_name_of_its_own(client: Any, fresh: Callable[[str], str]) -> None:
    subject = fresh("a/b c%2Fü?#") + "+"
    id = client.register_schema(subject, Schema(AVRO, "AVRO"))
    assert client.get_versions(subject) == [1]
    assert client.lookup_schema(subject, Schema(AVRO, "AVRO")).subject == subject
    assert subject in client.get_subjects()
    assert subject in client.get_subjects_by_schema_id(id)
    assert client.delete_subject(subject) == [1]


@pytest.mark.duty("config")
def test_config(client: Any, fresh: Callable[[str], str]) -> None:
    subject = fresh("subject")
    assert client.set_compatibility(level="BACKWARD")["compatibility"] == "BACKWARD"
    assert client.get_compatibility() == "BACKWARD"
    assert refused(client.set_compatibility, subject, "SIDEWARD") == (422, 42203)
    client.register_schema(subject, Schema(AVRO, "AVRO"))
    assert refused(client.register_schema, subject, Schema(AVRO_BAD, "AVRO")) == (409, 409)
    client.set_compatibility(subject, "NONE")
    assert client.get_compatibility(subject) == "NONE"
    client.register_schema(subject, Schema(AVRO_BAD, "AVRO"))
    given = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FULL,
        compatibility_group="major",
        default_metadata=Metadata(None, MetadataProperties({"team": "a"}), None),
        override_metadata=Metadata(None, MetadataProperties({"owner": "b"}), None),
    )
    client.set_config(subject, given)
    found = client.get_config(subject)
    assert (found.compatibility_group, found.compatibility_level) == ("major", "FULL")
    assert found.default_metadata.properties.properties == {"team": "a"}
    assert found.override_metadata.properties.properties == {"owner": "b"}
    client.delete_config(subject)
    # The manual's code for a subject without a configuration of its own.
    assert refused(client.get_config, subject) == (404, 40401)
    level = client.get_config()
    client.set_config(config=ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_compatibility() == "FULL"
    client.delete_config()
    assert client.get_compatibility() == level.compatibility_level == "BACKWARD"


def test_metadata_defaults_and_overrides(new: Callable[[], Any], fresh: Callable[[str], str]) -> None:
    client, subject = new(), fresh("subject")
    defaults = Metadata(None, MetadataProperties({"team": "a", "owner": "nobody"}), None)
    overrides = Metadata(None, MetadataProperties({"kept": "always"}), None)
    client.set_config(subject, ServerConfig(default_metadata=defaults, override_metadata=overrides))
    owner = Metadata(MetadataTags({"User.name": ["PII"]}), MetadataProperties({"owner": "Ada"}), ["owner"])
    kind, mode = RuleKind.CONDITION, RuleMode.WRITE
    rule = Rule(
        "checked", "doc", kind, mode, "CEL", ["PII"], RuleParams({"a": "b"}), "true", None, "ERROR", False
    )
    rules = RuleSet(None, [rule])
    client.register_schema(subject, Schema(AVRO, "AVRO", [], owner, rules))
    found = new().get_latest_version(subject).schema
    assert found.metadata.properties.properties == {"team": "a", "owner": "Ada", "kept": "always"}
    assert found.metadata.tags.tags == {"User.name": ["PII"]}
    assert found.metadata.sensitive == ["owner"]
    (kept,) = found.rule_set.domain_rules
    assert (kept.name, kept.kind, kept.mode, kept.params.params) == ("checked", kind, mode, {"a": "b"})
    by_owner = new().get_latest_with_metadata(subject, {"owner": "Ada"})
    assert by_owner.version == 1
    assert refused(new().get_latest_with_metadata, subject, {"owner": "Bob"}) == (404, 40403)


def test_mode(new: Callable[[], Any], fresh: Callable[[str], str]) -> None:
    client, subject = new(), fresh("subject")
    assert client.get_global_mode() == "READWRITE"
    assert client.update_global_mode("READWRITE") == "READWRITE"
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    assert refused(client.register_schema, subject, Schema(AVRO, "AVRO")) == (422, 42205)
    assert client.update_mode(subject, "IMPORT") == "IMPORT"
    assert client.delete_mode(subject) in ("IMPORT", "READWRITE")
    assert refused(client.update_mode, subject, "SOMEHOW") == (422, 42204)
    client.register_schema(subject, Schema(AVRO, "AVRO"))
    assert refused(client.update_mode, subject, "IMPORT") == (422, 42205)
    assert client.update_mode(subject, "IMPORT", force=True) == "IMPORT"
    client.delete_mode(subject)


def test_contexts(new: Callable[[], Any], fresh: Callable[[str], str]) -> None:
    client, context = new(), f".{fresh('context')}"
    subject = f":{context}:{fresh('subject')}"
    id = client.register_schema(subject, Schema(AVRO, "AVRO"))
    assert client.register_schema(subject, Schema(AVRO_2, "AVRO")) == id + 1
    assert {".", context} <= set(client.get_contexts())
    assert len(client.get_contexts(offset=0, limit=1)) == 1
    assert subject in client.get_subjects()
    assert new().get_schema(id, subject_name=subject).schema_str == AVRO
    assert new().get_latest_version(subject).subject == subject
    plain = subject.rpartition(":")[2]
    pair = '{"type":"record","name":"Pair","fields":[{"name":"left","type":"User"}]}'
    uses = Schema(pair, "AVRO", [SchemaReference("User", plain, 1)])
    assert refused(client.register_schema, fresh("subject"), uses) == (422, 42201)
    assert client.register_schema(f":{context}:{fresh('subject')}", uses) == id + 2


@pytest.mark.one_in(2)
@pytest.mark.duty("references")
@pytest.mark.parametrize("type", TYPES)
def test_references(new: Callable[[], Any], fresh: Callable[[str], str], type: str) -> None:
    client, base, subject = new(), fresh("base"), fresh("subject")
    name, text = {
        "AVRO": ("User", '{"type":"record","name":"Pair","fields":[{"name":"left","type":"User"}]}'),
        "JSON": ("user.json", '{"type":"object","properties":{"left":{"$ref":"user.json"}}}'),
        "PROTOBUF": (
            "user.proto",
            'syntax = "proto3";\npackage people;\n\nimport "user.proto";\n\nmessage Pair {\n  User left = 1;\n}\n',
        ),
    }[type]
    client.register_schema(base, Schema(TYPES[type][0], type))
    assert refused(client.register_schema, subject, Schema(text, type))[0] == 422
    reference = SchemaReference(name, base, 1)
    id = client.register_schema(subject, Schema(text, type, [reference]))
    assert client.get_referenced_by(base, 1) == [id]
    (found,) = new().get_schema(id).references
    assert (found.name, found.subject, found.version) == (name, base, 1)
    assert refused(client.delete_version, base, 1) == (422, 42206)
    assert refused(client.delete_subject, base) == (422, 42206)
    client.delete_subject(subject)
    client.delete_subject(subject, permanent=True)
    assert client.get_referenced_by(base, 1) == []
    assert client.delete_subject(base) == [1]


def test_normalize_and_formats(new: Callable[[], Any], fresh: Callable[[str], str]) -> None:
    client, subject = new(), fresh("subject")
    other = json.dumps(json.loads(AVRO), indent=2, sort_keys=True)
    id = client.register_schema(subject, Schema(AVRO, "AVRO"), normalize_schemas=True)
    assert new().register_schema(subject, Schema(other, "AVRO"), normalize_schemas=True) == id
    assert new().lookup_schema(subject, Schema(other, "AVRO"), normalize_schemas=True).version == 1
    full = client.register_schema_full_response(subject, Schema(AVRO, "AVRO"), normalize_schemas=True)
    assert full.schema_id == id
    mine = fresh("subject")
    id = client.register_schema(mine, Schema(PROTO, "PROTOBUF"))
    assert "message User" not in new().get_schema(id, fmt="serialized").schema_str
    assert "message User" not in new().get_latest_version(mine, fmt="serialized").schema.schema_str
    assert "message User" not in new().get_version(mine, 1, fmt="serialized").schema.schema_str


def test_associations(client: Any, fresh: Callable[[str], str]) -> None:
    """The default of a serializer asks for them; a resource without associations has an empty list."""
    topic, subject = fresh("topic"), fresh("subject")
    asked = topic, "-", "topic", ["value"]
    assert client.get_associations_by_resource_name(*asked) == []
    client.register_schema(subject, Schema(AVRO, "AVRO"))
    value = AssociationCreateOrUpdateInfo(subject=subject, association_type="value", lifecycle="WEAK")
    request = AssociationCreateOrUpdateRequest(
        resource_name=topic,
        resource_namespace="lkc",
        resource_id=f"id-{topic}",
        resource_type="topic",
        associations=[value],
    )
    made = client.create_association(request)
    assert (made.resource_id, [each.subject for each in made.associations]) == (f"id-{topic}", [subject])
    assert [each.subject for each in client.get_associations_by_resource_name(*asked)] == [subject]
    client.delete_associations(f"id-{topic}", "topic", ["value"])
    assert client.get_associations_by_resource_name(*asked) == []


def test_each_method_of_the_client_is_called_above() -> None:
    """By its name, in this file."""
    left = {
        "clear_caches",
        "clear_latest_caches",
        "aclose",
        "close",
        "config",
        "new_client",
    }  # they ask nothing
    text = inspect.getsource(inspect.getmodule(test_delete) or object)  # type: ignore[arg-type]
    for kind in (SchemaRegistryClient, AsyncSchemaRegistryClient):
        public = {name for name in vars(kind) if not name.startswith("_")}
        assert len(public) > 25
        assert not [name for name in public - left if f".{name}" not in text]
