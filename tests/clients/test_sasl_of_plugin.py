"""A mechanism that Kafka's broker does not have, and Java does: CRAM-MD5 (RFC 2195), which a plugin brings."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from leafcuttr_sdk import Plugin
from leafcuttr_sdk.testing import running_broker
from support import jars, secured_clients
from support.secured_clients import Fresh

pytestmark = [
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.long,
]
PLUGIN = """
import hmac
import secrets

from leafcuttr_sdk import Authenticated, AuthenticatorSpec, Challenge, Plugin, Principal, Refused

PLUGIN = Plugin("cram", 1, "CRAM-MD5")


def leafcuttr_register_authenticators(broker):
    yield AuthenticatorSpec("cram", "for a test", Cram, mechanisms=("CRAM-MD5",))


class Cram:
    async def authenticate(self, credentials):
        return None

    def begin(self, mechanism):
        return Steps()


class Steps:
    challenge = b""

    async def step(self, data):
        if not self.challenge:
            self.challenge = f"<{secrets.token_hex(8)}@localhost>".encode()
            return Challenge(self.challenge)
        right = "alice " + hmac.digest(b"open sesame", self.challenge, "md5").hex()
        if hmac.compare_digest(data, right.encode()):
            return Authenticated(Principal("User", "alice"))
        return Refused("the digest is wrong")
"""


def plugin() -> ModuleType:
    module = ModuleType("cram")
    exec(compile(PLUGIN, "cram.py", "exec"), vars(module))
    assert isinstance(module.PLUGIN, Plugin)
    return module


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
def test_java(tmp_path: Path, fresh: Fresh) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "lc.sasl.mechanisms": "CRAM-MD5",
        "offsets.topic.num.partitions": "1",
    }
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=CRAM-MD5\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="open sesame";\n'
    )
    with running_broker(tmp_path / "data", settings, [plugin()]) as broker:
        secured_clients.java_console("4.3.1", broker.bootstrap_servers, config, fresh)
