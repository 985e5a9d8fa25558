"""Keystores of Java, and of openssl, for our own commands: a broker with mutual TLS takes them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.secured_broker import SecuredBroker, secured_broker

pytestmark = [
    pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not here (Java)"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here"),
    pytest.mark.long,
]
SECRET = "store-secret"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("stores"), offsets_topic_num_partitions="1") as broker:
        yield broker


def run(*words: str | Path, given: str = "") -> str:
    done = subprocess.run(
        [*map(str, words)], input=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def leafcuttr(*words: str | Path, given: str = "") -> str:
    return run(sys.executable, "-m", "leafcuttr", *words, given=given)


def pkcs12_of_openssl(secured: SecuredBroker, folder: Path) -> Path:
    store = folder / "own.p12"
    run("openssl", "pkcs12", "-export", "-in", secured.own, "-out", store, "-passout", f"pass:{SECRET}")
    return store


def of_keytool(store: Path, kind: str) -> Path:
    """The key of a store, in a new one."""
    found = store.with_suffix(f".{kind.lower()}-of-keytool")
    run(
        *("keytool", "-importkeystore", "-noprompt", "-srckeystore", store, "-srcstorepass", SECRET),
        *("-destkeystore", found, "-deststoretype", kind, "-deststorepass", SECRET),
    )
    return found


def trust_of_keytool(secured: SecuredBroker, folder: Path, kind: str) -> Path:
    found = folder / f"trust.{kind.lower()}"
    run(
        *("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", secured.trusted),
        *("-storetype", kind, "-keystore", found, "-storepass", SECRET),
    )
    return found


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "openssl"])
def test_commands(secured: SecuredBroker, tmp_path: Path, kind: str) -> None:
    """By our own client (`transactions`), and by librdkafka."""
    own = pkcs12_of_openssl(secured, tmp_path)
    if kind != "openssl":
        own = of_keytool(own, kind)
    trusted = trust_of_keytool(secured, tmp_path, "PKCS12" if kind == "openssl" else kind)
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.keystore.location={own}\nssl.keystore.password={SECRET}\n"
        f"ssl.truststore.location={trusted}\nssl.truststore.password={SECRET}\n"
        + ("" if kind == "openssl" else f"ssl.keystore.type={kind}\nssl.truststore.type={kind}\n")
    )
    where = ("-b", secured.addresses["MTLS"], "--command-config", config)
    assert leafcuttr("transactions", "list", *where, "--json").strip() == "[]"
    topic = f"of-{kind.lower()}"
    leafcuttr("produce", topic, *where, given="tea\n")
    assert leafcuttr("consume", topic, "-n", "1", *where) == "tea\n"
