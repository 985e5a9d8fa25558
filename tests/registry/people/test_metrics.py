"""What a scrape and `/health` show of the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from leafcuttr.embedded import open_broker
from leafcuttr_registry.people.metrics import health_checks, readings
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_sdk.testing import check_health_check, check_metric_reading
from support import librdkafka
from support.registry import RegistryProcess

Scrape = dict[tuple[str, ...], float]
USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


def scrape(registry: RegistryProcess) -> Scrape:
    """By name, without what all have before it, and the values of labels."""
    page = httpx.get(f"http://{registry.broker.about['metrics']}/metrics", timeout=60).text
    return {
        (sample.name.removeprefix("leafcuttr_registry_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("leafcuttr_registry_")
    }


def health(registry: RegistryProcess) -> dict[str, Any]:
    page = httpx.get(f"http://{registry.broker.about['metrics']}/health", timeout=60).json()
    found: dict[str, Any] = page["checks"]["registry:schemas"]
    return found


def avro(name: str, **more: object) -> dict[str, str]:
    return {"schema": json.dumps({**USER, "name": name, **more})}


def test_what_clients_do_is_counted(registry: RegistryProcess) -> None:
    ask = registry.ask
    before = scrape(registry)
    path = "/subjects/counted/versions"
    for body in (avro("Counted"), avro("Counted")):
        assert ask("POST", path, body).status == 200
    more = avro("Counted", fields=[*USER["fields"], {"name": "age", "type": "int"}])
    assert ask("POST", path, more).code == 409
    assert ask("POST", path, {"schema": "{"}).code == 42201
    assert ask("POST", path, {"schema": "x", "schemaType": "NONE"}).code == 42201
    assert ask("GET", "/schemas/ids/1000").code == 40403
    assert ask("GET", "/nowhere").code == 404
    assert ask("POST", path, avro("Counted"), headers={"content-type": "text/plain"}).code == 415
    found = scrape(registry)
    grown = {
        name: value - before.get(name, 0) for name, value in found.items() if value != before.get(name, 0)
    }
    assert grown["requests_total", path.replace("counted", "{subject}"), "POST", "200"] == 2
    assert grown["checks_total", "AVRO", "valid"] == 2
    assert grown["checks_total", "AVRO", "invalid"] == 1
    assert grown["checks_total", "AVRO", "incompatible"] == 1
    assert ("checks_total", "NONE", "invalid") not in found, "a client cannot make up a series"
    assert grown["check_seconds_count", "AVRO"] == 4
    assert 0 < grown["check_seconds_sum", "AVRO"] < 600
    for code, count in {"409": 1, "42201": 2, "40403": 1, "404": 1, "415": 1}.items():
        assert grown["refusals_total", code] == count, grown
    assert (grown["schemas",], grown["subjects",], grown["versions",]) == (1, 1, 1)
    assert found["records_passed_over_total",] == 0


def test_a_schema_that_is_compatible(registry: RegistryProcess) -> None:
    path = "/compatibility/subjects/evolving/versions/latest"
    assert registry.ask("POST", "/subjects/evolving/versions", avro("Evolving")).status == 200
    before = scrape(registry)
    wider = avro("Evolving", fields=[*USER["fields"], {"name": "age", "type": "int", "default": 0}])
    assert registry.ask("POST", path, wider).json["is_compatible"]
    grown = scrape(registry)["checks_total", "AVRO", "compatible"] - before.get(
        ("checks_total", "AVRO", "compatible"), 0
    )
    assert grown == 1


def test_a_schema_that_takes_too_long(registry: RegistryProcess) -> None:
    body = {"schema": "slow", "schemaType": "COLUMNS"}
    assert registry.ask("POST", "/subjects/slow/versions", body).code == 42201
    found = scrape(registry)
    assert found["checks_total", "COLUMNS", "too complex"] == 1
    assert found["check_seconds_sum", "COLUMNS"] > 0.5
    assert ("checks_total", "COLUMNS", "valid") not in found


def test_schemas_and_versions_are_counted_apart(registry: RegistryProcess) -> None:
    before = scrape(registry)
    for subject in ("one", "two", ":.ctx:three"):
        assert registry.ask("POST", f"/subjects/{subject}/versions", avro("Shared")).status == 200
    more = avro("Shared", fields=[*USER["fields"], {"name": "age", "type": "int", "default": 0}])
    assert registry.ask("POST", "/subjects/one/versions", more).status == 200
    registry.ask("DELETE", "/subjects/two")
    found = scrape(registry)
    grown = [found[name,] - before[name,] for name in ("schemas", "subjects", "versions")]
    assert grown == [3, 3, 4]
    registry.ask("DELETE", "/subjects/two?permanent=true")
    assert scrape(registry)["versions",] == before["versions",] + 3


def test_records_that_are_passed_over(registry: RegistryProcess) -> None:
    before = scrape(registry)["records_passed_over_total",]
    librdkafka.send(registry.broker.address, SCHEMAS, [b"x", b"{}"], timestamp=1, key=b"garbage")
    registry.ask.get("/subjects/none/versions", 404)
    # A change waits until all that is there has been read.
    assert registry.ask("PUT", "/config/passed-over", {"compatibility": "NONE"}).status == 200
    assert scrape(registry)["records_passed_over_total",] == before + 2


def test_health_says_that_schemas_cannot_be_written_until_they_can(registry: RegistryProcess) -> None:
    assert registry.ask("POST", "/subjects/healthy/versions", avro("Healthy")).status == 200
    fine = health(registry)
    assert fine["ok"] and fine["detail"].endswith("subjects"), fine
    librdkafka.alter(registry.broker.address, "topic", SCHEMAS, {"lc.validators": "refuse-all"})
    try:
        assert registry.ask("PUT", "/config/healthy", {"compatibility": "NONE"}).code == 50001
        bad = health(registry)
        assert not bad["ok"], bad
        assert bad["detail"].startswith("the last change was refused: Error while writing to _schemas: "), bad
        assert "nothing is taken" in bad["detail"]
        assert registry.ask("GET", "/subjects/none/versions").status == 404
        assert not health(registry)["ok"], "what is read says nothing of what is written"
    finally:
        librdkafka.alter(registry.broker.address, "topic", SCHEMAS, {"lc.validators": None})
    assert registry.ask("PUT", "/config/healthy", {"compatibility": "FULL"}).status == 200
    assert health(registry)["ok"]


def test_a_refusal_of_the_client_is_no_trouble(registry: RegistryProcess) -> None:
    assert registry.ask("PUT", "/config/healthy", {"compatibility": "MUCH"}).code == 42203
    address = registry.broker.address
    librdkafka.alter(address, "topic", SCHEMAS, {"max.message.bytes": "200"})
    try:
        assert registry.ask("POST", "/subjects/large/versions", avro("L" * 300)).code == 42209
        assert health(registry)["ok"], "the schema is too large, the topic is well"
    finally:
        librdkafka.alter(address, "topic", SCHEMAS, {"max.message.bytes": "8388608"})


@pytest.mark.long
async def test_before_the_topic_is_read(tmp_path: Path) -> None:
    """There is no state of a registry to look at: here none runs at all."""
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
    }
    async with open_broker(given) as broker:
        [check] = health_checks(broker)
        found = check.look()
        assert (found.fine, found.detail) == (False, "it waits: the topic _schemas is still being read")
        check_health_check(check)
        for each in readings(broker):
            check_metric_reading(each)
            assert list(each.read()) == []
