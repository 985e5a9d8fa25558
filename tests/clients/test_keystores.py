"""Keystores of Java on both sides: keytool makes them, a Java client shows its certificate, kafka-configs.sh has the
broker read them again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support import jars, secured_clients
from support.broker_process import running_broker
from support.secured_clients import Fresh
from support.waiting import free_port

pytestmark = [
    pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not here (Java)"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.long,
]
SECRET = "store-secret"


def keytool(*words: str | Path) -> None:
    done = subprocess.run(
        ["keytool", *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def make_key(file: Path, kind: str, name: str, *names: str) -> None:
    file.unlink(missing_ok=True)
    keytool(
        *(
            "-genkeypair",
            "-keyalg",
            "EC",
            "-groupname",
            "secp256r1",
            "-validity",
            "3",
            "-alias",
            "own",
            "-noprompt",
        ),
        *("-dname", f"CN={name}, OU=web, O=Example", "-ext", f"san={','.join(names)}"),
        *("-storetype", kind, "-keystore", file, "-storepass", SECRET, "-keypass", SECRET),
    )


def trust(file: Path, kind: str, of: Path, alias: str) -> None:
    certificate = of.with_suffix(".crt")
    keytool("-exportcert", "-alias", "own", "-keystore", of, "-storepass", SECRET, "-file", certificate)
    keytool(
        *("-importcert", "-noprompt", "-alias", alias, "-file", certificate),
        *("-storetype", kind, "-keystore", file, "-storepass", SECRET),
    )


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.parametrize(("kind", "other"), [("JKS", "PKCS12"), ("PKCS12", "JKS")])
def test_keystores_of_keytool(tmp_path: Path, fresh: Fresh, kind: str, other: str) -> None:
    broker, client = tmp_path / "broker.keystore", tmp_path / "client.keystore"
    of_broker, of_client = tmp_path / "broker.truststore", tmp_path / "client.truststore"
    make_key(broker, kind, "localhost", "ip:127.0.0.1")
    make_key(client, other, "alice", "dns:alice.test")
    trust(of_broker, other, client, "alice")
    trust(of_client, kind, broker, "first")
    ports = free_port(), free_port()
    address, plain = (f"127.0.0.1:{port}" for port in ports)
    settings = {
        "listeners": f"SSL://{address},PLAINTEXT://{plain}",
        "ssl.keystore.location": str(broker),
        "ssl.keystore.password": SECRET,
        "ssl.keystore.type": kind,
        "ssl.truststore.location": str(of_broker),
        "ssl.truststore.password": SECRET,
        "ssl.client.auth": "required",
        "lc.tls.reload.interval.ms": "0",
        "offsets.topic.num.partitions": "1",
    }
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.keystore.location={client}\nssl.keystore.password={SECRET}\nssl.keystore.type={other}\n"
        f"ssl.truststore.location={of_client}\nssl.truststore.password={SECRET}\nssl.truststore.type={kind}\n"
    )

    def have_it_read_again(path: Path) -> str:
        change = f"listener.name.ssl.ssl.keystore.location={path}"
        words = ("--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config", change)
        command = jars.java("4.3.1", "kafka.admin.ConfigCommand", "--bootstrap-server", plain, *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    with running_broker(tmp_path / "data", settings):
        secured_clients.java_console("4.3.1", address, config, fresh)
        make_key(broker, kind, "localhost", "ip:127.0.0.1", "dns:new.test")
        assert "Completed updating config for broker 1." in have_it_read_again(broker)
        trust(of_client, kind, broker, "second")
        secured_clients.java_console("4.3.1", address, config, fresh)
        make_key(broker, kind, "other", "ip:127.0.0.1", "dns:new.test")
        assert (
            "its subject is CN=other,OU=web,O=Example and was CN=localhost,OU=web,O=Example"
            in have_it_read_again(broker)
        )
        broker.write_bytes(b"nothing")
        assert "it has no PEM" in have_it_read_again(broker)
