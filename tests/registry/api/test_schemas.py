"""Schemas by ids and guids, and all of them."""

from __future__ import annotations

import uuid
from base64 import b64encode

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from support.registry import V1, Asked


def test_the_answer_that_is_ready_follows_what_changes(ask: Asked) -> None:
    id = ask.register("i-a", "i")["id"]
    path = f"/schemas/ids/{id}"
    first = ask("GET", path)
    assert first.json == {"guid": first.json["guid"], "schemaType": "COLUMNS", "schema": "i"}
    assert first.headers["content-type"] == V1
    assert ask("GET", path).text == first.text
    ask("DELETE", "/subjects/i-a")
    assert ask("GET", path).text == first.text
    ask("DELETE", "/subjects/i-a?permanent=true")
    assert ask("GET", path).code == 40403


@pytest.mark.parametrize("id", ["0", "-1", "x", "99999999999999999999", "007", "2147483648"])
def test_ids_that_are_none(ask: Asked, id: str) -> None:
    for path in (f"/schemas/ids/{id}", f"/schemas/ids/{id}/schema", f"/schemas/ids/{id}/versions"):
        if id != "007":
            assert ask("GET", path).code == 40403


def test_guids(ask: Asked) -> None:
    found = ask.register("i-b", "guid,one")
    assert ask.get(f"/schemas/guids/{found['guid']}")["schema"] == "guid,one"
    assert ask.get(f"/schemas/guids/{found['guid']}/ids") == [{"context": ".", "id": found["id"]}]
    assert ask("GET", f"/schemas/guids/{uuid.uuid4()}").code == 40403
    assert ask.get(f"/schemas/guids/{uuid.uuid4()}/ids") == []
    assert ask("GET", "/schemas/guids/none").code == 40403


def test_places_of_an_id(ask: Asked) -> None:
    id = ask.register("i-c", "places")["id"]
    ask.register("i-d", "places")
    ask("DELETE", "/subjects/i-d")
    assert ask.get(f"/schemas/ids/{id}/subjects") == ["i-c"]
    assert ask.get(f"/schemas/ids/{id}/subjects?deleted=true") == ["i-c", "i-d"]
    assert ask.get(f"/schemas/ids/{id}/versions?deleted=true&offset=1") == [{"subject": "i-d", "version": 1}]


def test_all(ask: Asked) -> None:
    for schema in ("a", "a,b"):
        ask.register("i-all-1", schema)
    rules = {"domainRules": [{"name": "r", "type": "CEL"}]}
    ask.register("i-all-2", "a", ruleSet=rules)

    def listed(query: str) -> list[tuple[str, int]]:
        found = ask.get(f"/schemas?subjectPrefix=i-all{query}")
        return [(each["subject"], each["version"]) for each in found]

    assert listed("") == [("i-all-1", 1), ("i-all-1", 2), ("i-all-2", 1)]
    assert listed("&latestOnly=true") == [("i-all-1", 2), ("i-all-2", 1)]
    assert listed("&offset=1&limit=1") == [("i-all-1", 2)]
    assert listed("&ruleType=CEL") == [("i-all-2", 1)]
    ask("DELETE", "/subjects/i-all-2")
    assert listed("") == [("i-all-1", 1), ("i-all-1", 2)]
    assert listed("&deleted=true")[-1] == ("i-all-2", 1)
    assert ask("GET", "/schemas?limit=x").code == 400
    ask("PUT", "/config/i-all-alias", {"alias": "i-all-1"})
    found = ask.get("/schemas?subjectPrefix=i-all&aliases=true")
    assert found[0]["aliases"] == ["i-all-alias"]
    assert ask.get("/subjects?subjectPrefix=i-all&deletedOnly=true") == ["i-all-2"]


def test_with_a_subject_the_answer_names_the_place(ask: Asked) -> None:
    """And the id, which confluent-kafka for Python looks for there."""
    id = ask.register("s-place", "placed")["id"]
    found = ask.get(f"/schemas/ids/{id}?subject=s-place")
    assert (found["subject"], found["version"], found["id"]) == ("s-place", 1, id)
    assert "id" not in ask.get(f"/schemas/ids/{id}")


def test_what_was_given_as_a_descriptor_is_answered_as_one(ask: Asked) -> None:
    """A client that remembers what it registered by the answer reads descriptors only."""
    proto = FileDescriptorProto(name="a.proto", syntax="proto3")
    proto.message_type.add(name="A")
    given = b64encode(proto.SerializeToString()).decode()
    answer = ask.register("s-descriptor", given, schemaType="PROTOBUF")
    assert answer["schema"] == given
    text = ask.get(f"/schemas/ids/{answer['id']}")["schema"]
    assert "message A" in text
    again = ask.register("s-descriptor", text, schemaType="PROTOBUF")
    assert (again["id"], again["schema"]) == (answer["id"], text)
    assert ask.register("s-word", '"string"', schemaType="AVRO")["schema"] == '"string"'
