"""The records of a registry that was Karapace: karapace.jsonl has what a live one wrote, call by call, on a broker of
ours. It deletes with empty values, sorts the members of schemas, and names the subject null in the global
configuration; earlier releases wrote the members of keys in another order."""

from __future__ import annotations

import json
from pathlib import Path

import confluent_kafka
import pytest

from support.registry import Asked, RegistryProcess, running_registry
from support.waiting import until

pytestmark = pytest.mark.timeout(240)
RECORDS = [json.loads(line) for line in Path(__file__).with_name("karapace.jsonl").read_text().splitlines()]
EARLIER = [
    {
        "key": '{"subject":"earlier","version":1,"magic":1,"keytype":"SCHEMA"}',
        "value": '{"subject":"earlier","version":1,"id":20,"schema":"\\"string\\"","deleted":false}',
    },
    {
        "key": '{"subject":"earlier","magic":0,"keytype":"CONFIG"}',
        "value": '{"compatibilityLevel":"FULL"}',
    },
]


def append(registry: RegistryProcess, records: list[dict[str, str]]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": registry.broker.address})
    for record in records:
        producer.produce("_schemas", key=record["key"], value=record["value"].encode(), partition=0)
    assert producer.flush(30) == 0


def check(ask: Asked) -> None:
    assert ask.get("/subjects") == ["a", "a/b", "earlier", "imp", "j", "t"]
    assert ask.get("/subjects?deleted=true") == ["a", "a/b", "earlier", "imp", "j", "t"]
    assert ask.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert ask.get("/config/j") == {"compatibilityLevel": "NONE"}
    assert ask.get("/config/earlier") == {"compatibilityLevel": "FULL"}
    for subject in ("a", "fresh", "never"):
        ask.get(f"/config/{subject}", 404)
    assert ask.get("/subjects/a/versions") == [3]
    assert ask.get("/subjects/a/versions?deleted=true") == [1, 2, 3]
    assert ask.get("/subjects/j/versions") == [1, 2, 3, 4]
    assert ask.get("/subjects/a%2Fb/versions/1")["schema"] == '"string"'
    ask.get("/subjects/pair/versions", 404)
    user = ask.get("/schemas/ids/1")
    assert json.loads(user["schema"])["name"] == "User" and "schemaType" not in user
    assert ask.get("/schemas/ids/3")["schemaType"] == "JSON"
    places = {(each["subject"], each["version"]) for each in ask.get("/schemas/ids/1/versions")}
    assert places == {("a", 3), ("j", 4), ("imp", 1)}
    for version in ask.get("/subjects/t/versions"):
        assert ask.get(f"/subjects/t/versions/{version}")["id"] == {1: 8, 2: 9, 3: 10}[version]
    # Its text is that of a client with its members sorted: the same schema, which no one registers anew.
    body = {"schema": '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'}
    assert ask("POST", "/subjects/a", body).json["version"] == 3
    assert ask("POST", "/subjects/a/versions", body).json["id"] == 1


@pytest.mark.long
def test_they_are_followed_and_replayed(tmp_path: Path) -> None:
    with running_registry(tmp_path) as registry:
        append(registry, RECORDS + EARLIER)
        until(lambda: "earlier" in registry.ask.get("/subjects"), "the subjects")
        until(lambda: registry.ask("GET", "/config/earlier").status == 200, "the configuration")
        check(registry.ask)
        assert "passed over" not in registry.broker.log
    with running_registry(tmp_path) as registry:
        check(registry.ask)
        assert registry.ask.register("new", '"bytes"', schemaType="AVRO")["id"] == 21
        assert registry.ask("DELETE", "/subjects/earlier/versions/1").json == 1
    with running_registry(tmp_path) as registry:
        assert "earlier" not in registry.ask.get("/subjects")
        assert registry.ask.get("/subjects/new/versions/1")["id"] == 21
