"""The proxy with `lc.http.proxy.auth`: who comes in, what the others are told, and where the principal is then."""

from __future__ import annotations

import base64
import contextlib
import datetime
import logging
import shutil
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest
import trio
import trustme
from trio_websocket import HandshakeError, open_websocket_url

from leafcuttr_http import passwords
from leafcuttr_sdk import Principal, act_for, current_principal
from support.http_proxy import running
from support.waiting import within

TOPIC = "/topics/t"
RECORDS = {"records": [{"value": "v"}]}


@pytest.fixture(scope="session")
def hashes() -> Mapping[str, passwords.Hash]:
    return {name: passwords.Hash.of(f"{name}'s: secret") for name in ("alice", "böb")}


@pytest.fixture
def file(tmp_path: Path, hashes: Mapping[str, passwords.Hash]) -> Path:
    path = tmp_path / "passwords"
    passwords.write_passwords(path, hashes)
    return path


def basic(file: Path, **more: Any) -> dict[str, str | int]:
    return {"auth": "basic", "passwords.file": str(file), **more}


ALICE = httpx.BasicAuth("alice", "alice's: secret")


@pytest.mark.setting("lc.http.proxy.auth", "lc.http.proxy.passwords.file")
async def test_the_right_password_and_no_other(tmp_path: Path, file: Path) -> None:
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client() as client:
        answer = await client.post(TOPIC, json=RECORDS, auth=ALICE)
        assert answer.status_code == 200, answer.text
        assert (await client.get("/topics", auth=("böb", "böb's: secret"))).json() == ["t"]
        tried: list[Any] = [
            {},
            {"auth": ("alice", "wrong")},
            {"auth": ("alice", "")},
            {"auth": ("carol", "alice's: secret")},
            {"auth": ("", "")},
            *(
                {"headers": {"authorization": value}}
                for value in (
                    "",
                    "Basic",
                    "Basic !!",
                    "Basic YWxpY2U=",
                    "Bearer x",
                    "Digest a=b",
                    "Basic /////w==",
                )
            ),
        ]
        for options in tried:
            for method, path in (
                ("POST", TOPIC),
                ("GET", "/topics"),
                ("GET", "/nowhere"),
                ("GET", f"{TOPIC}/stream"),
            ):
                answer = await client.request(method, path, **options)
                assert answer.status_code == 401, (options, answer.text)
                assert answer.headers["www-authenticate"] == 'Basic realm="leafcuttr", charset="UTF-8"'
                assert answer.json()["error_code"] == 401
        assert len(await proxy.records("t")) == 1


async def test_curl_and_two_ways_at_once(tmp_path: Path, file: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    async with running(tmp_path / "data", basic(file, auth="none,basic")) as proxy:

        async def curl(*words: str) -> str:
            command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words, f"{proxy.url}/topics"]
            return (await trio.run_process(command, capture_stdout=True)).stdout.decode()

        assert await curl() == "200"
        assert await curl("-u", "alice:alice's: secret") == "200"
        assert await curl("-u", "alice:wrong") == "401"


async def test_streams_and_websockets(tmp_path: Path, file: Path) -> None:
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client(auth=ALICE) as client:
        await client.post(TOPIC, json=RECORDS)
        async with httpx_sse.aconnect_sse(client, "GET", f"{TOPIC}/stream?from=earliest") as source:
            async for event in source.aiter_sse():
                if event.data:
                    assert '"v"' in event.data
                    break
        url = f"ws://127.0.0.1:{proxy.port}{TOPIC}/stream"
        headers = [("authorization", ALICE._auth_header)]
        async with open_websocket_url(url, extra_headers=headers) as websocket:
            assert "heartbeat" in await websocket.get_message()
        with pytest.raises((HandshakeError, ExceptionGroup)):
            async with open_websocket_url(url):
                pass


async def test_pages_of_other_origins(tmp_path: Path, file: Path) -> None:
    settings = basic(file, **{"cors.allowed.origins": "https://a.example"})
    async with running(tmp_path / "data", settings) as proxy, proxy.client() as client:
        origin = {"origin": "https://a.example"}
        preflight = await client.options(TOPIC, headers={**origin, "access-control-request-method": "POST"})
        assert preflight.status_code == 204
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        refused = await client.get("/topics", headers=origin)
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (
            401,
            origin["origin"],
        )


async def test_the_file_is_read_again(
    tmp_path: Path, file: Path, hashes: Mapping[str, passwords.Hash], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leafcuttr_http.password_authenticator.LOOK_S", 0.0)
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client() as client:

        async def status(auth: Any) -> int:
            return (await client.get("/topics", auth=auth)).status_code

        assert await status(ALICE) == 200
        passwords.write_passwords(file, {"carol": hashes["alice"]})
        assert await status(ALICE) == 401, "what was remembered is forgotten"
        assert await status(("carol", "alice's: secret")) == 200
        file.write_text("carol:md5:123\n")
        assert await status(("carol", "alice's: secret")) == 200, "the last good one stays"
        file.unlink()
        assert await status(("carol", "alice's: secret")) == 200


async def test_a_request_does_not_cost_a_hash(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    real = passwords._scrypt

    def counting(*given: Any) -> bytes:
        nonlocal made
        made += 1
        return real(*given)

    monkeypatch.setattr(passwords, "_scrypt", counting)
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client(auth=ALICE) as client:
        for _ in range(20):
            assert (await client.get("/topics")).status_code == 200
        assert made == 1
        for _ in range(2):
            assert (await client.get("/topics", auth=("carol", "x"))).status_code == 401
        assert made == 3, "an unknown name takes as long as a known one"


async def test_the_log_names_the_principal(
    tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "leafcuttr.plugin.http")
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client() as client:
        await client.get("/topics", auth=ALICE)
        await client.get("/topics", auth=("alice", "wrong"))
        await client.get("/topics", auth=("alice", "wrong"))
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("GET /topics 200 ") and line.endswith(" User:alice") for line in lines)
    assert any(line.startswith("GET /topics 401 ") and line.endswith(" User:ANONYMOUS") for line in lines)
    assert (
        lines.count("the HTTP proxy refused a client at 127.0.0.1: the password of 'alice' is wrong") == 1
    ), "one line a minute"
    assert not any("secret" in line for line in lines)


_FILTER = """
from leafcuttr_sdk import Plugin, RecordFilterSpec, current_principal

PLUGIN = Plugin("stamp", 1, "a header with the principal")


class Stamp:
    def __init__(self, context):
        pass

    def filter(self, record):
        principal = current_principal()
        return record._replace(headers=(("by", str(principal).encode()),))


def leafcuttr_register_record_filters():
    yield RecordFilterSpec("stamp", "a header with the principal", Stamp)
"""


async def test_filters_see_the_principal_of_each_request(tmp_path: Path, file: Path) -> None:
    """Also of requests whose batches are staged together, by the task of one of them."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "stamp.py").write_text(_FILTER)
    broker = {"lc.plugins.path": str(tmp_path / "plugins"), "lc.filters.t": "stamp"}
    clients = {"alice": ALICE, "böb": httpx.BasicAuth("böb", "böb's: secret")}
    async with (
        running(tmp_path / "data", basic(file, auth="none,basic"), broker=broker) as proxy,
        proxy.client() as client,
    ):

        async def produce(name: str | None) -> None:
            body = {"records": [{"value": str(name)}]}
            answer = await client.post(TOPIC, json=body, auth=clients.get(name or ""))
            assert answer.status_code == 200, answer.text

        await produce("alice")
        async with trio.open_nursery() as nursery:
            for name in ("alice", "böb", None) * 10:
                nursery.start_soon(produce, name)
        found = await proxy.broker.fetch({_partition(): 0}, max_bytes=1 << 20)
        seen = {(record.value, dict(record.headers)["by"]) for record in found.records}
    assert seen == {
        (b'"alice"', b"User:alice"),
        ('"böb"'.encode(), "User:böb".encode()),
        (b'"None"', b"User:ANONYMOUS"),
    }


async def test_a_task_that_stages_for_others_stays_what_it_is(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        await proxy.broker.topics.ensure("t")

        async def produce_as(principal: Principal | None) -> None:
            act_for(principal)
            for _ in range(5):
                await proxy.broker.produce("t", b"x")
                assert current_principal() is principal

        async with trio.open_nursery() as nursery:
            for principal in (Principal("User", "a"), None, Principal("User", "b")):
                nursery.start_soon(produce_as, principal)


def _partition() -> Any:
    from leafcuttr_sdk import TopicPartition

    return TopicPartition("t", 0)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


async def test_certificates(tmp_path: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "leafcuttr.plugin.http")
    keys, trust = tmp_path / "keys.pem", tmp_path / "trust.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keys))
    authority.cert_pem.write_to_path(str(trust))
    settings = {
        "auth": "mtls",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.location": str(trust),
        "ssl.client.auth": "requested",
    }
    context = ssl.create_default_context(cafile=str(trust))
    async with running(tmp_path / "data", settings) as proxy:
        url = f"https://127.0.0.1:{proxy.port}/topics"
        async with httpx.AsyncClient(verify=context) as client:
            assert (await client.get(url)).status_code == 403
        context = ssl.create_default_context(cafile=str(trust))
        authority.issue_cert("sensor-7@example.com", common_name="sensor-7").configure_cert(context)
        for http2 in (False, True):
            async with httpx.AsyncClient(verify=context, http2=http2) as client:
                assert (await client.get(url)).status_code == 200
        if shutil.which("curl"):
            own = tmp_path / "own.pem"
            authority.issue_cert(common_name="sensor-8").private_key_and_cert_chain_pem.write_to_path(
                str(own)
            )
            command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", str(trust), url]
            for more, status in ((["--cert", str(own)], b"200"), ([], b"403")):
                done = await trio.run_process([*command, *more], capture_stdout=True)
                assert done.stdout == status
    lines = [record.getMessage() for record in caplog.records]
    for name in ("sensor-7", *(("sensor-8",) if shutil.which("curl") else ())):
        assert any("GET /topics 200" in line and f"User:CN={name}," in line for line in lines)


@pytest.mark.setting("lc.http.proxy.authenticators")
async def test_only_the_authenticators_that_are_named_are_asked(tmp_path: Path, file: Path) -> None:
    with pytest.raises(Exception) as raised:
        async with running(tmp_path / "data", basic(file, authenticators="of-nobody")):
            pass
    assert raised.group_contains(Exception, match="names 'of-nobody', which no plugin brings")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"auth": "basic", "authenticators": "http-passwords"},
            "lc.http.proxy.passwords.file is not set",
        ),
        ({"auth": "basic", "passwords.file": "/nowhere"}, "/nowhere cannot be read: No such file"),
        (
            {"auth": "bearer"},
            "lc.http.proxy.auth offers bearer, which none of lc.http.proxy.authenticators takes",
        ),
        (
            {"auth": "basic", "authenticators": "ldap"},
            "names 'ldap', which no plugin brings that is on; there is broker, http-",
        ),
        ({"auth": "mtls"}, "lc.http.proxy.auth offers mtls, but lc.http.proxy.ssl.client.auth is none"),
        ({"auth": "kerberos"}, "'kerberos' is none of none, basic, bearer, mtls"),
    ],
)
async def test_settings_that_cannot_work_stop_the_start_with_one_line(
    tmp_path: Path, settings: dict[str, str | int], said: str
) -> None:
    with pytest.raises(Exception) as raised:
        async with running(tmp_path / "data", settings):
            pass
    error: BaseException = raised.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert said in str(error)
    assert "\n" not in str(error)


def given(text: bytes) -> bytes:
    return b"Basic " + base64.b64encode(text)


async def test_headers_that_make_no_sense(
    tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is answered with 401, or with what its size deserves; the next request of the right client is served."""
    right = given(b"alice:alice's: secret")
    odd = [
        [b"Basic"],
        [b"Basic "],
        [b"basic\t" + right[6:]],
        [right + b" x"],
        [right.replace(b"Basic", b"Basic2")],
        [right[6:]],
        [given(b"alice")],
        [given(b":alice's: secret")],
        [given(b"alice:\xff\xfe")],
        [given(b"\xff:alice's: secret")],
        [given("alice:alice's: secret".encode("utf-16"))],
        [given(b"alice:" + b"x" * 10_000)],
        [given(b"alice\0:alice's: secret")],
        [given(b"ALICE:alice's: secret")],
        [given(b"alice :alice's: secret")],
        [given(b"alice:alice's: secret\n")],
        [given(b"a\r\nINFO forged line:x")],
        [b"Basic " + b"\xff" * 20],
        [b"Basic " + b"A" * 200_000],
        [b"Bearer " + right[6:]],
        [right, right],
        [b"Bearer x", right],
        [right, b"Basic x"],
    ]
    async with running(tmp_path / "data", basic(file)) as proxy:
        for headers in odd:
            stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            async with stream:
                fields = b"".join(b"Authorization: " + each + b"\r\n" for each in headers)
                answer = b""
                with contextlib.suppress(trio.BrokenResourceError), trio.fail_after(60):
                    await stream.send_all(
                        b"GET /topics HTTP/1.1\r\nHost: x\r\n" + fields + b"Connection: close\r\n\r\n"
                    )
                    while data := await stream.receive_some(65536):
                        answer += data
                status = answer.split(b" ")[1:2]
                assert status in ([b"401"], [b"431"] if len(fields) > 100_000 else [b"401"]), (
                    headers,
                    answer,
                )
        async with proxy.client() as client:
            assert (await client.get("/topics", headers={"authorization": right.decode()})).status_code == 200
    lines = [record.getMessage() for record in caplog.records if "refused a client" in record.getMessage()]
    assert len(lines) == 1, "names that clients try make no lines"
    assert all("\n" not in record.getMessage() for record in caplog.records)


@pytest.mark.long
async def test_one_that_waits_for_ever_is_bounded_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "slow.py").write_text(_SLOW)
    settings = basic(file, auth="basic,bearer", authenticators="slow,http-passwords")
    broker = {"lc.plugins.path": str(tmp_path / "plugins")}
    async with running(tmp_path / "data", settings, broker=broker) as proxy, proxy.client() as client:
        slow = {"authorization": "Bearer x"}

        async def wait() -> None:
            async with proxy.client() as waiting:
                await waiting.get("/topics", headers=slow)

        monkeypatch.setattr("leafcuttr.plugins.authentication.AUTHENTICATION_S", 1000.0)
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(wait)
            with within(60, "twenty that wait"):
                while await proxy.counted("leafcuttr_http_connections") < 20:
                    pass
            assert (await client.get("/topics", auth=ALICE)).status_code == 200
            nursery.cancel_scope.cancel()
        for _ in range(3):
            monkeypatch.setattr("leafcuttr.plugins.authentication.AUTHENTICATION_S", 0.01)
            assert (await client.get("/topics", headers=slow)).status_code == 401
            monkeypatch.setattr("leafcuttr.plugins.authentication.AUTHENTICATION_S", 1000.0)
            assert (await client.get("/topics", auth=ALICE)).status_code == 200
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "authenticator slow failed: it has taken longer than" in line]) == 1


_SLOW = """
from leafcuttr_sdk import AuthenticatorSpec, Broker, Plugin

PLUGIN = Plugin("slow", 1, "waits for ever")


class Slow:
    async def authenticate(self, credentials):
        import trio

        await trio.sleep_forever()


def leafcuttr_register_authenticators(broker: Broker):
    yield AuthenticatorSpec("slow", "waits for ever", Slow, ("bearer",))
"""


async def test_the_file_is_garbled_removed_and_put_right(
    tmp_path: Path,
    file: Path,
    hashes: Mapping[str, passwords.Hash],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("leafcuttr_http.password_authenticator.LOOK_S", 0.0)
    good = file.read_bytes()
    async with running(tmp_path / "data", basic(file)) as proxy, proxy.client() as client:

        async def status(auth: Any) -> int:
            return (await client.get("/topics", auth=auth)).status_code

        def remove() -> None:
            file.unlink()

        def folder() -> None:
            file.mkdir()

        def put_right() -> None:
            file.rmdir()
            file.write_bytes(good.replace(b"alice", b"carol").replace(b"\n", b"\r\n"))

        for damage in (
            lambda: file.write_bytes(good[: len(good) // 3]),
            lambda: file.write_bytes(b"\xff\xfe\0"),
            lambda: file.write_bytes(b"\0" * 100_000),
            remove,
            folder,
        ):
            damage()
            assert await status(ALICE) == 200
            assert await status(("alice", "wrong")) == 401
        put_right()
        assert await status(ALICE) == 401
        assert await status(("carol", "alice's: secret")) == 200
        file.write_bytes(b"")
        assert await status(("carol", "alice's: secret")) == 401, "an empty file has no names"
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "the passwords that were read before stay in use" in line]) == 1
    assert not [record for record in caplog.records if record.exc_info]


async def test_certificates_that_are_not_valid(
    tmp_path: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    keys, trust = tmp_path / "keys.pem", tmp_path / "trust.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keys))
    authority.cert_pem.write_to_path(str(trust))
    now = datetime.datetime.now(datetime.UTC)
    past = now - datetime.timedelta(days=1)
    wrong = {
        "of another authority": trustme.CA().issue_cert("sensor-7@example.com", common_name="sensor-7"),
        "expired": authority.issue_cert("sensor-7@example.com", common_name="sensor-7", not_after=past),
    }
    right = authority.issue_cert("sensor-7@example.com", common_name="sensor-7")
    for how in ("requested", "required"):
        settings = {
            "auth": "mtls",
            "ssl.keystore.location": str(keys),
            "ssl.truststore.location": str(trust),
            "ssl.client.auth": how,
        }
        async with running(tmp_path / how, settings) as proxy:
            url = f"https://127.0.0.1:{proxy.port}/topics"

            async def status(certificate: trustme.LeafCert, url: str = url) -> int:
                context = ssl.create_default_context(cafile=str(trust))
                certificate.configure_cert(context)
                async with httpx.AsyncClient(verify=context, timeout=60) as client:
                    return (await client.get(url)).status_code

            for certificate in wrong.values():
                with pytest.raises(httpx.TransportError):
                    await status(certificate)
                assert await status(right) == 200
    assert not [record for record in caplog.records if record.exc_info]
