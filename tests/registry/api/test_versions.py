"""Versions of a subject: registered, read, deleted; ids and guids; references; tags and rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.registry import Asked


def refused(ask: Asked, method: str, path: str, code: int, body: Any = None) -> str:
    answer = ask(method, path, body)
    assert answer.code == code and answer.status == (code if code < 1000 else code // 100), answer
    message: str = answer.json["message"]
    return message


def columns(schema: str, **more: Any) -> dict[str, Any]:
    return {"schema": schema, "schemaType": "COLUMNS", **more}


def test_one_content_has_one_id_in_all_subjects(ask: Asked) -> None:
    first = ask.register("v-one", "one,id")
    again = ask.register("v-two", "one,id")
    assert (again["id"], again["version"], again["guid"]) == (first["id"], 1, first["guid"])
    assert ask.get(f"/schemas/ids/{first['id']}/subjects") == ["v-one", "v-two"]
    assert ask.register("v-one", "one,id,more")["id"] != first["id"]
    other = ask.register("v-two", "one,id", metadata={"properties": {"owner": "Ada"}})
    assert other["id"] not in (first["id"], first["id"] + 1) and other["version"] == 2


def test_a_schema_that_was_registered_before_the_last_one_has_its_id(ask: Asked) -> None:
    first, _ = ask.register("v-old", "a"), ask.register("v-old", "a,b")
    assert ask.register("v-old", "a")["id"] == first["id"]
    assert ask.get("/subjects/v-old/versions") == [1, 2]


def test_a_version_that_is_named_has_to_be_the_next(ask: Asked) -> None:
    ask.register("v-next", "a")
    refused(ask, "POST", "/subjects/v-next/versions", 42201, columns("a,b", version=5))
    found = ask.register("v-next", "a,b", version=2)
    assert found["metadata"] == {"properties": {"confluent:version": "2"}}
    latest = ask.register("v-next", "a,b", version=-1)
    assert latest["version"] == 2


def test_normalized(ask: Asked) -> None:
    body = columns("b,a")
    answer = ask("POST", "/subjects/v-normal/versions?normalize=true", body)
    assert answer.json["schema"] == "a,b"
    assert ask("POST", "/subjects/v-normal?normalize=true", body).json["version"] == 1
    assert refused(ask, "POST", "/subjects/v-normal", 40403, body) == "Schema not found"
    ask("PUT", "/config/v-normal", {"normalize": True})
    assert ask("POST", "/subjects/v-normal", body).json["version"] == 1


def test_references(ask: Asked) -> None:
    ask.register("v-base", "x,y")
    references = [{"name": "base", "subject": "v-base", "version": 1}]
    found = ask.register("v-uses", "id,@base", references=references)
    assert found["references"] == references
    assert ask.get("/subjects/v-base/versions/1/referencedby") == [found["id"]]
    assert ask("GET", "/subjects/v-uses/versions/1/schema?format=resolved").text == "id,x,y"
    assert ask.get(f"/schemas/ids/{found['id']}?format=resolved")["schema"] == "id,x,y"
    assert ask.get(f"/schemas/ids/{found['id']}?format=unknown")["schema"] == "id,@base"
    missing = [{"name": "base", "subject": "v-none", "version": 1}]
    told = refused(ask, "POST", "/subjects/v-bad/versions", 42201, columns("id,@base", references=missing))
    assert 'subject "v-none" and version 1' in told
    latest = [{"name": "base", "subject": "v-base", "version": -1}]
    assert ask.register("v-latest", "@base", references=latest)["references"][0]["version"] == 1

    told = refused(ask, "DELETE", "/subjects/v-base/versions/1", 42206)
    assert told.endswith("{magic=1,keytype=SCHEMA,subject=v-base,version=1}.")
    refused(ask, "DELETE", "/subjects/v-base", 42206)
    for subject in ("v-uses", "v-latest"):
        assert ask("DELETE", f"/subjects/{subject}").status == 200
    assert ask.get("/subjects/v-base/versions/1/referencedby") == []
    assert len(ask.get("/subjects/v-base/versions/1/referencedby?deleted=true")) == 2
    assert ask("DELETE", "/subjects/v-base/versions/1").json == 1
    refused(ask, "DELETE", "/subjects/v-base/versions/1?permanent=true", 42206)
    for subject in ("v-uses", "v-latest"):
        ask("DELETE", f"/subjects/{subject}?permanent=true")
    assert ask("DELETE", "/subjects/v-base/versions/1?permanent=true").json == 1


def test_codes_of_deletions(ask: Asked) -> None:
    ask.register("v-gone", "a")
    ask.register("v-gone", "a,b")
    refused(ask, "DELETE", "/subjects/v-gone?permanent=true", 40405)
    refused(ask, "DELETE", "/subjects/v-gone/versions/1?permanent=true", 40407)
    assert ask("DELETE", "/subjects/v-gone/versions/latest").json == 2
    refused(ask, "DELETE", "/subjects/v-gone/versions/2", 40406)
    assert ask.get("/subjects/v-gone/versions") == [1]
    assert ask.get("/subjects/v-gone/versions?deleted=true") == [1, 2]
    assert ask.get("/subjects/v-gone/versions?deletedOnly=true") == [2]
    assert ask.get("/subjects/v-gone/versions?deletedAsNegative=true") == [1, -2]
    assert ask.get("/subjects/v-gone/versions?deleted=true&offset=1&limit=1") == [2]
    refused(ask, "GET", "/subjects/v-gone/versions/2", 40402)
    assert ask.get("/subjects/v-gone/versions/2?deleted=true")["deleted"] is True
    assert ask("DELETE", "/subjects/v-gone").json == [1]
    refused(ask, "DELETE", "/subjects/v-gone", 40404)
    refused(ask, "GET", "/subjects/v-gone/versions", 40401)
    refused(ask, "GET", "/subjects/v-gone/versions/1", 40401)
    assert ask("DELETE", "/subjects/v-gone?permanent=true").json == [1, 2]
    refused(ask, "DELETE", "/subjects/v-gone?permanent=true", 40401)


def test_a_deleted_schema_can_be_registered_again_with_its_id(ask: Asked) -> None:
    first = ask.register("v-back", "back")
    ask("DELETE", "/subjects/v-back/versions/1")
    again = ask.register("v-back", "back")
    assert (again["id"], again["version"]) == (first["id"], 2)
    assert ask.get("/subjects/v-back/versions?deleted=true") == [2]
    ask("DELETE", "/subjects/v-back")
    ask("DELETE", "/subjects/v-back?permanent=true")
    assert ask.register("v-back", "back")["id"] > first["id"]


def test_metadata_and_rules_are_stored_merged_and_taken_over(ask: Asked) -> None:
    rule = {
        "name": "check",
        "kind": "CONDITION",
        "mode": "WRITE",
        "type": "CEL",
        "expr": "true",
        "disabled": False,
    }
    ask(
        "PUT",
        "/config/v-meta",
        {
            "defaultMetadata": {"properties": {"team": "a", "owner": "none"}},
            "overrideMetadata": {"properties": {"region": "eu"}},
            "defaultRuleSet": {"domainRules": [rule]},
        },
    )
    found = ask.register("v-meta", "a", metadata={"properties": {"owner": "Ada", "region": "us"}})
    assert found["metadata"]["properties"] == {"owner": "Ada", "region": "eu", "team": "a"}
    assert found["ruleSet"] == {"domainRules": [rule]}
    later = ask.register("v-meta", "a,b")
    assert later["metadata"]["properties"] == {"owner": "Ada", "region": "eu", "team": "a"}
    assert ask("POST", "/subjects/v-meta", columns("a,b")).json["version"] == 2
    assert ask.get("/subjects/v-meta/metadata?key=owner&value=Ada")["version"] == 2
    refused(ask, "GET", "/subjects/v-meta/metadata?key=owner&value=Bob", 40403)
    refused(ask, "GET", "/subjects/v-none/metadata?key=owner&value=Bob", 40401)
    # Only metadata: the schema is that of the version before.
    answer = ask("POST", "/subjects/v-meta/versions", {"metadata": {"properties": {"owner": "Eve"}}})
    assert (answer.json["version"], answer.json["schema"]) == (3, "a,b")
    refused(
        ask,
        "POST",
        "/subjects/v-meta/versions",
        42210,
        columns("c", ruleSet={"domainRules": [{"name": "1"}]}),
    )


def test_tags_make_a_new_version(ask: Asked) -> None:
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "f", "type": "string"}]}
    ask("POST", "/subjects/v-tags/versions", {"schema": json.dumps(schema)})
    rule = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "disabled": False}
    body = {
        "newVersion": 2,
        "tagsToAdd": [{"schemaEntity": {"entityPath": "n.R.f", "entityType": "sr_field"}, "tags": ["PII"]}],
        "metadata": {"properties": {"owner": "Ada"}},
        "rulesToMerge": {"domainRules": [rule]},
    }
    answer = ask("POST", "/subjects/v-tags/versions/latest/tags", body)
    assert (answer.status, answer.json["version"]) == (200, 2), answer
    assert json.loads(answer.json["schema"])["fields"][0]["confluent:tags"] == ["PII"]
    assert answer.json["metadata"]["properties"] == {"confluent:version": "2", "owner": "Ada"}
    assert answer.json["ruleSet"] == {"domainRules": [rule]}
    entity = {"entityPath": "n.R.none", "entityType": "sr_field"}
    refused(
        ask,
        "POST",
        "/subjects/v-tags/versions/2/tags",
        42201,
        {"tagsToAdd": [{"schemaEntity": entity, "tags": ["a"]}]},
    )
    both = {"ruleSet": {}, "rulesToRemove": ["r"]}
    refused(ask, "POST", "/subjects/v-tags/versions/2/tags", 42210, both)
    third = ask("POST", "/subjects/v-tags/versions/2/tags", {"newVersion": 3, "rulesToRemove": ["r"]})
    assert third.json["version"] == 3 and not third.json.get("ruleSet")


FIELD_TAGS = [{"schemaEntity": {"entityPath": "n.R.f", "entityType": "sr_field"}, "tags": ["PII"]}]


def test_what_has_tags_is_found(ask: Asked) -> None:
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "f", "type": "string"}]}
    body = {"schema": json.dumps(schema), "schemaTagsToAdd": FIELD_TAGS}
    id = ask("POST", "/subjects/v-found/versions", body).json["id"]
    for path in (f"/schemas/ids/{id}", "/subjects/v-found/versions/1", "/subjects/v-found/versions/latest"):
        for asked in ("findTags=PII", "findTags=*", "findTags=none&findTags=PII", "findTags=none,PII"):
            assert ask.get(f"{path}?{asked}")["schemaTags"] == FIELD_TAGS
        for asked in ("findTags=none", "findTags=", ""):
            assert "schemaTags" not in ask.get(f"{path}?{asked}")
    gone = {"schema": ask.get(f"/schemas/ids/{id}")["schema"], "schemaTagsToRemove": FIELD_TAGS}
    ask("POST", "/subjects/v-found/versions", gone)
    assert "schemaTags" not in ask.get("/subjects/v-found/versions/2?findTags=*")


def test_tags_of_the_version_before_are_propagated(ask: Asked) -> None:
    def of(*fields: str, **more: Any) -> dict[str, Any]:
        members = [{"name": name, "type": "string", "default": ""} for name in fields]
        return {
            "schema": json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": members}),
            **more,
        }

    path = "/subjects/v-prop/versions"
    ask("POST", path, of("f", schemaTagsToAdd=FIELD_TAGS))
    second = ask("POST", path, of("f", "g", propagateSchemaTags=True))
    assert (second.json["version"], ask.get(f"{path}/2?findTags=*")["schemaTags"]) == (2, FIELD_TAGS)
    assert ask("POST", path, of("f", "g", propagateSchemaTags=True)).json["version"] == 2
    assert ask("POST", path, of("g", propagateSchemaTags=True)).json["version"] == 3
    assert ask("POST", path, of("f", "g")).json["version"] == 4
    assert "schemaTags" not in ask.get(f"{path}/4?findTags=*")
    assert ask("POST", "/subjects/v-prop-new/versions", of("f", propagateSchemaTags=True)).status == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": 5}, 400),
        ({"schema": "a", "schemaType": 5}, 400),
        ({"schema": "a", "references": 5}, 400),
        ({"schema": "a", "references": [5]}, 400),
        ({"schema": "a", "references": [{"name": "a", "subject": "b", "version": "1"}]}, 400),
        ({"schema": "a", "version": "1"}, 400),
        ({"schema": "a", "id": 2**31}, 400),
        ({"schema": "a", "metadata": []}, 400),
        ({"schema": "a", "schemaType": "NONE"}, 42201),
        ({"schema": " "}, 42201),
        ({"schema": "1,2", "schemaType": "COLUMNS"}, 42201),
    ],
)
def test_bodies_that_are_refused(ask: Asked, body: Any, code: int) -> None:
    refused(ask, "POST", "/subjects/v-bodies/versions", code, body)
    refused(ask, "POST", "/subjects/v-bodies", code, body)


def test_names_that_are_refused(ask: Asked) -> None:
    for name in ("a%0Ab", "__EMPTY", ":.__GLOBAL:a"):
        refused(ask, "POST", f"/subjects/{name}/versions", 42208, columns("a"))


def test_subjects_are_decoded_once(ask: Asked) -> None:
    for path, name in (("v%252F", "v%2F"), ("v%2Fa%20%C3%BC", "v/a ü"), ("v+b", "v+b")):
        assert ask("POST", f"/subjects/{path}/versions", columns("decoded")).status == 200
        assert ask.get(f"/subjects/{path}/versions/1")["subject"] == name
        assert name in ask.get("/subjects")


def test_incompatible_ones_say_why(ask: Asked) -> None:
    ask.register("v-why", "a,b")
    answer = ask.register("v-why", "b", 409)
    assert answer["error_code"] == 409
    for part in ("COLUMN_MOVED", "Column 0 was a.", "{oldSchemaVersion: 1}", "compatibility: 'BACKWARD'"):
        assert part in answer["message"]
    assert ask("POST", "/subjects/v-why/versions?force=true", columns("b")).json["version"] == 2
