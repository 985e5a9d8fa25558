"""The bench of TLS, log-in, ACLs and quotas: what it prints, and its client, against a broker in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import security
from peers import HERE

from support.live_broker import live_broker


def test_a_table_has_medians_and_the_median_of_the_ratios_of_pairs() -> None:
    table = {"rate": {"a": [10.0, 30.0, 20.0], "b": [10.0, 10.0, 10.0]}}
    assert list(security.lines(table)) == [
        "| what | a | b | ratio (worst..best pair) |",
        "|---|---:|---:|---:|",
        "| rate | 20.00 | 10.00 | 2.000 (1.000..3.000) |",
    ]
    assert list(security.lines({"rate": {"a": [1.0]}})) == ["| what | a |", "|---|---:|", "| rate | 1.00 |"]


def test_names_that_have_not_been_seen(tmp_path: Path) -> None:
    (kinds,) = security.names(security.Bench(tmp_path, 1)).values()
    assert all(value > 0 for values in kinds.values() for value in values) and len(kinds) == 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("user", ["", "ann"])
def test_clients_are_served_and_stay(tmp_path: Path, user: str) -> None:
    certificate = security.Certificate(tmp_path).make()
    protocol = "SASL_SSL" if user else "SSL"
    settings = {
        "listeners": f"{protocol}://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        **dict(each.split("=", 1) for each in certificate.settings()),
    }
    with live_broker(tmp_path / "data", settings) as broker:
        ports = {one.protocol: one.port for one in broker.broker.listeners}
        if user:
            peer = security.LeafCuttr("here", tmp_path, port=ports["PLAINTEXT"])
            security.make_users(peer, [user])
        done = subprocess.run(
            [
                *(sys.executable, str(HERE / "security_clients.py"), f"127.0.0.1:{ports[protocol]}", "20"),
                *("--authority", str(certificate.authority)),
                *(("--user", user, "--password", security.PASSWORD) if user else ()),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["began"] < said["ended"]
