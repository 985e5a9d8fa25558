"""The settings of the proxy's listener: where it listens, and TLS under Kafka's names."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from leafcuttr.embedded import open_broker
from leafcuttr.errors import StartError
from support.accepting import taken
from support.http_proxy import running
from support.waiting import free_port

PASSWORD = "correct horse"


@pytest.mark.setting("lc.http.proxy.enable", "lc.http.proxy.host", "lc.http.proxy.port")
async def test_where_it_listens(tmp_path: Path) -> None:
    port = free_port()
    # What a variable that is empty gives: no TLS.
    empty = {"ssl.keystore.location": "", "ssl.key.password": "", "ssl.truststore.location": ""}
    async with running(tmp_path / "data", {"host": "127.0.0.3", "port": port, **empty}) as proxy:
        assert proxy.core.plugged.listeners["lc.http.proxy"].advertised == f"127.0.0.3:{port}"
        async with httpx.AsyncClient(timeout=30) as client:
            assert (await client.get(f"http://127.0.0.3:{port}/topics")).json() == []
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://127.0.0.1:{port}/topics")
    off = {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0", "lc.metrics.port": 0}
    async with open_broker(off) as broker:
        assert list(broker.listeners) == ["PLAINTEXT"]


@pytest.mark.setting(
    "lc.http.proxy.ssl.keystore.location",
    "lc.http.proxy.ssl.key.password",
    "lc.http.proxy.ssl.truststore.location",
    "lc.http.proxy.ssl.client.auth",
)
async def test_clients_that_show_a_certificate(tmp_path: Path) -> None:
    authority, of_clients = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
    (tmp_path / "server.pem").write_bytes(encrypted + chain)
    of_clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    settings = {
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(tmp_path / "clients.pem"),
        "ssl.client.auth": "required",
    }
    known, unknown = ssl.create_default_context(), ssl.create_default_context()
    for context in (known, unknown):
        authority.configure_trust(context)
    of_clients.issue_cert("device@example.org").configure_cert(known)
    with taken():
        async with running(tmp_path / "data", settings) as proxy:
            url = f"https://127.0.0.1:{proxy.port}/topics"
            async with httpx.AsyncClient(verify=known, timeout=30) as client:
                assert (await client.get(url)).json() == []
            async with httpx.AsyncClient(verify=unknown, timeout=30) as client:
                with pytest.raises(httpx.TransportError):
                    await client.get(url)


async def test_a_password_that_is_wrong_is_not_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    text = (tmp_path / "server.pem").read_bytes()
    key = serialization.load_pem_private_key(text, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    (tmp_path / "server.pem").write_bytes(encrypted + text[text.index(b"-----BEGIN CERT") :])
    settings = {"ssl.keystore.location": str(tmp_path / "server.pem"), "ssl.key.password": "battery staple"}
    with caplog.at_level("DEBUG"), pytest.raises((StartError, BaseExceptionGroup)) as caught:
        async with running(tmp_path / "data", settings):
            pass
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, StartError)
    assert f"lc.http.proxy.ssl.keystore.location={tmp_path}/server.pem" in str(error)
    assert "battery staple" not in str(error) + caplog.text
