"""The registry for the broker's users: what each endpoint needs, and what lists leave out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialUpsertion
from leafcuttr_registry.api import documentation
from leafcuttr_registry.api.rights import NEEDS
from leafcuttr_sdk.security import Operation, subject_topic
from support.token_issuer import Issuer

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SHA256 = ScramMechanism.SCRAM_SHA_256
ALICE = ("alice", "tea")
RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
OTHER = json.dumps({"type": "record", "name": "S", "fields": [{"name": "b", "type": "string"}]})


@asynccontextmanager
async def secured(
    tmp_path: Path, auth: str = "basic", **more: str
) -> AsyncIterator[tuple[EmbeddedBroker, httpx.AsyncClient]]:
    given: dict[str, Any] = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.schema.registry.enable": True,
        "lc.schema.registry.port": 0,
        "lc.schema.registry.host": "127.0.0.1",
        "lc.schema.registry.auth": auth,
        "authorizer.class.name": STANDARD,
        "super.users": "User:root",
        **more,
    }
    async with open_broker(given) as broker:
        for name, password in (ALICE, ("root", "root")):
            credential = new_credential(SHA256, password.encode(), 4096)
            await broker._core.users.alter([CredentialUpsertion(name, SHA256, credential)], [])
        address = broker.listeners["lc.schema.registry"].rpartition("/")[2]
        url = f"http://{address}"
        async with httpx.AsyncClient(base_url=url, timeout=60, auth=ALICE) as client:
            yield broker, client


async def grant(broker: EmbeddedBroker, operation: str, subject: str, principal: str = "User:alice") -> None:
    authorizer = broker._core.authorizer
    assert authorizer is not None and authorizer.acls is not None
    kind, name = (
        (AclResourceType.TOPIC, f"subject/{subject}")
        if subject
        else (AclResourceType.CLUSTER, "kafka-cluster")
    )
    what = AclOperation[operation], AclPermission.ALLOW
    await authorizer.acls.create([Acl(kind, name, PatternType.LITERAL, principal, "*", *what)])


async def revoke(broker: EmbeddedBroker) -> None:
    authorizer = broker._core.authorizer
    assert authorizer is not None and authorizer.acls is not None
    await authorizer.acls.delete([AclFilter()])


def refused(answer: httpx.Response, words: str) -> None:
    assert answer.status_code == 403, (answer.status_code, answer.text)
    assert answer.json() == {"error_code": 40301, "message": words}


async def put(client: httpx.AsyncClient, subject: str, text: str = RECORD, **more: Any) -> int:
    body = {"schema": text, **more}
    answer = await client.post(f"/subjects/{subject}/versions", json=body, auth=("root", "root"))
    assert answer.status_code == 200, answer.text
    found: int = answer.json()["id"]
    return found


def test_every_endpoint_is_in_the_table() -> None:
    assert NEEDS.keys() == documentation._OPERATIONS.keys()
    assert all(need is None or need.operation in Operation.__members__ for need in NEEDS.values())
    assert subject_topic(":.ctx:orders") == "subject/:.ctx:orders"


EXAMPLES: dict[str, dict[str, Any]] = {
    "/subjects/{subject}": {"schema": RECORD},
    "/subjects/{subject}/versions": {"schema": RECORD},
    "/compatibility/subjects/{subject}/versions": {"schema": RECORD},
    "/compatibility/subjects/{subject}/versions/{version}": {"schema": RECORD},
    "/config": {"compatibility": "NONE"},
    "/config/{subject}": {"compatibility": "NONE"},
    "/mode": {"mode": "READWRITE"},
    "/mode/{subject}": {"mode": "READWRITE"},
}


async def test_each_endpoint_needs_its_right(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        for (method, path), need in NEEDS.items():
            if need is None or path == "/restart":
                continue
            await put(client, "orders")
            names = {
                "subject": "orders",
                "version": "1",
                "context": "ctx",
                "id": "1",
                "namespace": "-",
                "name": "-",
            }
            body = EXAMPLES.get(path, {}) if method in ("POST", "PUT") else None
            on_subject = need.on != "cluster" and "{subject}" in path
            what = "topic subject/orders" if on_subject else "the cluster"
            answer = await client.request(method, path.format(**names), json=body)
            refused(answer, f"User:alice may not {need.operation} {what}")
            await grant(broker, need.operation, "orders" if on_subject else "")
            if path.endswith("/tags"):
                answer = await client.request(method, path.format(**names), json=body)
                refused(answer, "User:alice may not READ topic subject/orders")
                await grant(broker, "READ", "orders")
            allowed = await client.request(method, path.format(**names), json=body)
            assert allowed.status_code not in (401, 403), (method, path, allowed.text)
            await revoke(broker)
            await client.delete("/subjects/orders", auth=("root", "root"))
            await client.delete("/subjects/orders?permanent=true", auth=("root", "root"))


async def test_who_is_not_in(tmp_path: Path) -> None:
    async with secured(tmp_path) as (_, client):
        wrong = await client.get("/subjects", auth=("alice", "coffee"))
        assert wrong.status_code == 401
        assert wrong.headers["www-authenticate"].startswith("Basic")
        assert (await client.get("/schemas/types")).status_code == 200


async def test_a_kept_connection_is_no_way_beyond_the_end_of_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_ms = 0
    now_ms = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now_ms(self) + passed_ms)
    issuer = Issuer()
    issuer.add("ES256", "one")
    more = {"sasl.oauthbearer.jwks.endpoint.url": issuer.write(tmp_path / "keys")}
    async with secured(tmp_path, "bearer", **more) as (_, client):
        answers = []
        token = {"authorization": f"Bearer {issuer.token('one')}"}
        for moved_ms in (0, 3_500_000, 3_700_000):
            passed_ms = moved_ms
            answers.append(await client.get("/subjects", headers=token, auth=None))
        assert [each.status_code for each in answers] == [200, 200, 401]
        streams = [each.extensions["network_stream"] for each in answers]
        assert len({each.get_extra_info("client_addr") for each in streams}) == 1


async def test_without_a_log_in_a_client_is_anonymous(tmp_path: Path) -> None:
    async with secured(tmp_path, "none,basic") as (broker, client):
        body = {"schema": RECORD}
        anonymous = httpx.AsyncClient(base_url=client.base_url, timeout=60)
        async with anonymous:
            path = "/subjects/orders/versions"
            refused(
                await anonymous.post(path, json=body), "User:ANONYMOUS may not WRITE topic subject/orders"
            )
            await grant(broker, "WRITE", "orders", "User:ANONYMOUS")
            assert (await anonymous.post(path, json=body)).status_code == 200


async def test_schemas_by_id_and_lists(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        one, two = await put(client, "orders"), await put(client, "secret", OTHER)
        assert await put(client, "copies") == one
        root = {"auth": ("root", "root")}
        for id in (one, two):
            for rest in ("", "/schema", "/subjects", "/versions"):
                refused(
                    await client.get(f"/schemas/ids/{id}{rest}"),
                    "User:alice may not READ a topic subject/... that has this schema",
                )
        assert (await client.get("/subjects")).json() == []
        assert (await client.get("/schemas")).json() == []
        await grant(broker, "READ", "orders")
        assert (await client.get(f"/schemas/ids/{one}")).json()["schema"] == RECORD.replace(" ", "")
        assert (await client.get(f"/schemas/ids/{one}/subjects")).json() == ["orders"]
        assert [each["subject"] for each in (await client.get(f"/schemas/ids/{one}/versions")).json()] == [
            "orders"
        ]
        assert (await client.get(f"/schemas/ids/{two}")).status_code == 403
        assert (await client.get(f"/schemas/ids/{one}?subject=copies")).json()["schema"]
        assert (await client.get("/subjects")).json() == ["orders"]
        assert [each["subject"] for each in (await client.get("/schemas")).json()] == ["orders"]
        assert (await client.get(f"/schemas/ids/{two}", **root)).status_code == 200
        assert sorted((await client.get("/subjects", **root)).json()) == ["copies", "orders", "secret"]


async def test_a_reference_has_to_be_readable(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        await put(client, "secret", OTHER)
        await grant(broker, "WRITE", "orders")
        await grant(broker, "READ", "orders")
        text = json.dumps({"type": "record", "name": "T", "fields": [{"name": "s", "type": "S"}]})
        body = {"schema": text, "references": [{"name": "S", "subject": "secret", "version": 1}]}
        words = "User:alice may not READ topic subject/secret"
        for path in (
            "/subjects/orders/versions",
            "/subjects/orders",
            "/compatibility/subjects/orders/versions",
        ):
            refused(await client.post(path, json=body), words)
        await grant(broker, "READ", "secret")
        assert (await client.post("/subjects/orders/versions", json=body)).status_code == 200


async def test_an_alias_is_no_way_around(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        await put(client, "secret", OTHER)
        await grant(broker, "ALTER_CONFIGS", "mine")
        await grant(broker, "READ", "mine")
        assert (await client.put("/config/mine", json={"alias": "secret"})).status_code == 200
        refused(await client.get("/subjects/mine/versions/1"), "User:alice may not READ topic subject/secret")


async def test_an_alias_that_comes_while_the_body_does(tmp_path: Path) -> None:
    """What counts is the subject that the schema goes to, not the one that the path named when the request began."""
    async with secured(tmp_path) as (broker, client):
        await put(client, "secret")
        for right in ("ALTER_CONFIGS", "WRITE", "READ"):
            await grant(broker, right, "mine")
        await grant(broker, "READ", "other")
        text = json.dumps({"schema": RECORD.replace("}]", ', "default": 1}]')}).encode()

        async def slowly() -> AsyncIterator[bytes]:
            yield text[:9]
            changed = await client.put("/config/mine", json={"alias": "secret"})
            assert changed.status_code == 200
            yield text[9:]

        for path, right in (
            ("/subjects/mine/versions", "WRITE"),
            ("/subjects/mine", "READ"),
            ("/compatibility/subjects/mine/versions", "READ"),
        ):
            await client.delete("/config/mine")
            refused(
                await client.post(path, content=slowly()), f"User:alice may not {right} topic subject/secret"
            )
        found = await client.get("/subjects/secret/versions", auth=("root", "root"))
        assert found.json() == [1]


@pytest.mark.parametrize(
    ("context", "on", "what"),
    [("", "", "the cluster"), (":.ctx:", ":.ctx:", "topic subject/:.ctx:")],
)
async def test_an_id_of_ones_own_choice(tmp_path: Path, context: str, on: str, what: str) -> None:
    """The highest one that there is would be the end of all registrations in the context."""
    async with secured(tmp_path) as (broker, client):
        subject = f"{context}mine"
        for right in ("ALTER_CONFIGS", "WRITE"):
            await grant(broker, right, subject)
        assert (await client.put(f"/mode/{subject}", json={"mode": "IMPORT"})).status_code == 200
        path, last = f"/subjects/{subject}/versions", 2**31 - 1
        for id in (last, 7, 0, "7", True):
            refused(
                await client.post(path, json={"schema": RECORD, "id": id}),
                f"User:alice may not ALTER_CONFIGS {what}",
            )
        assert await put(client, f"{context}others") == 1
        await grant(broker, "ALTER_CONFIGS", on)
        assert (await client.post(path, json={"schema": OTHER, "id": 7})).json()["id"] == 7
        assert (await client.put(f"/mode/{subject}", json={"mode": "READWRITE"})).status_code == 200
        await revoke(broker)
        await grant(broker, "WRITE", subject)
        for more in ({}, {"id": None}, {"id": -1}):
            assert (await client.post(path, json={"schema": OTHER, **more})).json()["id"] == 7


async def test_who_may_only_write_is_not_shown_what_is_there(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        await put(client, "orders")
        await grant(broker, "WRITE", "orders")
        path = "/subjects/orders/versions"
        answer = await client.post(path, json={"schema": RECORD.replace('"a"', '"b"')})
        assert answer.status_code == 409
        assert answer.json()["message"].endswith("details: [to see them takes READ on topic subject/orders]")
        for body in (
            {"metadata": {"properties": {"a": "b"}}},
            {"schema": " ", "metadata": {}},
            {"schema": None},
        ):
            refused(await client.post(path, json=body), "User:alice may not READ topic subject/orders")
        await grant(broker, "READ", "orders")
        answer = await client.post(path, json={"schema": RECORD.replace('"a"', '"b"')})
        assert answer.status_code == 409 and "oldSchema:" in answer.json()["message"]
        answer = await client.post(path, json={"metadata": {"properties": {"a": "b"}}})
        assert answer.json()["schema"] == RECORD.replace(" ", "")


async def test_a_guid_in_several_contexts(tmp_path: Path) -> None:
    """One that may be read is answered, whichever comes first."""
    async with secured(tmp_path) as (broker, client):
        root = ("root", "root")
        guid = (await client.post("/subjects/a/versions", json={"schema": RECORD}, auth=root)).json()["guid"]
        await put(client, ":.ctx:b")
        words = "User:alice may not READ a topic subject/... that has this schema"
        refused(await client.get(f"/schemas/guids/{guid}"), words)
        await grant(broker, "READ", ":.ctx:b")
        assert (await client.get(f"/schemas/guids/{guid}")).json()["schema"] == RECORD.replace(" ", "")
        assert (
            await client.get(f"/schemas/guids/{guid[:-1]}{(int(guid[-1], 16) + 1) % 16:x}")
        ).status_code == 404


async def test_contexts_in_paths_are_part_of_the_name(tmp_path: Path) -> None:
    async with secured(tmp_path) as (broker, client):
        path, body = "/contexts/ctx/subjects/orders/versions", {"schema": RECORD}
        refused(await client.post(path, json=body), "User:alice may not WRITE topic subject/:.ctx:orders")
        await grant(broker, "WRITE", ":.ctx:orders")
        assert (await client.post(path, json=body)).status_code == 200
        assert (await client.get("/contexts/ctx/config")).status_code == 403


async def test_confluents_client(tmp_path: Path) -> None:
    registry = pytest.importorskip("confluent_kafka.schema_registry")
    async with secured(tmp_path) as (broker, client):
        await grant(broker, "WRITE", "orders-value")
        await grant(broker, "READ", "orders-value")

        def use() -> tuple[int, str, int]:
            url = str(client.base_url)
            theirs = registry.SchemaRegistryClient({"url": url, "basic.auth.user.info": "alice:tea"})
            id = theirs.register_schema("orders-value", registry.Schema(RECORD, "AVRO"))
            text = theirs.get_schema(id).schema_str
            try:
                theirs.register_schema("payments-value", registry.Schema(RECORD, "AVRO"))
            except registry.SchemaRegistryError as error:
                return id, text, error.error_code
            return id, text, 0

        _, text, code = await trio.to_thread.run_sync(use)
        assert json.loads(text)["name"] == "R"
        assert code == 40301
