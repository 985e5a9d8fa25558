"""Bearer tokens, the end of a principal's time, and the names of certificates. Passwords are in tests/http_proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from leafcuttr_sdk import (
    Authenticated,
    AuthenticatorSpec,
    BearerToken,
    Broker,
    Credentials,
    Principal,
    current_principal,
)
from leafcuttr_sdk.web import Application, Exchange, event_stream
from leafcuttr_sdk.web.clients import _distinguished_name
from support import web_service
from support.web_service import serving

SETTINGS = {"auth": "bearer", "authenticators": "tokens"}
SHORT_MS = 400


class Tokens:
    """Knows two tokens, one of which has not long to live."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def authenticate(self, credentials: Credentials) -> Authenticated | None:
        match credentials:
            case BearerToken("long"):
                return Authenticated(Principal("Service", "crawler"))
            case BearerToken("short"):
                return Authenticated(Principal("User", "bob"), self._broker.clock.now_ms() + SHORT_MS)
        return None


def leafcuttr_register_authenticators(broker: Broker) -> Iterator[AuthenticatorSpec]:
    yield AuthenticatorSpec("tokens", "two tokens", lambda: Tokens(broker), ("bearer",))


@pytest.fixture(autouse=True)
def _with_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"{web_service._MODULE}\nfrom {__name__} import leafcuttr_register_authenticators\n"
    monkeypatch.setattr(web_service, "_MODULE", module)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"bearer {token}"}


async def who(exchange: Exchange) -> None:
    await exchange.reply([str(exchange.principal), str(current_principal())])


async def test_tokens(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda _: Application(who), SETTINGS) as served, served.client() as client:
        answer = await client.get("/", headers=bearer("long"))
        assert answer.json() == ["Service:crawler", "Service:crawler"]
        for headers in (
            {},
            bearer("other"),
            {"authorization": "bearer"},
            bearer("x" * 20_000),
            {"authorization": "Basic YTpi"},
        ):
            answer = await client.get("/", headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (
                401,
                'Bearer realm="leafcuttr"',
            )


async def test_none_is_anonymous(tmp_path: Path) -> None:
    settings = {**SETTINGS, "auth": "none,bearer"}
    async with serving(tmp_path, lambda _: Application(who), settings) as served, served.client() as client:
        assert (await client.get("/")).json() == ["User:ANONYMOUS", "User:ANONYMOUS"]
        assert (await client.get("/", headers=bearer("wrong"))).status_code == 401


@pytest.mark.parametrize("http2", [False, True])
async def test_a_stream_ends_with_the_time_of_its_principal(tmp_path: Path, http2: bool) -> None:
    async def handle(exchange: Exchange) -> None:
        async with event_stream(exchange) as events:
            await events.send("here")
            await trio.sleep_forever()

    async with (
        serving(tmp_path, lambda _: Application(handle), SETTINGS) as served,
        served.client(http2=http2, http1=not http2) as client,
    ):
        with trio.fail_after(30), pytest.raises(httpx.RemoteProtocolError):
            await client.get("/", headers=bearer("short"))


async def test_a_request_that_waits_beyond_it_is_told(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        await trio.sleep_forever()

    async with (
        serving(tmp_path, lambda _: Application(handle), SETTINGS) as served,
        served.client() as client,
    ):
        answer = await client.get("/", headers=bearer("short"))
        assert (answer.status_code, answer.json()["message"]) == (401, "The credentials have expired.")
        assert answer.headers["www-authenticate"] == 'Bearer realm="leafcuttr"'


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ((), ""),
        (((("organizationName", "Acme"),), (("commonName", "a"),)), "CN=a,O=Acme"),
        (((("commonName", "a"), ("userId", "7")),), "CN=a+UID=7"),
        (((("commonName", "Acme, Inc."),),), "CN=Acme\\, Inc."),
        (((("commonName", "#1 \\ "),),), "CN=\\#1 \\\\\\ "),
        (((("1.2.3", 'a"b'),),), '1.2.3=a\\"b'),
    ],
)
def test_distinguished_names(subject: Any, name: str) -> None:
    assert _distinguished_name(subject) == name
