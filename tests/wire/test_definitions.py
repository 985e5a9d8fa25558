"""The declarations say what Kafka's own message definitions say, read from the jar of Kafka's clients."""

import json
import re
import zipfile
from functools import cache
from typing import Any

import pytest

from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.messages.internal.group_metadata import GroupMetadataValue
from leafcuttr.wire.messages.internal.offset_commit import OffsetCommitValue
from leafcuttr.wire.schema import Array, FieldSpec, PrimitiveType, declaration, versions
from support import jars

_VERSION = "4.3.1"
_CLIENTS, _GROUPS = "kafka-clients", "kafka-group-coordinator"

pytestmark = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))

_OTHER_NAMES = {
    ("DescribeQuorumRequest", "TopicData"): "RequestTopicData",
    ("DescribeQuorumRequest", "PartitionData"): "RequestPartitionData",
    ("AlterClientQuotasRequest", "EntryData"): "RequestEntryData",
}
"""Kafka's name of a struct, in this message -> ours, where request and response use one name for two structs."""


@pytest.mark.parametrize("part", ["request", "response"])
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_declaration_equals_kafkas_definition(api: Api, part: str) -> None:
    cls = getattr(api, part)
    definition = _definition(cls.__name__)
    found = declaration(cls)
    assert definition["apiKey"] == api.key
    assert found.versions == versions(definition["validVersions"])
    flexible = definition["flexibleVersions"]
    assert found.flexible == versions("" if flexible == "none" else flexible)
    _assert_same_fields(cls, definition["fields"], _shared(definition), cls.__name__)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_the_table_of_apis_agrees_with_the_declarations(api: Api) -> None:
    valid, flexible = declaration(api.request)[-2:]
    assert declaration(api.response)[-2:] == (valid, flexible)
    assert api.min_version in valid
    assert api.max_version in valid
    assert (api.max_version >= api.first_flexible_version) == (api.max_version in flexible)
    if flexible.last >= 0:
        assert api.first_flexible_version == flexible.first


@pytest.mark.parametrize("cls", [OffsetCommitValue, GroupMetadataValue], ids=lambda cls: cls.__name__)
def test_the_records_of_groups_equal_kafkas_definition(cls: type[Any]) -> None:
    definition = _definition(cls.__name__, _GROUPS)
    assert declaration(cls).versions == versions(definition["validVersions"])
    assert declaration(cls).flexible == versions(definition["flexibleVersions"])
    _assert_same_fields(cls, definition["fields"], _shared(definition), cls.__name__)


@cache
def _jar(name: str) -> zipfile.ZipFile:
    """Opened once: its list of contents is long."""
    return zipfile.ZipFile(jars.home(_VERSION) / "libs" / f"{name}-{_VERSION}.jar")


@cache
def _definition(name: str, jar_of: str = _CLIENTS) -> dict[str, Any]:
    text = _jar(jar_of).read(f"common/message/{name}.json").decode()
    found: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return found


def _shared(definition: dict[str, Any]) -> dict[str, Any]:
    return {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}


def _assert_same_fields(
    cls: type[Any], fields: list[dict[str, Any]], shared: dict[str, Any], message: str
) -> None:
    specs = declaration(cls).fields
    assert [spec.name for spec in specs] == [_snake(each["name"]) for each in fields]
    for spec, each in zip(specs, fields, strict=True):
        where = f"{message}: {cls.__name__}.{spec.name}"
        assert spec.versions == versions(each["versions"]), where
        assert spec.nullable == versions(each.get("nullableVersions", "")), where
        assert spec.tagged == versions(each.get("taggedVersions", "")), where
        assert spec.tag == each.get("tag", -1), where
        assert spec.ignorable == (str(each.get("ignorable", False)).lower() == "true"), where
        element = spec.type.element if isinstance(spec.type, Array) else spec.type
        name = each["type"].removeprefix("[]")
        assert each["type"].startswith("[]") == isinstance(spec.type, Array), where
        if isinstance(element, PrimitiveType):
            assert element.name == name, where
        else:
            assert element.__name__ == _OTHER_NAMES.get((message, name), name), where
            _assert_same_fields(element, each.get("fields") or shared[name], shared, message)
        _assert_same_default(spec, element, each.get("default"), where)


def _assert_same_default(
    spec: FieldSpec, element: PrimitiveType | type[Any], default: Any, where: str
) -> None:
    if default == "null":
        assert spec.default is None, where
    elif isinstance(spec.type, Array):
        assert spec.default == (), where
    elif not isinstance(element, PrimitiveType):
        assert spec.default == element(), where
    elif default is None:
        assert spec.default == element.default, where
    elif element.name == "bool":
        assert spec.default is (str(default).lower() == "true"), where
    else:
        assert spec.default == (default if element.name == "string" else int(str(default), 0)), where


def _snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return words.lower()
