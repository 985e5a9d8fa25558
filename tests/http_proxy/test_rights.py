"""The proxy for the broker's users: their rights and quotas over HTTP, and what ends with a log-in or a right."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest
import trio
import trustme
from trio_websocket import ConnectionClosed, open_websocket_url

from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.security.users import CredentialDeletion
from leafcuttr_sdk import Principal
from support.http_proxy import Running, running
from support.http_users import ALICE, BOB, SHA256, STANDARD, grant, refused, revoke, user
from support.token_issuer import Issuer
from support.waiting import within

RECORDS = {"records": [{"value": "v"}]}
V2 = {"content-type": "application/vnd.kafka.v2+json"}


@asynccontextmanager
async def secured(tmp_path: Path, auth: str = "basic", **broker: str | int) -> AsyncIterator[Running]:
    given: dict[str, str | int] = {"authorizer.class.name": STANDARD, **broker}
    async with running(tmp_path / "data", {"auth": auth}, broker=given) as proxy:
        await user(proxy, *ALICE)
        await user(proxy, *BOB)
        await proxy.broker.topics.create("t", partitions=1)
        yield proxy


async def test_users_of_the_broker_and_what_they_lack(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client(auth=ALICE) as client:
        assert (await client.get("/topics", auth=("alice", "wrong"))).status_code == 401
        anonymous = httpx.AsyncClient(base_url=proxy.url)
        unknown = await anonymous.get("/topics")
        assert unknown.status_code == 401
        assert unknown.headers["www-authenticate"] == 'Basic realm="leafcuttr", charset="UTF-8"'
        await anonymous.aclose()
        refused(await client.post("/topics/t", json=RECORDS), "User:alice may not WRITE topic t")
        refused(await client.get("/topics/t"), "User:alice may not DESCRIBE topic t")
        refused(await client.get("/topics/nowhere"), "User:alice may not DESCRIBE topic nowhere")
        refused(await client.get("/topics/t/partitions/0/offsets"), "User:alice may not DESCRIBE topic t")
        refused(await client.get("/topics/t/stream"), "User:alice may not READ topic t")
        assert (await client.get("/topics")).json() == []
        await grant(proxy, "WRITE TOPIC t", "WRITE TOPIC new")
        assert (await client.post("/topics/t", json=RECORDS)).status_code == 200
        refused(await client.post("/topics/new", json=RECORDS), "User:alice may not CREATE topic new")
        refused(
            await client.post("/topics/new/partitions/0", json=RECORDS), "User:alice may not CREATE topic new"
        )
        assert (await client.get("/topics")).json() == ["t"]
        refused(await client.get("/topics/t"), "User:alice may not DESCRIBE_CONFIGS topic t")
        assert (await client.get("/topics/t/partitions")).status_code == 200
        assert (await client.get("/topics", auth=BOB)).json() == []
        assert await proxy.records("t") == [(None, b'"v"')]


async def test_a_bulk_upload_needs_the_right_too(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client(auth=ALICE) as client:
        lines, head = b'{"value": 1}\n', {"content-type": "application/x-ndjson"}
        refused(
            await client.post("/topics/t", content=lines, headers=head), "User:alice may not WRITE topic t"
        )
        await grant(proxy, "WRITE TOPIC t")
        assert (await client.post("/topics/t", content=lines, headers=head)).status_code == 200


async def test_without_a_log_in_a_client_is_anonymous(tmp_path: Path) -> None:
    async with secured(tmp_path, "none") as proxy, proxy.client() as client:
        refused(await client.post("/topics/t", json=RECORDS), "User:ANONYMOUS may not WRITE topic t")
        refused(await client.get("/topics/t/stream"), "User:ANONYMOUS may not READ topic t")
        await grant(proxy, "WRITE TOPIC t", principal="User:ANONYMOUS")
        assert (await client.post("/topics/t", json=RECORDS)).status_code == 200


async def test_with_none_and_basic_each_client_is_itself(tmp_path: Path) -> None:
    async with secured(tmp_path, "none,basic") as proxy, proxy.client() as client:
        await grant(proxy, "WRITE TOPIC t")
        assert (await client.post("/topics/t", json=RECORDS, auth=ALICE)).status_code == 200
        refused(await client.post("/topics/t", json=RECORDS), "User:ANONYMOUS may not WRITE topic t")


async def test_a_kept_answer_is_for_its_client_only(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client(headers={"idempotency-key": "k"}) as client:
        await grant(proxy, "WRITE TOPIC t")
        assert (await client.post("/topics/t", json=RECORDS, auth=ALICE)).status_code == 200
        again = await client.post("/topics/t", json=RECORDS, auth=ALICE)
        assert again.headers["idempotent-replayed"] == "true"
        refused(await client.post("/topics/t", json=RECORDS, auth=BOB), "User:bob may not WRITE topic t")


async def test_a_kept_answer_is_not_for_a_client_whose_name_ends_as_a_key_begins(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client() as client:
        await user(proxy, "alice one", "tea")
        for name in ("User:alice", "User:alice one"):
            await grant(proxy, "WRITE TOPIC t", principal=name)
        first, second = {"idempotency-key": "one two"}, {"idempotency-key": "two"}
        assert (await client.post("/topics/t", json=RECORDS, auth=ALICE, headers=first)).status_code == 200
        other = await client.post("/topics/t", json=RECORDS, auth=("alice one", "tea"), headers=second)
        assert other.status_code == 200 and "idempotent-replayed" not in other.headers


async def test_consumers(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client(auth=ALICE, headers=V2) as client:
        new = {"name": "c", "format": "json", "auto.offset.reset": "earliest"}
        refused(await client.post("/consumers/g", json=new), "User:alice may not READ group g")
        await grant(proxy, "READ GROUP g", "WRITE TOPIC t")
        await client.post("/topics/t", json=RECORDS, headers={"content-type": "application/json"})
        assert (await client.post("/consumers/g", json=new)).status_code == 200
        one = "/consumers/g/instances/c"
        await client.post(f"{one}/subscription", json={"topics": ["t"]})
        accept = {"accept": "application/vnd.kafka.json.v2+json"}
        with within(30, "the assignment"):
            while (answer := await client.get(f"{one}/records?timeout=1000", headers=accept)).json() == []:
                pass
        refused(answer, "User:alice may not READ topic t")
        await grant(proxy, "READ TOPIC t")
        found: list[Any] = []
        with within(30, "a record"):
            while not found:
                found = (await client.get(f"{one}/records?timeout=1000", headers=accept)).json()
        assert found[0]["value"] == "v"
        # Another client has no such consumer.
        await grant(proxy, "READ GROUP g", "READ TOPIC t", principal="User:bob")
        for method, path in (("GET", f"{one}/records"), ("GET", f"{one}/subscription"), ("DELETE", one)):
            other = await client.request(method, path, headers=accept, auth=BOB)
            assert (other.status_code, other.json()["error_code"]) == (404, 40403)
        assert (await client.post(f"{one}/offsets", json={})).status_code == 200
        await revoke(proxy)
        refused(await client.get(f"{one}/records", headers=accept), "User:alice may not READ group g")
        assert (await client.delete(one)).status_code == 204


@asynccontextmanager
async def streaming(proxy: Running) -> AsyncIterator[Any]:
    async with (
        proxy.client(auth=ALICE) as client,
        httpx_sse.aconnect_sse(client, "GET", "/topics/t/stream?from=earliest") as source,
    ):
        events = source.aiter_sse()
        async for event in events:
            if event.event == "message" and event.data:
                break
        yield events


@pytest.mark.parametrize("how", ["deleted", "changed"])
async def test_a_stream_ends_with_its_log_in(tmp_path: Path, how: str) -> None:
    async with secured(tmp_path) as proxy:
        await grant(proxy, "READ TOPIC t")
        await proxy.broker.produce("t", b'"v"')
        with within(60, "the end of the stream"):
            async with streaming(proxy) as events:
                if how == "deleted":
                    await proxy.core.users.alter([], [CredentialDeletion("alice", SHA256)])
                else:
                    await user(proxy, "alice", "coffee")
                with pytest.raises(httpx.RemoteProtocolError):
                    await anext(events)


async def test_a_stream_goes_on_while_others_change(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy:
        await grant(proxy, "READ TOPIC t")
        await proxy.broker.produce("t", b'"v"')
        with within(60, "the next record"):
            async with streaming(proxy) as events:
                await user(proxy, "bob", "coffee")
                await grant(proxy, "WRITE TOPIC t")
                await trio.testing.wait_all_tasks_blocked(0.01)
                await proxy.broker.produce("t", b'"w"')
                async for event in events:
                    if event.event == "message" and event.data:
                        break
                assert json.loads(event.data)["value"] == "w"


async def test_a_stream_ends_with_its_right(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy:
        await grant(proxy, "READ TOPIC t")
        await proxy.broker.produce("t", b'"v"')
        with within(60, "the end of the stream"):
            async with streaming(proxy) as events:
                await revoke(proxy)
                last = [event async for event in events][-1]
                assert last.event == "end"
                assert json.loads(last.data) == {"reason": "denied", "message": "t may not be read any more"}


async def test_a_websocket_ends_with_its_right_and_its_log_in(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy:
        url = f"{proxy.url.replace('http', 'ws')}/topics/t/stream"
        head = [("authorization", httpx.BasicAuth(*ALICE)._auth_header)]
        with within(60, "the ends of the WebSockets"):
            await grant(proxy, "READ TOPIC t")
            async with open_websocket_url(url, extra_headers=head) as one:
                await one.get_message()
                await revoke(proxy)
                with pytest.raises(ConnectionClosed) as closed:
                    await one.get_message()
                assert closed.value.reason is not None and closed.value.reason.code == 1008
            await grant(proxy, "READ TOPIC t")
            with pytest.raises(ConnectionClosed):
                async with open_websocket_url(url, extra_headers=head) as other:
                    await other.get_message()
                    await user(proxy, "alice", "coffee")
                    await other.get_message()


async def test_tokens_of_oauthbearer(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.add("ES256", "one")
    url = issuer.write(tmp_path / "keys")
    async with secured(
        tmp_path, "bearer", **{"sasl.oauthbearer.jwks.endpoint.url": url}
    ) as proxy, proxy.client() as client:  # fmt: skip
        token = {"authorization": f"Bearer {issuer.token('one')}"}
        refused(
            await client.post("/topics/t", json=RECORDS, headers=token), "User:alice may not WRITE topic t"
        )
        await grant(proxy, "WRITE TOPIC t")
        assert (await client.post("/topics/t", json=RECORDS, headers=token)).status_code == 200
        for wrong in (issuer.token("one", exp=1), "sesame"):
            answer = await client.get("/topics", headers={"authorization": f"Bearer {wrong}"})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (
                401,
                'Bearer realm="leafcuttr"',
            )


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the broker's time of day on by so many seconds."""
    passed = 0.0
    now_ms = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now_ms(self) + int(passed * 1000))

    def pass_time(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    return pass_time


def same_connection(*answers: httpx.Response) -> bool:
    streams = [answer.extensions["network_stream"] for answer in answers]
    return len({stream.get_extra_info("client_addr") for stream in streams}) == 1


async def test_a_kept_connection_is_no_way_beyond_the_end_of_a_token(
    tmp_path: Path, pass_time: Callable[[float], None]
) -> None:
    issuer = Issuer()
    issuer.add("ES256", "one")
    url = issuer.write(tmp_path / "keys")
    more = {"sasl.oauthbearer.jwks.endpoint.url": url}
    async with secured(tmp_path, "bearer", **more) as proxy, proxy.client() as client:
        client.headers["authorization"] = f"Bearer {issuer.token('one')}"
        first = await client.get("/topics")
        pass_time(3500)
        second = await client.get("/topics")
        pass_time(200)
        late = await client.get("/topics")
        assert [each.status_code for each in (first, second, late)] == [200, 200, 401]
        assert late.headers["www-authenticate"] == 'Bearer realm="leafcuttr"'
        assert same_connection(first, second, late)


async def test_a_stream_ends_with_its_token(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    mock_clock.rate = 1.0
    issuer = Issuer()
    issuer.add("ES256", "one")
    url = issuer.write(tmp_path / "keys")
    more = {"sasl.oauthbearer.jwks.endpoint.url": url}
    async with secured(tmp_path, "bearer", **more) as proxy:
        await grant(proxy, "READ TOPIC t")
        await proxy.broker.produce("t", b'"v"')
        headers = {"authorization": f"Bearer {issuer.token('one')}"}
        async with (
            httpx.AsyncClient(base_url=proxy.url, timeout=None, headers=headers) as client,
            httpx_sse.aconnect_sse(client, "GET", "/topics/t/stream?from=earliest") as source,
        ):
            events = source.aiter_sse()
            values = (event async for event in events if event.event == "message" and event.data)
            assert json.loads((await anext(values)).data)["value"] == "v"
            mock_clock.jump(3000)
            await proxy.broker.produce("t", b'"w"')
            assert json.loads((await anext(values)).data)["value"] == "w"
            mock_clock.jump(700)
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(values)


async def test_certificates_by_the_rules_of_the_broker(tmp_path: Path) -> None:
    authority, keys, trust = trustme.CA(), tmp_path / "keys.pem", tmp_path / "trust.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keys))
    authority.cert_pem.write_to_path(str(trust))
    settings: dict[str, str | int] = {
        "auth": "mtls",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.location": str(trust),
        "ssl.client.auth": "required",
    }
    given: dict[str, str | int] = {
        "authorizer.class.name": STANDARD,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
    }
    context = ssl.create_default_context(cafile=str(trust))
    authority.issue_cert("sensor-7@example.com", common_name="sensor-7").configure_cert(context)
    async with running(tmp_path / "data", settings, broker=given) as proxy:
        await proxy.broker.topics.create("t", partitions=1)
        url = f"https://127.0.0.1:{proxy.port}/topics/t"
        async with httpx.AsyncClient(verify=context) as client:
            refused(await client.post(url, json=RECORDS), "User:sensor-7 may not WRITE topic t")
            await grant(proxy, "WRITE TOPIC t", principal="User:sensor-7")
            assert (await client.post(url, json=RECORDS)).status_code == 200


async def test_a_producer_above_its_quota_is_answered_later(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy, proxy.client(auth=ALICE) as client:
        await grant(proxy, "WRITE TOPIC t")
        await proxy.core.quotas.alter({(("user", "alice"),): {"producer_byte_rate": 10_000}})
        body = {"records": [{"value": "x" * 12_000}]}
        began = trio.current_time()
        assert (await client.post("/topics/t", json=body)).status_code == 200
        # 12 kB at 10 kB/s, of which one second's worth was there.
        assert trio.current_time() - began > 0.15
        await proxy.core.quotas.alter({(("user", "alice"),): {"producer_byte_rate": 100}})
        with trio.move_on_after(0.2):
            await client.post("/topics/t", json=body)
        late = await client.post("/topics/t", json=body)
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) > 30
        assert (await client.get("/topics", auth=BOB)).status_code == 200


async def test_the_time_of_the_loop_is_of_the_quota(tmp_path: Path) -> None:
    """That of requests which are refused too; those are answered at once."""
    async with secured(tmp_path) as proxy, proxy.client(auth=ALICE) as client:
        await proxy.core.quotas.alter({(("user", "alice"),): {"request_percentage": 0.0001}})
        quota = proxy.broker.security.quota(Principal("User", "alice"))
        assert quota is not None and quota.is_of_time and not quota.wait_s()
        # A microsecond in each second.
        refused(await client.get("/topics/t"), "User:alice may not DESCRIBE topic t")
        assert quota.wait_s() > 0
        with trio.move_on_after(0.1) as held:
            await client.get("/topics")
        assert held.cancelled_caught
        assert (await client.get("/topics", auth=BOB)).status_code == 200
        await proxy.core.quotas.alter({(("user", "alice"),): {"request_percentage": 100_000}})
        assert (await client.get("/topics")).status_code == 200
        other = proxy.broker.security.quota(Principal("User", "alice"))
        assert other is not None and not other.wait_s()
        await proxy.core.quotas.alter({(("user", "bob"),): {"producer_byte_rate": 10}})
        of_bytes = proxy.broker.security.quota(Principal("User", "bob"))
        assert of_bytes is not None and not of_bytes.is_of_time
        of_bytes.spent(1000)
        assert not of_bytes.wait_s()


class CountingQuota:
    """One that only notes what it is told."""

    is_of_time = True

    def __init__(self) -> None:
        self.steps = 0
        self.sizes: list[int] = []
        self.changed = trio.Event()

    def produced(self, size: int) -> None: ...

    def consumed(self, size: int) -> None:
        self.sizes.append(size)

    def spent(self, seconds: float) -> None:
        assert seconds > 0
        self.steps += 1
        self.changed.set()
        self.changed = trio.Event()

    def wait_s(self) -> float:
        return 0.0


async def test_the_time_of_a_websocket_is_of_the_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with secured(tmp_path) as proxy:
        await grant(proxy, "READ TOPIC t")
        quota = CountingQuota()
        monkeypatch.setattr(type(proxy.broker.security), "quota", lambda *_: quota)
        url = f"{proxy.url.replace('http', 'ws')}/topics/t/stream?credits=2"
        head = [("authorization", httpx.BasicAuth(*ALICE)._auth_header)]
        with within(60, "a WebSocket of a client with a quota"):
            async with open_websocket_url(url, extra_headers=head) as one:
                assert json.loads(await one.get_message())["type"] == "heartbeat"
                before = quota.steps
                await proxy.broker.produce("t", b"v")
                assert json.loads(await one.get_message())["type"] == "records"
                assert quota.steps > before, "records were written for it"
                before = quota.steps
                for _ in range(10):
                    await one.send_message('{"credits": 1}')
                # Before the next message is read, what is used up is waited for.
                while quota.sizes.count(0) < 10:
                    await quota.changed.wait()
                assert quota.steps >= before + 10, "its messages were read"


async def test_without_quotas_and_authorizer_the_proxy_is_the_broker(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy, proxy.client() as client:
        assert (await client.post("/topics/t", json=RECORDS)).status_code == 200
        assert proxy.core.plugged.log_ins is None


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl(tmp_path: Path) -> None:
    async with secured(tmp_path) as proxy:

        def curl(*words: str) -> str:
            return subprocess.run(["curl", "-s", *words], capture_output=True, text=True, timeout=60).stdout

        ask = partial(trio.to_thread.run_sync, curl)
        told = json.loads(await ask("-u", "alice:tea", f"{proxy.url}/topics/t"))
        assert told == {"error_code": 40301, "message": "User:alice may not DESCRIBE topic t"}
        assert await ask("-o", "/dev/null", "-w", "%{http_code}", f"{proxy.url}/topics") == "401"
        await grant(proxy, "READ TOPIC t")
        await proxy.broker.produce("t", b'"v"')
        stream = f"{proxy.url}/topics/t/stream?from=earliest"
        assert '"v"' in await ask("-u", "alice:tea", "-N", "-m", "3", stream)
