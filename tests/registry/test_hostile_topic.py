"""What others may write to `_schemas`: nothing of it ends the registry, and no id is given twice because of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from support.registry import Asked, RegistryProcess
from support.waiting import until

LONE = "\ud800"


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


def key(subject: str, version: int, **more: Any) -> bytes:
    members = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1, **more}
    return json.dumps(members, separators=(",", ":")).encode()


def value(subject: str, version: int, id: int, **more: Any) -> bytes:
    members = {"subject": subject, "version": version, "id": id, "schemaType": "COLUMNS", "schema": f"x{id}"}
    return json.dumps({**members, "deleted": False, **more}).encode()


def of(keytype: str, subject: str | None = None, **more: Any) -> bytes:
    return json.dumps({"keytype": keytype, "subject": subject, "magic": 0, **more}).encode()


GARBAGE: dict[str, tuple[bytes | None, bytes | None]] = {
    "no key": (None, b"x"),
    "no text": (b"\xff\xfe", b"\xff"),
    "empty": (b"", b""),
    "nested": (b"[" * 100_000, b""),
    "nested value": (key("h", 1), b'{"a":' + b"[" * 100_000),
    "UTF-16": (key("u", 1).decode().encode("utf-16"), value("u", 1, 901)),
    "surrogate in a subject": (key(LONE, 1), value("a", 1, 902)),
    "surrogate in bytes": (b'{"keytype":"CONFIG","subject":"\xed\xa0\x80","magic":0}', b"{}"),
    "surrogate in a name": (of("CONFIG", LONE), b"{}"),
    "surrogate in a context": (of("CONTEXT", tenant="default", context=LONE), b"{}"),
    "surrogate in a keytype": (of(LONE), b"{}"),
    "surrogate in a schema": (key("b", 1), value("b", 1, 903, schema=LONE)),
    "surrogate in metadata": (key("b", 1), value("b", 1, 904, metadata={"properties": {"a": LONE}})),
    "surrogate in a reference": (
        key("b", 1),
        value("b", 1, 905, references=[{"name": LONE, "subject": "x", "version": 1}]),
    ),
    "surrogate in a rule": (
        key("b", 1),
        value("b", 1, 906, ruleSet={"domainRules": [{"name": LONE, "type": "x"}]}),
    ),
    "surrogate in a config": (of("CONFIG", "b"), json.dumps({"alias": LONE}).encode()),
    "references as a number": (key("b", 1), value("b", 1, 907, references=5)),
    "references as a text": (key("b", 1), value("b", 1, 908, references="abc")),
    "references as an object": (key("b", 1), value("b", 1, 909, references={"a": 1})),
    "version too high": (key("b", 10**40), value("b", 1, 910)),
    "version below 1": (key("b", -5), value("b", 1, 911)),
    "version 0": (key("b", 0), value("b", 1, 912)),
    "id too high": (key("b", 1), value("b", 1, 2**31)),
    "level as an array": (of("CONFIG", "b"), b'{"compatibilityLevel":["FULL"]}'),
    "mode as an object": (of("MODE", "b"), b'{"mode":{}}'),
    "last version without one": (of("DELETE_SUBJECT", "b"), b"{}"),
}
KEPT: dict[str, tuple[bytes, bytes]] = {
    "another keytype": (of("ASSOC", "b"), b"{}"),
    "another magic": (key("b", 1, magic=[]), value("b", 1, 913)),
    "a context without a dot": (of("CONTEXT", tenant={"a": []}, context="nodot"), b"{}"),
    "a context without a name": (of("CONTEXT", tenant="default", context=""), b"{}"),
    "no end": (of("NOOP"), b"\xff"),
    "a digest that is none": (key("digest", 1), value("digest", 1, 914, md5="é")),
    "no name": (key("", 1), value("", 1, 915)),
    "all contexts": (key(":*:a", 1), value(":*:a", 1, 916)),
    "control characters": (key("\0\n", 1), value("\0\n", 1, 917)),
    "an unknown type": (key("unknown", 1), value("unknown", 1, 918, schemaType="NONE")),
    "no schema of its type": (key("bad", 1), value("bad", 1, 919, schemaType="AVRO", schema="{{{")),
}
READS = (
    "/subjects?deleted=true",
    "/schemas?deleted=true",
    "/contexts",
    "/config",
    "/config/b?defaultToGlobal=true",
    "/mode/b?defaultToGlobal=true",
    "/subjects/unknown/versions/1?format=resolved",
    "/subjects/bad/versions/1?format=resolved",
)


class Other:
    """Another writer of the topic."""

    def __init__(self, registry: RegistryProcess) -> None:
        self._producer = Producer({"bootstrap.servers": registry.broker.address})
        self._ask = registry.ask

    def write(self, *records: tuple[bytes | None, bytes | None]) -> None:
        for key, value in records:
            self._producer.produce("_schemas", value, key, partition=0)
        assert self._producer.flush(30) == 0
        # What a client registers is written behind it, and answered when all before it has been read.
        self._ask.register("after", f"a{id(records)}")
        self._ask("DELETE", "/subjects/after")


@pytest.fixture
def other(registry: RegistryProcess) -> Other:
    return Other(registry)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", [*GARBAGE, *KEPT])
def test_no_record_ends_it(registry: RegistryProcess, ask: Asked, other: Other, what: str) -> None:
    other.write((GARBAGE | KEPT)[what])
    for path in READS:
        answer = ask("GET", path)
        assert answer.status < 500 and answer.json is not None, (path, answer)
    assert "is started again" not in registry.broker.log and "Traceback" not in registry.broker.log


def test_none_of_that_is_a_version(ask: Asked, other: Other) -> None:
    other.write(*GARBAGE.values())
    assert "b" not in ask.get("/subjects?deleted=true")
    assert ask("GET", "/config/b").status == 404


def test_one_id_with_two_contents_of_one_text(ask: Asked, other: Other) -> None:
    """Another registry may do that; a guid must not lead to what is gone."""
    first = value("two", 1, 800, metadata={"properties": {"a": "1"}})
    other.write((key("two", 1), first), (key("two", 2), value("two", 2, 800)))
    guid = ask.get("/subjects/two/versions/1")["guid"]
    other.write((key("two", 1), None), (key("two", 2), None))
    assert ask("GET", f"/schemas/guids/{guid}").status == 404
    assert ask("GET", f"/schemas/guids/{guid}/ids").status < 500


@pytest.mark.parametrize("how", ["taken", "overwritten"])
def test_an_id_that_others_bury_is_kept(
    registry: RegistryProcess, ask: Asked, other: Other, how: str
) -> None:
    """Where no record has the highest id any more, compaction would forget it."""
    context = f".{how}"
    first, second = f":{context}:first", f":{context}:second"
    ask.register(first, "a")
    assert ask.register(second, "b")["id"] == 2
    other.write((key(second, 1), None if how == "taken" else value(second, 1, 1, schema="a")))
    logs = list((registry.broker.data / "__leafcuttr_registry_ids-0").glob("*.log"))
    wanted = context.encode(), b'{"highest": 2}'
    until(lambda: any(all(each in log.read_bytes() for each in wanted) for log in logs), "the id is kept")
    assert ask.register(f"{second}s", "c")["id"] == 3


def test_the_last_id_and_the_last_version(ask: Asked, other: Other) -> None:
    last = 2**31 - 1
    other.write(
        (key(":.last:a", 1), value(":.last:a", 1, last, schema="x930")),
        (key("last", last), value("last", last, 930)),
    )
    for subject in (":.last:a", ":.last:b", "last"):
        answer = ask("POST", f"/subjects/{subject}/versions", {"schema": "x930,b", "schemaType": "COLUMNS"})
        assert (answer.status, answer.code) == (422, 42205), answer


@pytest.mark.long
def test_the_topic_of_the_highest_ids_is_made_anew(registry: RegistryProcess, ask: Asked) -> None:
    admin = AdminClient({"bootstrap.servers": registry.broker.address})
    admin.delete_topics(["__leafcuttr_registry_ids"])["__leafcuttr_registry_ids"].result(30)
    subject = "/subjects/:.anew:a"
    for columns in ("a", "a,b"):
        ask.register(":.anew:a", columns)
    for permanent in ("", "?permanent=true"):
        assert ask("DELETE", f"{subject}{permanent}").status == 200
    assert ask.register(":.anew:a", "a")["id"] == 3
    logs = list((registry.broker.data / "__leafcuttr_registry_ids-0").glob("*.log"))
    assert b'{"highest": 2}' in b"".join(each.read_bytes() for each in logs)
    resource = ConfigResource("TOPIC", "__leafcuttr_registry_ids")
    assert admin.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"
