"""The registry as a whole: what is in its topic, what survives, what others write there, requests that come at once."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from leafcuttr_registry.storage.topics import IDS, SCHEMAS
from support import librdkafka
from support.registry import Asked, RegistryProcess, running_registry
from support.waiting import until


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


def write(address: str, records: Sequence[tuple[bytes | None, bytes | None]], topic: str = SCHEMAS) -> None:
    """Append as a client."""
    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": address})
    for key, value in records:
        producer.produce(
            topic, value, key, on_delivery=lambda error, _: failures.append(error) if error else None
        )
    assert producer.flush(60) == 0 and not failures, failures


def read(address: str, topic: str = SCHEMAS) -> list[tuple[bytes, bytes | None]]:
    """All that is there."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reads", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            break
        found.append((message.key(), message.value()))
    consumer.close()
    return found


def schema_key(subject: str, version: int) -> bytes:
    return f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'.encode()


def schema_value(subject: str, version: int, id: int, schema: str, **more: Any) -> bytes:
    value = {"subject": subject, "version": version, "id": id, "schemaType": "COLUMNS", "schema": schema}
    return json.dumps({**value, "deleted": False, **more}).encode()


def test_the_topic_is_confluents(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    before = len(read(address))
    id = ask.register("t-a", "a")["id"]
    ask.register(":.t:a", "a")
    ask("PUT", "/config/t-a", {"compatibility": "FULL"})
    ask("PUT", "/mode/t-a", {"mode": "READWRITE"})
    ask("DELETE", "/subjects/t-a")
    ask("DELETE", "/subjects/t-a?permanent=true")
    found = read(address)[before:]
    assert found[0] == (
        schema_key("t-a", 1),
        f'{{"subject":"t-a","version":1,"id":{id},"schemaType":"COLUMNS","schema":"a","deleted":false}}'.encode(),
    )
    assert [key for key, _ in found] == [
        schema_key("t-a", 1),
        b'{"keytype":"CONTEXT","tenant":"default","context":".t","magic":0}',
        schema_key(":.t:a", 1),
        b'{"keytype":"CONFIG","subject":"t-a","magic":0}',
        b'{"keytype":"MODE","subject":"t-a","magic":0}',
        b'{"keytype":"DELETE_SUBJECT","subject":"t-a","magic":0}',
        schema_key("t-a", 1),
        b'{"keytype":"MODE","subject":"t-a","magic":0}',
        b'{"keytype":"CONFIG","subject":"t-a","magic":0}',
    ]
    assert [value for _, value in found[6:]] == [None, None, None]
    described = librdkafka.admin(address).list_topics(timeout=60).topics
    assert len(described[SCHEMAS].partitions) == 1


def test_what_others_append_is_followed(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    write(address, [(schema_key("f-a", 4), schema_value("f-a", 4, 5000, "f,a"))])
    until(lambda: ask("GET", "/subjects/f-a/versions").json == [4], "the registry to follow")
    assert ask.get("/schemas/ids/5000")["schema"] == "f,a"
    write(address, [(schema_key("f-a", 4), schema_value("f-a", 4, 5000, "f,a", deleted=True))])
    until(lambda: ask("GET", "/subjects/f-a/versions").status == 404, "the registry to follow")
    write(address, [(b'{"keytype":"CONFIG","subject":"f-a","magic":0}', b'{"compatibilityLevel":"NONE"}')])
    until(lambda: ask("GET", "/config/f-a").json == {"compatibilityLevel": "NONE"}, "the registry to follow")
    assert ask.register("f-b", "new,one")["id"] == 5001


def test_a_registration_sees_what_others_have_written_before(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    for number in range(6000, 6010):
        write(
            address,
            [(schema_key(f"s-{number}", 1), schema_value(f"s-{number}", 1, number * 10, f"s,s{number}"))],
        )
        assert ask.register(f"s-after-{number}", f"after,a{number}")["id"] == number * 10 + 1


def test_karapaces_form_is_read_and_buried_with_ours(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    key = b'{"subject":"k-a","version":1,"magic":1,"keytype":"SCHEMA"}'
    value = b'{"subject":"k-a","version":1,"id":7000,"schema":"k","deleted":false,"schemaType":"COLUMNS"}'
    config = b'{"subject":"k-a","magic":0,"keytype":"CONFIG"}'
    write(address, [(key, value), (config, b'{"compatibilityLevel":"FULL"}')])
    until(lambda: ask("GET", "/config/k-a").json == {"compatibilityLevel": "FULL"}, "the registry to follow")
    assert ask.get("/subjects/k-a/versions/1")["id"] == 7000
    before = len(read(address))
    ask("DELETE", "/subjects/k-a/versions/1")
    ask("DELETE", "/subjects/k-a/versions/1?permanent=true")
    found = read(address)[before:]
    assert [(each, value is None) for each, value in found] == [
        (key, True),
        (schema_key("k-a", 1), False),
        (schema_key("k-a", 1), True),
        (config, True),
        (b'{"keytype":"CONFIG","subject":"k-a","magic":0}', True),
    ]
    assert ask("GET", "/subjects/k-a/versions?deleted=true").status == 404
    # Karapace's tombstone is an empty value.
    write(address, [(key, value.replace(b"7000", b"7001"))])
    until(lambda: ask("GET", "/subjects/k-a/versions").json == [1], "the registry to follow")
    write(address, [(key, b"")])
    until(lambda: ask("GET", "/subjects/k-a/versions").status == 404, "the registry to follow")


def test_garbage_is_one_line_and_unknown_keys_are_kept(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    unknown = b'{"keytype":"ASSOC","tenant":"default","resourceName":"x"}'
    write(address, [(b"x", b"y"), (b"{}", b"y"), (schema_key("g-a", 1), b"no"), (unknown, b'{"a":1}')])
    write(address, [(schema_key("g-b", 1), schema_value("g-b", 1, 8000, "g"))])
    until(lambda: ask("GET", "/subjects/g-b/versions").json == [1], "the registry to follow")
    lines = [line for line in registry.broker.log.splitlines() if "passed over" in line]
    assert len(lines) == 1 and "_schemas, at offset" in lines[0], lines
    assert (unknown, b'{"a":1}') in read(address)


def at_once(url: str, requests: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The answers to registrations that come at once."""
    answers: list[Any] = [None] * len(requests)
    gate = threading.Barrier(len(requests))

    def register(number: int, subject: str, body: dict[str, Any]) -> None:
        with httpx.Client(timeout=60) as client:
            ask = Asked(url, client)
            gate.wait()
            answers[number] = ask("POST", f"/subjects/{subject}/versions", body).json

    threads = [
        threading.Thread(target=register, args=(number, *each)) for number, each in enumerate(requests)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_two_that_register_at_once_get_one_id(registry: RegistryProcess, rounds: int) -> None:
    for round in range(rounds):
        body = {"schema": f"o,o{round}", "schemaType": "COLUMNS"}
        answers = at_once(registry.url, [(f"o-{round}-{number % 3}", body) for number in range(12)])
        assert len({answer["id"] for answer in answers}) == 1, answers
        assert {answer["version"] for answer in answers} == {1}


@pytest.mark.long
def test_different_ones_that_come_at_once_get_different_ids(registry: RegistryProcess) -> None:
    requests = [(f"d-{number}", {"schema": f"d,d{number}", "schemaType": "COLUMNS"}) for number in range(16)]
    assert len({answer["id"] for answer in at_once(registry.url, requests)}) == 16
    ask = registry.ask
    ask("PUT", "/config/d-same", {"compatibility": "BACKWARD"})
    texts = ["a", "a,b", "b", "c,d", "a,b,c"]
    answers = at_once(registry.url, [("d-same", {"schema": each, "schemaType": "COLUMNS"}) for each in texts])
    taken = sorted(answer["version"] for answer in answers if "version" in answer)
    assert taken == list(range(1, len(taken) + 1)) == ask.get("/subjects/d-same/versions")
    stored = [ask.get(f"/subjects/d-same/versions/{number}")["schema"] for number in taken]
    for old, new in itertools.pairwise(stored):
        assert new.startswith(old), "each was compared with the one before it"


def test_what_cannot_be_written_changes_nothing(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    first = ask.register("w-a", "w")["id"]
    librdkafka.alter(address, "topic", SCHEMAS, {"max.message.bytes": "120"})
    try:
        answer = ask("POST", "/subjects/w-a/versions", {"schema": "w,larger", "schemaType": "COLUMNS"})
        assert (answer.status, answer.code) == (422, 42209)
        assert ask.get("/subjects/w-a/versions") == [1]
    finally:
        librdkafka.alter(address, "topic", SCHEMAS, {"max.message.bytes": "8388608"})
    librdkafka.alter(address, "topic", SCHEMAS, {"lc.validators": "refuse-all"})
    try:
        for method, path, body in (
            ("POST", "/subjects/w-a/versions", {"schema": "w,larger", "schemaType": "COLUMNS"}),
            ("PUT", "/config/w-a", {"compatibility": "NONE"}),
            ("PUT", "/mode/w-a", {"mode": "READONLY"}),
            ("DELETE", "/subjects/w-a/versions/1", None),
            ("DELETE", "/subjects/w-a", None),
        ):
            answer = ask(method, path, body)
            assert (answer.status, answer.code) == (500, 50001), answer
            assert "nothing is taken" in answer.json["message"]
        assert ask.get("/subjects/w-a/versions") == [1]
        assert ask("GET", "/config/w-a").status == ask("GET", "/mode/w-a").status == 404
    finally:
        librdkafka.alter(address, "topic", SCHEMAS, {"lc.validators": None})
    assert ask.register("w-a", "w,larger")["id"] == first + 1


def test_no_version_goes_for_good_before_its_id_is_kept(registry: RegistryProcess) -> None:
    ask, address = registry.ask, registry.broker.address
    ask.register("h-a", "kept,id")
    ask("DELETE", "/subjects/h-a")
    librdkafka.alter(address, "topic", IDS, {"max.message.bytes": "20"})
    try:
        for path in ("/subjects/h-a?permanent=true", "/subjects/h-a/versions/1?permanent=true"):
            assert ask("DELETE", path).code == 50001
        assert ask.get("/subjects/h-a/versions?deleted=true") == [1]
    finally:
        librdkafka.alter(address, "topic", IDS, {"max.message.bytes": "8388608"})
    assert ask("DELETE", "/subjects/h-a?permanent=true").json == [1]


def test_ids_and_all_else_survive_restarts_compaction_and_deletion(tmp_path: Path) -> None:
    with running_registry(tmp_path) as registry:
        ask = registry.ask
        kept = ask.register("a", "a")
        gone = ask.register("b", "b,last")
        ask.register(":.c:a", "c")
        ask("PUT", "/config/a", {"compatibility": "FULL"})
        ask("PUT", "/mode/a", {"mode": "READONLY"})
        for permanent in ("false", "true"):
            assert ask("DELETE", f"/subjects/b?permanent={permanent}").status == 200
            assert ask("DELETE", f"/subjects/:.c:a?permanent={permanent}").status == 200
        told = {
            path: ask.get(path) for path in ("/schemas?deleted=true", "/config/a", "/mode/a", "/contexts")
        }
    with running_registry(tmp_path) as registry:
        ask = registry.ask
        assert {path: ask.get(path) for path in told} == told
        assert ask.get(f"/schemas/ids/{kept['id']}")["guid"] == kept["guid"]
        assert ask.register("new", "new")["id"] == gone["id"] + 1
        assert ask.register(":.c:new", "new")["id"] == 2
        # Someone who empties the topic takes the schemas, not the ids that were given.
        librdkafka.delete(registry.broker.address, SCHEMAS)
        until(lambda: running(registry), "the registry to make its topic anew")
        assert ask.register("new", "x")["id"] == gone["id"] + 2
    with running_registry(tmp_path) as registry:
        assert registry.ask.get("/subjects") == ["new"]
        assert registry.ask.register("more", "y")["id"] == gone["id"] + 3


def running(registry: RegistryProcess) -> bool:
    """Whether it has come back."""
    try:
        return registry.ask("GET", "/subjects").json == []
    except httpx.HTTPError:
        return False


def test_the_topic_of_ids_is_its_own(registry: RegistryProcess) -> None:
    registry.ask.register("own", "own")
    registry.ask("DELETE", "/subjects/own")
    registry.ask("DELETE", "/subjects/own?permanent=true")
    ((key, value),) = dict(read(registry.broker.address, IDS)).items()
    assert key == b"." and json.loads(value or b"")["highest"] >= 1
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        write(registry.broker.address, [(b".", b"{}")], IDS)


@pytest.mark.long
def test_the_port_opens_when_the_topic_is_read(tmp_path: Path) -> None:
    with running_registry(tmp_path) as registry:
        records = [
            (schema_key(f"s{number}", 1), schema_value(f"s{number}", 1, number + 1, f"a,b{number}"))
            for number in range(3000)
        ]
        write(registry.broker.address, records)
        until(lambda: len(registry.ask.get("/subjects")) == 3000, "the registry to follow")
    began = time.monotonic()
    with running_registry(tmp_path) as registry:
        assert len(registry.ask.get("/subjects")) == 3000
        assert time.monotonic() - began < 60
        assert registry.ask.register("next", "next")["id"] == 3001


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("partitions", "config", "why"),
    [
        (2, {"cleanup.policy": "compact"}, "has 2 partitions"),
        (1, {"cleanup.policy": "delete"}, "cleanup.policy=delete"),
    ],
)
def test_a_topic_that_would_lose_schemas_is_told_and_mended(
    tmp_path: Path, partitions: int, config: dict[str, str], why: str
) -> None:
    from support.broker_process import running_broker

    with running_broker(tmp_path / "broker") as broker:
        librdkafka.create(broker.address, SCHEMAS, partitions, **config)
    with running_registry(tmp_path) as registry:
        assert registry.ask.register("kept", "a")["id"] == 1
        (line,) = [line for line in registry.broker.log.splitlines() if why in line]
        assert "ERROR" in line
    with running_registry(tmp_path) as registry:
        assert registry.ask.get("/subjects/kept/versions") == [1]
        assert registry.broker.log.count("cleanup.policy") == (partitions == 1)  # of the start before
