"""Kafka's own command makes, renews, describes and revokes delegation tokens, and Java's clients log in with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import jars, secured_clients
from support.broker_process import running_broker
from support.secured_clients import Fresh
from support.waiting import free_port

MODULE = "org.apache.kafka.common.security"
COMMAND = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"SASL_PLAINTEXT://{found}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{MODULE}.plain.PlainLoginModule required user_alice="a" user_bob="b";'
        ),
        "delegation.token.secret.key": "sesame",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(tmp_path_factory.mktemp("tokens"), settings):
        yield found


def client(path: Path, mechanism: str, jaas: str) -> Path:
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"
    )
    return path


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_java(address: str, fresh: Fresh, tmp_path: Path, version: str) -> None:
    jaas = f'{MODULE}.plain.PlainLoginModule required username="alice" password="a";'
    alice = client(tmp_path / "alice.properties", "PLAIN", jaas)

    def command(*words: str) -> str:
        return secured_clients.java_tool(version, address, COMMAND, "--command-config", str(alice), *words)

    made = command("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    row = re.search(r"^(\S{22})\s+(\S{80,90})\s+User:alice\s+User:alice\s+\[User:bob\]\s", made, re.MULTILINE)
    assert row is not None, made
    token_id, secret = row.groups()
    assert secret in command("--describe", "--owner-principal", "User:alice")
    assert "Completed renew operation" in command("--renew", "--renew-time-period", "-1", "--hmac", secret)
    jaas = f'{MODULE}.scram.ScramLoginModule required username="{token_id}" password="{secret}" tokenauth="true";'
    program = client(tmp_path / "program.properties", "SCRAM-SHA-256", jaas)
    secured_clients.java_console(version, address, program, fresh)
    assert "Completed expire operation" in command("--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in command("--describe")
    with pytest.raises(AssertionError, match=r"SaslAuthenticationException|Authentication failed"):
        secured_clients.java_tool(version, address, TOPICS, "--command-config", str(program), "--list")
