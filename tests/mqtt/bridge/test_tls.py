"""The TLS of bridges: which certificates are accepted there, and which ones are shown."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from leafcuttr_mqtt.bridge.options import Bridge, read_bridges
from leafcuttr_mqtt.bridge.settings import settings as all_settings
from leafcuttr_mqtt.bridge.tls import client_context
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.testing import fixed_settings
from support.mqtt import RunningMqtt, running_mqtt
from support.mqtt_bridges import bridge, is_up


def made(**given: str) -> Bridge:
    values = {
        "mqtt.bridge.cloud.address": "a",
        "mqtt.bridge.cloud.topics": "a/#",
        **{f"mqtt.bridge.cloud.{name.replace('_', '.')}": value for name, value in given.items()},
    }
    (found,) = read_bridges(fixed_settings(all_settings(), values))
    return found


class Files:
    """A certificate authority, the certificate of a broker there, and that of a bridge."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        authority = trustme.CA()
        self.ca, self.there, self.bridge = (str(folder / name) for name in ("ca", "there", "bridge"))
        authority.cert_pem.write_to_path(self.ca)
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(self.there)
        authority.issue_cert("bridge").private_key_and_cert_chain_pem.write_to_path(self.bridge)


def tls_there(files: Files, **more: Any) -> dict[str, Any]:
    listener = {"host": "127.0.0.1", "port": 0, "ssl.keystore.location": files.there, **more}
    return {f"mqtt.tls.{name}": value for name, value in listener.items()}


def to(there: RunningMqtt, files: Files, host: str = "localhost", **more: str) -> dict[str, str]:
    given = bridge(0, "out/# out 1", security_protocol="SSL", ssl_truststore_location=files.ca, **more)
    return {**given, "mqtt.bridge.cloud.address": f"{host}:{there.port_of('mqtt.tls')}"}


def test_without_tls_there_is_no_context() -> None:
    assert client_context(made()) is None


def test_what_is_checked() -> None:
    context = client_context(made(security_protocol="SSL"))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    lax = client_context(made(security_protocol="SSL", **{"ssl.endpoint.identification.algorithm": ""}))
    assert lax is not None
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_REQUIRED, False)


@pytest.mark.parametrize("option", ["ssl.truststore.location", "ssl.keystore.location"])
def test_files_that_cannot_be_used(option: str, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for path in (tmp_path / "no.pem", tmp_path / "missing"):
        with pytest.raises(PluginError) as caught:
            client_context(made(security_protocol="SSL", **{option: str(path)}))
        assert str(caught.value).startswith(f"mqtt.bridge.cloud.{option}: {path} cannot be used: ")


async def test_a_bridge_over_tls(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    async with running_mqtt(tmp_path / "there", tls_there(files)) as there:
        settings = to(there, files)
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            subscriber = await there.connect("subscriber")
            await subscriber.subscribe("out/#")
            publisher = await here.connect("publisher")
            await publisher.publish("out/a", b"x" * 100_000, 1)
            assert (await subscriber.message()).payload == b"x" * 100_000


async def test_the_certificate_of_the_bridge(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    wants = {"ssl.client.auth": "required", "ssl.truststore.location": files.ca}
    async with running_mqtt(tmp_path / "there", tls_there(files, **wants)) as there:
        with_it = to(there, files, ssl_keystore_location=files.bridge)
        async with running_mqtt(tmp_path / "here", with_it) as here:
            await is_up(here)
        async with running_mqtt(tmp_path / "here", to(there, files)) as here:
            await is_up(here, b"0")


@pytest.mark.parametrize(
    ("host", "ca", "why"),
    [
        ("127.0.0.1", "same", "IP address mismatch"),
        ("localhost", "other", "certificate verify failed"),
    ],
)
async def test_a_certificate_that_is_not_accepted(
    tmp_path: Path, host: str, ca: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    files, others = Files(tmp_path / "files"), Files(tmp_path / "others")
    async with running_mqtt(tmp_path / "there", tls_there(files)) as there:
        given = to(there, files if ca == "same" else others, host)
        async with running_mqtt(tmp_path / "here", given):
            with trio.fail_after(20):
                while why not in caplog.text:
                    await trio.sleep(0.01)
    told = [record.getMessage() for record in caplog.records if "bridge cloud" in record.getMessage()]
    assert len(told) == 1
    assert told[0].startswith(f"bridge cloud cannot connect to {host}:")
    assert "\n" not in told[0]
