"""Every setting of the registry, seen to act: where it listens, TLS, who may ask, limits, and what it answers."""

from __future__ import annotations

import json
import logging
import ssl
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trustme
from cryptography.hazmat.primitives import serialization

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr_http import passwords
from leafcuttr_registry.registry import Registry
from leafcuttr_sdk.errors import StorageError
from support.accepting import taken
from support.waiting import eventually, free_port

PREFIX = "lc.schema.registry"
USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
BAD = '{"type":"record","name":"User","fields":[{"name":"mail","type":"string"}]}'
GET = b"GET /subjects HTTP/1.1\r\nHost: x\r\n\r\n"


class Running:
    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker
        self.address = broker.listeners[PREFIX]

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        async with httpx.AsyncClient(timeout=60) as client:
            url = f"http://{self.address}{path}"
            return await client.request(method, url, json=body, **more)

    async def connect(self) -> trio.SocketStream:
        host, _, port = self.address.rpartition(":")
        return await trio.open_tcp_stream(host, int(port))


@asynccontextmanager
async def running(
    folder: Path, settings: Mapping[str, str | int] | None = None, **broker: str | int | bool
) -> AsyncIterator[Running]:
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(folder),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        f"{PREFIX}.enable": True,
        f"{PREFIX}.port": 0,
        **{f"{PREFIX}.{name}": value for name, value in (settings or {}).items()},
        **broker,
    }
    stop = trio.Event()

    async def serve(*, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        async with open_broker(given) as opened:
            task_status.started(opened)
            await stop.wait()

    async with trio.open_nursery() as nursery:
        yield Running(await nursery.start(serve))
        stop.set()


async def ended(stream: trio.SocketStream) -> bytes:
    """All that comes until the connection ends."""
    found = b""
    with trio.fail_after(60):
        while data := await stream.receive_some():
            found += data
    return found


@pytest.mark.setting("lc.schema.registry.enable", "lc.schema.registry.host", "lc.schema.registry.port")
async def test_where_it_listens(tmp_path: Path) -> None:
    port = free_port()
    async with running(tmp_path / "data", {"host": "127.0.0.3", "port": port}) as registry:
        assert registry.address == f"127.0.0.3:{port}"
        assert (await registry.ask("GET", "/subjects")).json() == []


async def test_where_it_is_off_there_is_nothing(tmp_path: Path) -> None:
    off = {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0", "lc.metrics.port": 0}
    async with open_broker(off) as broker:
        assert list(broker.listeners) == ["PLAINTEXT"]
        assert broker.topics.names(internal=True) == []


@pytest.mark.setting("lc.schema.registry.unix.path", "lc.schema.registry.unix.mode")
async def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "registry.sock"
    async with running(tmp_path / "data", {"unix.path": str(path), "unix.mode": "0600"}):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as client:
            assert (await client.get("http://local/subjects")).json() == []


@pytest.mark.setting(
    "lc.schema.registry.ssl.keystore.location",
    "lc.schema.registry.ssl.key.password",
    "lc.schema.registry.ssl.truststore.location",
    "lc.schema.registry.ssl.client.auth",
)
async def test_clients_that_show_a_certificate(tmp_path: Path) -> None:
    authority, of_clients = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"correct horse")
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    (tmp_path / "server.pem").write_bytes(
        encrypted + b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
    )
    of_clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    settings = {
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.key.password": "correct horse",
        "ssl.truststore.location": str(tmp_path / "clients.pem"),
        "ssl.client.auth": "required",
    }
    known, unknown = ssl.create_default_context(), ssl.create_default_context()
    for context in (known, unknown):
        authority.configure_trust(context)
    of_clients.issue_cert("device@example.org").configure_cert(known)
    with taken():
        async with running(tmp_path / "data", settings) as registry:
            url = f"https://{registry.address}/subjects"
            async with httpx.AsyncClient(verify=known, timeout=30) as client:
                assert (await client.get(url)).json() == []
            async with httpx.AsyncClient(verify=unknown, timeout=30) as client:
                with pytest.raises(httpx.TransportError):
                    await client.get(url)


@pytest.mark.setting("lc.schema.registry.handshake.timeout.ms")
async def test_a_half_open_handshake(tmp_path: Path) -> None:
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    settings = {"ssl.keystore.location": str(tmp_path / "server.pem"), "handshake.timeout.ms": 50}
    async with running(tmp_path / "data", settings) as registry, await registry.connect() as stream:
        await stream.send_all(b"\x16\x03\x01\x02\x00\x01\x00")
        assert await ended(stream) == b""


@pytest.mark.setting("lc.schema.registry.auth", "lc.schema.registry.authenticators")
async def test_who_may_ask(tmp_path: Path) -> None:
    users = tmp_path / "users"
    passwords.write_passwords(users, {"ada": passwords.Hash.of("secret")})
    settings = {"auth": "basic", "authenticators": "http-passwords"}
    http = {
        "lc.http.proxy.enable": True,
        "lc.http.proxy.port": 0,
        "lc.http.proxy.passwords.file": str(users),
    }
    async with running(tmp_path / "data", settings, **http) as registry:
        refused = await registry.ask("GET", "/subjects")
        assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
        assert (await registry.ask("GET", "/schemas/ids/1")).status_code == 401
        assert (await registry.ask("GET", "/subjects", auth=("ada", "secret"))).json() == []
        assert (await registry.ask("GET", "/subjects", auth=("ada", "wrong"))).status_code == 401


_TOKENS = """
from leafcuttr_sdk import Authenticated, AuthenticatorSpec, Broker, Plugin, Principal

PLUGIN = Plugin("tokens", 1, "takes one token")


class Tokens:
    async def authenticate(self, credentials):
        return Authenticated(Principal("User", "ada")) if credentials.token == "good" else None


def leafcuttr_register_authenticators(broker: Broker):
    yield AuthenticatorSpec("tokens", "takes one token", Tokens, ("bearer",))
"""


async def test_tokens(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "tokens.py").write_text(_TOKENS)
    settings = {"auth": "bearer", "authenticators": "tokens"}
    async with running(
        tmp_path / "data", settings, **{"lc.plugins.path": str(tmp_path / "plugins")}
    ) as registry:
        for path in ("/subjects", "/schemas/ids/1", "/nowhere"):
            refused = await registry.ask("GET", path, headers={"authorization": "Bearer bad"})
            assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
            assert refused.headers["www-authenticate"].startswith("Bearer")
        allowed = {"authorization": "Bearer good"}
        assert (await registry.ask("GET", "/subjects", headers=allowed)).json() == []
        made = await registry.ask("POST", "/subjects/a/versions", {"schema": USER}, headers=allowed)
        assert made.status_code == 200, made.text
        assert (await registry.ask("POST", "/subjects/a/versions", {"schema": USER})).status_code == 401


async def test_certificates_say_who_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "leafcuttr.plugin.registry")
    authority = trustme.CA()
    keys, trust = tmp_path / "keys.pem", tmp_path / "trust.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keys))
    authority.cert_pem.write_to_path(str(trust))
    settings = {
        "auth": "mtls",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.location": str(trust),
        "ssl.client.auth": "requested",
    }
    nobody = ssl.create_default_context(cafile=str(trust))
    sensor = ssl.create_default_context(cafile=str(trust))
    authority.issue_cert("sensor-7@example.com", common_name="sensor-7").configure_cert(sensor)
    async with running(tmp_path / "data", settings) as registry:
        url = f"https://{registry.address}/subjects"
        async with httpx.AsyncClient(verify=nobody, timeout=60) as client:
            assert (await client.get(url)).status_code == 403
        async with httpx.AsyncClient(verify=sensor, timeout=60) as client:
            assert (await client.get(url)).json() == []
    lines = [record.getMessage() for record in caplog.records]
    assert any("GET /subjects 200" in line and "User:CN=sensor-7," in line for line in lines)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"auth": "bearer"}, "offers bearer, which none of"),
        ({"auth": "basic", "authenticators": "ldap"}, "names 'ldap', which no plugin brings that is on"),
        ({"auth": "mtls"}, f"offers mtls, but {PREFIX}.ssl.client.auth is none"),
    ],
)
async def test_authentication_that_cannot_work_stops_the_start_with_one_line(
    tmp_path: Path, settings: dict[str, str | int], said: str
) -> None:
    with pytest.raises(Exception) as raised:
        async with running(tmp_path / "data", settings):
            pass
    error: BaseException = raised.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert said in str(error) and f"{PREFIX}.auth" in str(error)
    assert "\n" not in str(error)


@pytest.mark.setting("lc.schema.registry.max.request.bytes", "lc.schema.registry.max.buffered.bytes")
async def test_bodies_that_are_too_large(tmp_path: Path) -> None:
    body = {"schema": "x" * 2000}
    async with running(tmp_path / "one", {"max.request.bytes": 1024}) as registry:
        answer = await registry.ask("POST", "/subjects/a/versions", body)
        assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
        assert f"{PREFIX}.max.request.bytes" in answer.json()["message"]
    async with running(tmp_path / "two", {"max.buffered.bytes": 1024}) as registry:
        assert (await registry.ask("POST", "/subjects/a/versions", body)).status_code == 503


@pytest.mark.setting("lc.schema.registry.request.timeout.ms")
async def test_a_body_that_does_not_come(tmp_path: Path) -> None:
    settings = {"request.timeout.ms": 50}
    async with running(tmp_path / "data", settings) as registry, await registry.connect() as stream:
        await stream.send_all(b"POST /subjects/a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert (await ended(stream)).startswith(b"HTTP/1.1 408 ")


@pytest.mark.setting("lc.schema.registry.idle.timeout.ms")
async def test_who_is_idle_is_disconnected(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "data", {"idle.timeout.ms": 400}) as registry,
        await registry.connect() as stream,
    ):
        await stream.send_all(GET)
        assert (await ended(stream)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.setting("lc.schema.registry.max.connections")
async def test_how_many_may_connect(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "data", {"max.connections": 1}) as registry,
        await registry.connect() as first,
    ):
        await first.send_all(GET)
        assert (await first.receive_some()).startswith(b"HTTP/1.1 200 ")
        async with await registry.connect() as second:
            assert (await ended(second)).startswith(b"HTTP/1.1 503 ")


@pytest.mark.long
@pytest.mark.setting("lc.schema.registry.send.timeout.ms")
async def test_who_takes_nothing_is_disconnected(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"send.timeout.ms": 50}) as registry:
        text = json.dumps(
            {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(60_000)]}
        )
        assert (await registry.ask("POST", "/subjects/a/versions", {"schema": text})).status_code == 200
        async with await registry.connect() as stream:
            with trio.fail_after(60), pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
                while True:
                    await stream.send_all(b"GET /schemas/ids/1 HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
                    await trio.sleep(0.01)


@pytest.mark.setting("lc.schema.registry.cors.allowed.origins")
async def test_pages_of_other_origins(tmp_path: Path) -> None:
    page = "https://pages.example.com"
    async with running(tmp_path / "data", {"cors.allowed.origins": page}) as registry:
        answer = await registry.ask("GET", "/subjects", headers={"origin": page})
        assert answer.headers["access-control-allow-origin"] == page


@pytest.mark.setting("unstable.api.versions.enable")
async def test_restarts(tmp_path: Path) -> None:
    async with running(tmp_path / "data", **{"unstable.api.versions.enable": True}) as registry:
        await registry.ask("POST", "/subjects/a/versions", {"schema": USER})
        assert (await registry.ask("POST", "/restart")).json() == {"success": True}
        assert (await registry.ask("GET", "/subjects")).json() == ["a"]


@pytest.mark.setting("lc.schema.registry.answers")
async def test_answers_as_confluents_registry_gives_them(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"answers": "confluent"}) as registry:
        first = await registry.ask("POST", "/subjects/a/versions", {"schema": USER})
        assert first.json()["schemaType"] == "AVRO" and first.json()["version"] == 1
        refused = await registry.ask("POST", "/subjects/a/versions", {"schema": BAD})
        assert (refused.status_code, refused.json()["error_code"]) == (409, 40901)
        assert (await registry.ask("GET", "/config/a")).json()["error_code"] == 40408
        found = await registry.ask("POST", "/subjects/a", {"schema": USER})
        assert found.json()["schemaType"] == "AVRO" and found.json()["ts"] > 0
        path = "/compatibility/subjects/none/versions"
        assert (await registry.ask("POST", f"{path}/latest", {"schema": USER})).json() == {
            "is_compatible": True
        }
        assert (await registry.ask("POST", f"{path}/1", {"schema": USER})).json()["error_code"] == 40402
        assert (await registry.ask("POST", "/subjects/a/versions", {})).json()["version"] == 1
        assert (await registry.ask("POST", "/subjects/b/versions", {})).json()["error_code"] == 42201


@pytest.mark.long
@pytest.mark.setting("lc.schema.registry.answers")
async def test_where_confluents_registry_says_less_or_otherwise(tmp_path: Path) -> None:
    proto = 'syntax = "proto3";\n\nmessage User {\n  string name = 1;\n}\n'
    for answers, has_id in (("confluent", False), ("default", True)):
        async with running(tmp_path / answers, {"answers": answers}) as registry:
            body = {"schema": proto, "schemaType": "PROTOBUF"}

            async def schema(*request: Any, registry: Any = registry) -> str | None:
                """None where a machine under load lets the time pass that a schema may take to be read."""
                answer = (await registry.ask(*request)).json()
                return None if "it took longer than" in answer.get("message", "") else answer["schema"]

            add = partial(schema, "POST", "/subjects/a/versions", body)
            text = await eventually(add, "the text")
            found = (await registry.ask("GET", "/schemas/ids/1?subject=a")).json()
            assert (found["subject"], found["version"], "id" in found) == ("a", 1, has_id)
            serialized = partial(schema, "GET", "/schemas/ids/1?format=serialized")
            body["schema"] = descriptor = await eventually(serialized, "the descriptor")
            given = await eventually(add, "what is given back")
            assert given == (descriptor if has_id else text)


@pytest.mark.setting("unstable.api.versions.enable")
async def test_a_restart_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was known is known still."""

    async def fails(_: Registry) -> None:
        raise StorageError("the disk is full")

    async with running(tmp_path / "data", **{"unstable.api.versions.enable": True}) as registry:
        await registry.ask("POST", "/subjects/a/versions", {"schema": USER})
        monkeypatch.setattr(Registry, "open", fails)
        refused = await registry.ask("POST", "/restart")
        assert refused.status_code == 500
        assert refused.json() == {"error_code": 50001, "message": "The restart failed: the disk is full"}
        assert (await registry.ask("GET", "/subjects")).json() == ["a"]


@pytest.mark.setting("lc.schema.registry.answers")
async def test_answers_as_the_manual_shows_them(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"answers": "manual"}) as registry:
        first = await registry.ask("POST", "/subjects/a/versions", {"schema": USER})
        assert first.json() == {"id": 1}
        assert (await registry.ask("GET", "/schemas/ids/1")).json() == {"schema": USER}
        version = {"subject": "a", "version": 1, "id": 1, "schema": USER}
        assert (await registry.ask("GET", "/subjects/a/versions/1")).json() == version
        assert (await registry.ask("POST", "/subjects/a", {"schema": USER})).json() == {
            **version,
            "schemaType": None,
        }
        refused = await registry.ask("POST", "/subjects/a/versions", {"schema": BAD})
        assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
        assert (await registry.ask("GET", "/config/a")).json()["error_code"] == 40401
