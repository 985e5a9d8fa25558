"""`leafcuttr flows`, `mqtt` and `spark` at the admin port of a broker with `lc.metrics.auth`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr_sdk.testing import running_broker

pytestmark = pytest.mark.long
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
COMMANDS = {
    ("flows", "list"): "this broker forwards nothing",
    ("mqtt", "clients"): "the broker has no MQTT",
    ("spark", "status"): "runs no pipelines",
}
"""And what they say once they are let in."""


def leafcuttr(*words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "leafcuttr", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_each_command(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} required user_alice="tea";',
        "lc.metrics.auth": "basic",
    }
    config, file, wrong = tmp_path / "client.properties", tmp_path / "auth", tmp_path / "wrong"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required username="alice" password="tea";\n'
    )
    file.write_text("alice:tea\n")
    wrong.write_text("alice:coffee\n")
    with running_broker(tmp_path / "data", settings) as broker:
        where = ("--admin-server", f"127.0.0.1:{broker.admin_port}", "-b", broker.bootstrap_servers)
        for command, told in COMMANDS.items():
            assert "needs a log-in: --admin-auth FILE" in leafcuttr(*command, *where)
            assert "refuses the log-in of --admin-auth" in leafcuttr(*command, *where, "--admin-auth", wrong)
            assert told in leafcuttr(*command, *where, "--admin-auth", file)
            assert told in leafcuttr(*command, *where, "--command-config", config)
