"""Associations of topics with subjects, by the rules of Confluent's registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient

from leafcuttr_registry.storage import keys, values
from leafcuttr_registry.subjects.events import AssociationKey, AssociationValue, Event
from support.registry import Asked, RegistryProcess, running_registry


def avro(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": []})


def request(
    name: str, *associations: dict[str, Any], resource: str | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "resourceName": name,
        "resourceNamespace": "lkc1",
        "resourceId": resource or f"id-{name}",
        "associations": list(associations),
        **more,
    }


def strong(part: str = "value", schema: str = avro("R"), **more: Any) -> dict[str, Any]:
    return {"associationType": part, "schema": {"schema": schema}, **more}


def weak(subject: str, part: str = "value", **more: Any) -> dict[str, Any]:
    return {"associationType": part, "subject": subject, "lifecycle": "WEAK", **more}


def code(answer: Any) -> tuple[int, int]:
    return answer.status, answer.code


def test_a_topic_with_its_own_schemas(ask: Asked) -> None:
    answer = ask("POST", "/associations", request("own", strong("key", avro("K")), strong()))
    assert answer.status == 200, answer
    assert {
        name: answer.json[name]
        for name in ("resourceName", "resourceNamespace", "resourceId", "resourceType")
    } == {
        "resourceName": "own",
        "resourceNamespace": "lkc1",
        "resourceId": "id-own",
        "resourceType": "topic",
    }
    told = {each["associationType"]: each for each in answer.json["associations"]}
    assert told["value"]["subject"] == ":.lkc1:own-value"
    assert (told["value"]["lifecycle"], told["value"]["frozen"]) == ("STRONG", True)
    assert (told["key"]["schema"]["version"], told["key"]["schema"]["schema"]) == (
        1,
        avro("K").replace(" ", ""),
    )
    assert ask.get("/subjects/:.lkc1:own-value/versions") == [1]
    (found,) = ask.get("/associations/subjects/:.lkc1:own-value")
    assert found["guid"] and found["createTs"] == found["updateTs"] and found["resourceId"] == "id-own"
    assert ask.get("/contexts/lkc1/associations/subjects/own-value") == [found]
    both = ask.get("/associations/resources/id-own")
    assert [each["associationType"] for each in both] == ["key", "value"] and both[1] == found
    assert ask.get("/associations/resources/lkc1/own") == ask.get("/associations/resources/-/own") == both
    assert ask.get("/associations/resources/lkc1/own?associationType=key") == both[:1]
    assert ask.get("/associations/resources/lkc1/own?limit=1&offset=1") == both[1:]
    assert ask.get("/associations/resources/lkc1/own?lifecycle=WEAK") == []
    assert ask.get("/associations/resources/id-own?resourceType=other") == []
    # The same once more changes nothing; another one is refused.
    again = ask("POST", "/associations", request("own", strong("key", avro("K")), strong()))
    assert again.status == 200 and "associations" not in again.json
    other = ask("POST", "/associations", request("own", strong(schema=avro("Other"))))
    assert code(other) == (409, 40903)
    refused = ask(
        "PUT", "/associations/resources/id-own", request("own", {"lifecycle": "WEAK", "subject": "x"})
    )
    assert code(refused)[0] == 422


def test_subjects_that_several_topics_share(ask: Asked) -> None:
    ask("POST", "/subjects/shared/versions", {"schema": avro("R")})
    for name in ("one", "two"):
        answer = ask("PUT", f"/associations/resources/id-{name}", request(name, weak("shared")))
        assert answer.status == 200, answer
    assert [each["resourceName"] for each in ask.get("/associations/subjects/shared")] == ["one", "two"]
    assert code(ask("POST", "/associations", request("three", weak("nothing")))) == (409, 40907)
    ask("POST", "/contexts/.c/subjects/there/versions", {"schema": avro("R")})
    answer = ask("POST", "/contexts/.c/associations", request("four", weak("there")))
    assert answer.json["associations"][0]["subject"] == ":.c:there"
    assert ask("POST", "/associations?dryRun=true", request("five", weak("shared"))).status == 200
    assert ask.get("/associations/resources/id-five") == []
    # A subject that is a topic's own is not shared, and a shared one becomes no topic's own.
    ask("POST", "/associations", request("six", strong()))
    taken = ask("POST", "/associations", request("seven", weak(":.lkc1:six-value")))
    assert code(taken) == (409, 40905)


def test_deletion(ask: Asked) -> None:
    ask("POST", "/subjects/kept/versions", {"schema": avro("R")})
    ask("POST", "/associations", request("weak", weak("kept")))
    ask("POST", "/associations", request("strong", strong()))
    path = "/associations/resources/id-strong"
    assert code(ask("DELETE", path)) == (409, 40908)
    assert ask("DELETE", f"{path}?cascadeLifecycle=true&dryRun=true").status == 204
    assert ask.get("/subjects/:.lkc1:strong-value/versions") == [1]
    assert ask("DELETE", f"{path}?cascadeLifecycle=true").status == 204
    assert ask.get(path) == []
    assert ask("GET", "/subjects/:.lkc1:strong-value/versions?deleted=true").code == 40401
    assert ask("DELETE", "/associations/resources/id-weak?associationType=key").code == 40410
    assert ask("DELETE", "/associations/resources/id-weak?cascadeLifecycle=true").status == 204
    assert ask.get("/subjects/kept/versions") == [1]
    assert code(ask("DELETE", "/associations/resources/id-weak")) == (404, 40410)


@pytest.mark.parametrize(
    ("associations", "more", "why"),
    [
        ([], {}, "'associations', detail: cannot be null or empty"),
        ([5], {}, "'associations'"),
        ([weak("s")], {"resourceName": ""}, "'resourceName', detail: cannot be null or empty"),
        ([weak("s")], {"resourceName": "a.b"}, "illegal character '.'"),
        ([weak("s")], {"resourceNamespace": "n" * 257}, "exceeds max length of 256"),
        ([weak("s")], {"resourceId": None}, "'resourceId'"),
        ([weak("s")], {"resourceType": "cluster"}, "must be 'topic'"),
        ([weak("s", "header")], {}, "must be either 'key' or 'value'"),
        ([weak("s"), weak("s")], {}, "may only appear once per request"),
        ([weak("")], {}, "'subject', detail: must not be empty"),
        ([{**weak("s"), "lifecycle": "OWN"}], {}, "must be one of STRONG, WEAK"),
        ([{"lifecycle": "WEAK"}], {}, "must be provided for WEAK associations"),
        ([weak("s", frozen=True)], {}, "cannot be frozen=true"),
        ([weak("s", frozen="yes")], {}, "must be true or false"),
        ([weak("s", schema={"schema": avro("R")})], {}, "cannot be WEAK when schema is provided"),
        ([strong(frozen=False)], {}, "cannot be false when a schema is provided"),
        ([strong(subject="elsewhere")], {}, "frozen associations must use subject ':.lkc1:bad-value'"),
        ([weak(":.lkc1:bad-value")], {}, "WEAK associations cannot use subject"),
        ([{"lifecycle": "STRONG"}], {}, "schema must be provided when creating a frozen association"),
        (
            [strong("key"), weak("present")],
            {},
            "all associations for a resource must have the same lifecycle",
        ),
    ],
)
def test_what_is_none(ask: Asked, associations: list[Any], more: dict[str, Any], why: str) -> None:
    ask("POST", "/subjects/present/versions", {"schema": avro("R")})
    answer = ask("POST", "/associations", {**request("bad"), "associations": associations, **more})
    assert code(answer) == (422, 42212), answer
    assert why in answer.json["message"]
    assert ask.get("/associations/resources/id-bad") == []


def test_changes_of_what_is_there(ask: Asked) -> None:
    ask("POST", "/subjects/base/versions", {"schema": avro("R")})
    path = "/associations/resources/id-changing"
    ask("PUT", path, request("changing", weak("base")))
    for given, why in (
        (weak("present"), "subject of association cannot be changed"),
        ({"subject": "base", "lifecycle": "STRONG"}, "cannot be frozen=false"),
        ({"associationType": "key", "lifecycle": "STRONG"}, "must be created with the topic"),
        ({"associationType": "key", "schema": {"schema": avro("K")}}, "must be created with the topic"),
    ):
        answer = ask("PUT", path, request("changing", given))
        assert code(answer) == (422, 42212) and why in answer.json["message"], answer
    mismatch = ask("PUT", path, request("changing", weak("base"), resource="other"))
    assert "does not match" in mismatch.json["message"]
    assert code(ask("POST", "/associations", request("changing", weak("present")))) == (409, 40903)
    ask("PUT", "/mode/base", {"mode": "READONLY"})
    assert ask("DELETE", path).code == ask("PUT", path, request("changing", weak("base"))).code == 42205
    ask("PUT", "/mode/base", {"mode": "READWRITE"})


def test_a_schema_that_is_referred_to_is_no_topics_own(ask: Asked) -> None:
    reference = {"name": "R", "subject": ":.lkc1:ref-value", "version": 1}
    ask("POST", "/subjects/:.lkc1:ref-value/versions", {"schema": avro("R")})
    user = json.dumps({"type": "record", "name": "U", "fields": [{"name": "r", "type": "R"}]})
    ask(
        "POST",
        "/subjects/:.lkc1:user/versions",
        {"schema": user, "references": [{**reference, "subject": "ref-value"}]},
    )
    answer = ask("POST", "/associations", request("ref", strong()))
    assert code(answer) == (422, 42206), answer


@pytest.mark.long
def test_they_survive_a_restart_and_those_of_others_are_followed(tmp_path: Path) -> None:
    key = AssociationKey("default", "theirs", "ns", "topic", "value", "s")
    with running_registry(tmp_path) as registry:
        ask = registry.ask
        ask("POST", "/subjects/s/versions", {"schema": avro("R")})
        ask("POST", "/associations", request("ours", weak("s")))
        value = AssociationValue("g", "their-id", "WEAK", False, 5)
        write(registry, Event(key, value))
        ask("PUT", "/config/s", {"compatibility": "NONE"})  # waits for all that was written before
        told = ask.get("/associations/subjects/s")
        assert [(each["resourceName"], each["guid"] == "g") for each in told] == [
            ("ours", False),
            ("theirs", True),
        ]
        assert told[1]["createTs"] == 5 != told[1]["updateTs"]
    with running_registry(tmp_path) as registry:
        assert registry.ask.get("/associations/subjects/s") == told
        write(registry, Event(key, None))
        registry.ask("PUT", "/config/s", {"compatibility": "FULL"})
        assert registry.ask.get("/associations/subjects/s") == told[:1]


def write(registry: RegistryProcess, event: Event) -> None:
    """As someone else."""
    producer = Producer({"bootstrap.servers": registry.broker.address})
    producer.produce("_schemas", values.encode(event), keys.encode(event.key))
    assert producer.flush(60) == 0


def test_the_form_in_the_topic() -> None:
    key = AssociationKey("default", "t", "ns", "topic", "value", "s")
    data = (
        b'{"keytype":"ASSOC","tenant":"default","resourceName":"t","resourceNamespace":"ns","resourceType":"topic",'
        b'"associationType":"value","subject":"s","magic":0}'
    )
    assert keys.encode(key) == data and keys.decode(data) == key
    value = AssociationValue("g", "id", "STRONG", True)
    stored = values.encode(Event(key, value))
    assert (
        stored is not None
        and json.loads(stored)["resourceName"] == "t"
        and "createTs" not in json.loads(stored)
    )
    assert values.decode(key, stored) == value
    for wrong in (
        b"[]",
        b"{}",
        b'{"guid":"g","lifecycle":"OWN"}',
        b'{"guid":"g","lifecycle":"WEAK","createTs":"x"}',
    ):
        with pytest.raises(ValueError):
            values.decode(key, wrong)


def test_confluents_client(ask: Asked) -> None:
    from confluent_kafka.schema_registry.common import schema_registry_client as entities

    client = SchemaRegistryClient({"url": ask.url})
    ask("POST", "/subjects/py/versions", {"schema": avro("R")})
    wanted = entities.AssociationCreateOrUpdateInfo(
        subject="py", association_type="value", lifecycle="WEAK", frozen=None, schema=None, normalize=None
    )
    given = entities.AssociationCreateOrUpdateRequest(
        resource_name="py",
        resource_namespace="lkc1",
        resource_id="id-py",
        resource_type="topic",
        associations=[wanted],
    )
    made = client.create_association(given)
    assert [each.subject for each in made.associations] == ["py"]
    (found,) = client.get_associations_by_resource_name("py", "lkc1", "topic", ["value"])
    assert (found.subject, found.resource_id, found.frozen) == ("py", "id-py", False)
    client.delete_associations("id-py", "topic", ["value"])
    assert client.get_associations_by_resource_name("py", "lkc1", "topic", ["value"]) == []


def test_schemas_by_the_associations_of_their_subjects(ask: Asked) -> None:
    for subject in (":.by:weak", ":.by:none"):
        ask.register(subject, avro("R"), schemaType="AVRO")
    ask("POST", "/associations", request("by-1", weak(":.by:weak"), weak(":.by:weak", "key")))
    body = {**request("by-2", strong()), "resourceNamespace": "by"}
    assert ask("POST", "/associations", body).status == 200

    def listed(query: str) -> dict[str, list[str]]:
        found = ask.get(f"/schemas?subjectPrefix=:.by:&{query}")
        return {
            each["subject"].rpartition(":")[2]: [
                one["associationType"] for one in each.get("associations", ())
            ]
            for each in found
        }

    own, shared = {"by-2-value": ["value"]}, {"weak": ["key", "value"]}
    assert listed("resourceType=topic") == listed("lifecycle=WEAK,strong") == {**own, **shared}
    assert listed("resourceType=other") == {}
    assert listed("lifecycle=WEAK") == shared and listed("lifecycle=STRONG") == own
    assert listed("lifecycle=NONE") == {"none": []}
    assert listed("lifecycle=NONE&lifecycle=STRONG") == {"none": [], **own}
    assert listed("associationType=key") == {"weak": ["key"]}
    assert listed("associationType=key&lifecycle=NONE") == {"none": [], "by-2-value": []}
    assert listed("resourceType=topic&limit=1") == own
    assert listed("") == {"none": [], "weak": [], "by-2-value": []}
    assert code(ask("GET", "/schemas?lifecycle=ODD")) == (400, 400)
