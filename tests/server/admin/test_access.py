"""`lc.metrics.auth`, and who may read metrics where there is an authorizer."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from leafcuttr.config.checks import metrics_auth
from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialUpsertion
from support.token_issuer import Issuer

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SHA256 = ScramMechanism.SCRAM_SHA_256
PATHS = ("/metrics", "/", "/nowhere", "/metrics/", "/health%2Flive", "/health/nowhere", "//health")
HEALTH = ("/health", "/health/live", "/health/ready", "/health/")


@asynccontextmanager
async def running(tmp_path: Path, **settings: str) -> AsyncIterator[tuple[EmbeddedBroker, httpx.AsyncClient]]:
    given: dict[str, Any] = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        **settings,
    }
    async with open_broker(given) as broker:
        credential = new_credential(SHA256, b"tea", 4096)
        await broker._core.users.alter([CredentialUpsertion("alice", SHA256, credential)], [])
        async with httpx.AsyncClient(base_url=f"http://{broker.metrics_address}", timeout=60) as client:
            yield broker, client


async def grant(broker: EmbeddedBroker, operation: str, principal: str) -> None:
    authorizer = broker._core.authorizer
    assert authorizer is not None and authorizer.acls is not None
    kind, name = AclResourceType.CLUSTER, "kafka-cluster"
    what = AclOperation[operation], AclPermission.ALLOW
    await authorizer.acls.create([Acl(kind, name, PatternType.LITERAL, principal, "*", *what)])


@pytest.mark.setting("lc.metrics.auth")
async def test_names_and_passwords(tmp_path: Path) -> None:
    async with running(tmp_path, **{"lc.metrics.auth": "basic"}) as (_, client):
        for path in PATHS:
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == 'Basic realm="leafcuttr", charset="UTF-8"'
        for path in HEALTH:
            assert (await client.get(path)).status_code == 200
        assert "leafcuttr" in (await client.get("/metrics", auth=("alice", "tea"))).text
        assert (await client.get("/nowhere", auth=("alice", "tea"))).status_code == 404
        right = b"Basic " + base64.b64encode(b"alice:tea")
        for headers in (
            [(b"authorization", b"Basic " + base64.b64encode(b"alice:coffee"))],
            [(b"authorization", b"Basic " + base64.b64encode(b"bob:tea"))],
            [(b"authorization", b"Basic !!")],
            [(b"authorization", b"Bearer a.b.c")],
            [(b"authorization", right), (b"authorization", right)],
        ):
            assert (await client.get("/metrics", headers=headers)).status_code == 401


async def test_tokens(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.add("ES256", "one")
    url = issuer.write(tmp_path / "keys")
    settings = {"lc.metrics.auth": "bearer,none", "sasl.oauthbearer.jwks.endpoint.url": url}
    async with running(tmp_path, **settings) as (_, client):
        token = {"authorization": f"Bearer {issuer.token('one')}"}
        assert (await client.get("/metrics", headers=token)).status_code == 200
        assert (await client.get("/metrics")).status_code == 200, "none is offered too"
        wrong = await client.get(
            "/metrics", headers={"authorization": f"Bearer {issuer.token('one', exp=1)}"}
        )
        assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, 'Bearer realm="leafcuttr"')


async def test_metrics_need_a_right_where_there_is_an_authorizer(tmp_path: Path) -> None:
    settings = {"authorizer.class.name": STANDARD, "lc.metrics.auth": "none,basic"}
    async with running(tmp_path, **settings) as (broker, client):
        for auth, name in ((None, "ANONYMOUS"), (("alice", "tea"), "alice")):
            answer = await client.get("/metrics", auth=auth)
            assert (answer.status_code, answer.json()) == (
                403,
                {"error": "denied", "message": f"User:{name} may not DESCRIBE the cluster"},
            )
        for path in HEALTH:
            assert (await client.get(path)).status_code == 200
        await grant(broker, "DESCRIBE", "User:alice")
        assert (await client.get("/metrics", auth=("alice", "tea"))).status_code == 200
        assert (await client.get("/metrics")).status_code == 403
        changing = await client.delete("/metrics", auth=("alice", "tea"))
        assert changing.json()["message"] == "User:alice may not ALTER the cluster"
        await grant(broker, "ALTER", "User:alice")
        assert (await client.delete("/metrics", auth=("alice", "tea"))).status_code == 405
        await grant(broker, "DESCRIBE", "User:ANONYMOUS")
        assert (await client.get("/metrics")).status_code == 200


async def test_without_both_nothing_is_looked_up(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, client):
        assert (await client.get("/metrics", headers={"authorization": "Basic !!"})).status_code == 200
        assert broker._core.plugged.log_ins is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (("basic", "kerberos"), "'kerberos' is none of none, basic, bearer, mtls"),
        ((), "at least one of"),
    ],
)
def test_what_cannot_be(value: tuple[str, ...], words: str) -> None:
    assert words in str(metrics_auth(value))
    assert metrics_auth(("basic", "mtls", "none")) is None
