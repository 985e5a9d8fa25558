"""Keystores of each kind, told apart by content, in a real context; and a line for what is wrong with them.

The files are those that Java 17's keytool has written (`keystores/make.sh`).
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
import trustme

from leafcuttr.net import keystores
from leafcuttr.net.keystores import read_key_entry, read_trusted
from leafcuttr.net.tls import server_tls
from leafcuttr.net.tls_files import TlsError, TlsFiles

FOLDER = Path(__file__).parent / "keystores"
OWN = frozenset({"ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"})
SECRETS = ("store-secret", "key-secret", "trust-secret")


def of(file: str | Path, password: str | None = "store-secret", key_password: str | None = None) -> TlsFiles:
    return TlsFiles("L", str(FOLDER / file), key_password, keystore_password=password, own=OWN)


def trusting(file: str | Path, password: str | None = None) -> TlsFiles:
    return TlsFiles("L", None, truststore=str(FOLDER / file), truststore_password=password, own=OWN)


@pytest.mark.parametrize(
    ("file", "key_password"),
    [("key.jks", "key-secret"), ("key.p12", None), ("key.p12", "store-secret"), ("old.p12", None)],
)
@pytest.mark.parametrize("name", ["as it is", "keystore.pem", "keystore.jks"])
def test_a_key(tmp_path: Path, file: str, key_password: str | None, name: str) -> None:
    """Whatever the file is called: today's keytool writes PKCS#12 under `.jks` too."""
    path = FOLDER / file
    if name != "as it is":
        path = tmp_path / name
        path.write_bytes((FOLDER / file).read_bytes())
    tls = server_tls(of(path, key_password=key_password))
    assert [each.subject_text for each in tls.chain] == ["CN=localhost,OU=web,O=Example"]
    assert tls.chain[0].names == ["localhost"]


def test_no_key_is_left_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL reads it from a file that is in memory only, and that is gone then."""
    loaded: list[str] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile, keyfile=None, password=None) -> None:  # type: ignore[no-untyped-def]
            loaded.append(os.readlink(str(certfile)))  # noqa: PTH115
            super().load_cert_chain(certfile, keyfile, password)

    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    server_tls(of("key.jks", key_password="key-secret"), Context)
    assert [name.startswith("/memfd:") for name in loaded] == [True]
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize(
    ("file", "password"), [("trust.jks", None), ("trust.jks", "trust-secret"), ("trust.p12", "trust-secret")]
)
def test_trusted_certificates(file: str, password: str | None) -> None:
    found = read_trusted(trusting(file, password))
    assert found is not None
    assert found[0] == f"ssl.truststore.location={FOLDER / file}"
    (certificate,) = found[1]
    assert certificate == read_key_entry(of("key.p12")).chain[0].encoded


def test_of_a_key_its_certificate_is_trusted() -> None:
    """As in Java, which takes any entry of a truststore."""
    for file, password in (("key.jks", None), ("key.p12", "store-secret")):
        found = read_trusted(trusting(file, password))
        assert found is not None and len(found[1]) == 1


def test_none_are_given() -> None:
    assert read_trusted(TlsFiles("L", None)) is None


def line(files: TlsFiles) -> str:
    with pytest.raises(TlsError) as refused:
        if files.has_key:
            server_tls(files)
        else:
            read_trusted(files)
    text = str(refused.value)
    assert "\n" not in text and not any(secret in text for secret in SECRETS)
    setting = "L.ssl.keystore.location=" if files.has_key else "ssl.truststore.location="
    assert text.startswith(setting)
    return text.partition(": ")[2]


STORE, KEY, TRUST = "L.ssl.keystore.password", "L.ssl.key.password", "ssl.truststore.password"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (of("key.jks", None), f"it is a JKS keystore, and {STORE} is not given"),
        (of("key.jks", "x"), f"{STORE} does not open it, or it has been changed"),
        (of("key.jks"), f"{STORE} does not open the private key"),
        (of("key.jks", key_password="x"), f"{KEY} does not open the private key"),
        (of("two.jks"), "it has 2 private keys (broker, other); allowed is one"),
        (
            of("trust.jks", "trust-secret"),
            "it has trusted certificates only, and a private key has to be there",
        ),
        (of("key.p12", None), f"it is a PKCS#12 keystore, and {STORE} is not given"),
        (of("key.p12", "x"), f"it is a PKCS#12 keystore; {STORE} does not open it, or it cannot be read ("),
        (
            of("key.p12", key_password="x"),
            f"{KEY} is another than {STORE}; a PKCS#12 keystore has one password",
        ),
        (
            of("trust.p12", "trust-secret"),
            "it has certificates only, and the private key has to be there too",
        ),
        (of("key.jceks"), "it is a JCEKS keystore; keytool -importkeystore "),
        (of("make.sh"), "it has no PEM; the private key in PEM has to be there too"),
        (trusting("trust.jks", "x"), f"{TRUST} does not open it, or it has been changed"),
        (
            trusting("trust.p12", "x"),
            f"it is a PKCS#12 keystore; {TRUST} does not open it, or it cannot be read (",
        ),
        (trusting("trust.p12"), f"it is a PKCS#12 keystore; {TRUST} is not given, or it cannot be read ("),
        (trusting("key.jceks"), "it is a JCEKS keystore; "),
        (trusting("make.sh"), "it has no certificate in PEM"),
    ],
)
def test_what_is_wrong(files: TlsFiles, why: str) -> None:
    found = line(files)
    assert found.startswith(why) if why.endswith(("(", " ")) else found == why


def test_other_files(tmp_path: Path) -> None:
    der = tmp_path / "key.der"
    der.write_bytes(read_key_entry(of("key.p12")).chain[0].encoded)
    for files in (of(der), trusting(der)):
        assert line(files).startswith("it is a certificate in DER; openssl x509 -inform der ")
    cut = tmp_path / "cut.jks"
    cut.write_bytes((FOLDER / "trust.jks").read_bytes()[:300])
    assert line(trusting(cut)) == "it is a JKS keystore that cannot be read: it ends too early"


def test_a_listener_of_a_plugin_has_one_setting_for_both_passwords() -> None:
    files = TlsFiles("lc.acme", str(FOLDER / "key.p12"))
    with pytest.raises(TlsError, match=r"PKCS#12 keystore, and lc\.acme\.ssl\.key\.password is not given"):
        server_tls(files)
    server_tls(files._replace(key_password="store-secret", keystore_password="store-secret"))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line names the command; JKS and PEM need nothing."""
    monkeypatch.setattr(keystores, "can_read_pkcs12", lambda: False)
    needed = "it is a PKCS#12 keystore, which needs a package: pip install 'leafcuttr[security]'"
    assert line(of("key.p12")) == needed
    assert line(trusting("trust.p12", "trust-secret")) == needed
    server_tls(of("key.jks", key_password="key-secret"))


def test_what_never_ends_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path may come over the wire."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert line(of(path)) == "it is no file"
    monkeypatch.setattr(keystores, "_MOST", 100)
    assert line(of("key.jks")) == "it has more than 0 MiB"


def test_the_chain_of_a_pem_file_stays_as_it_is(tmp_path: Path) -> None:
    top = trustme.CA()
    middle = top.create_child_ca()
    leaf = middle.issue_cert("localhost")
    file = tmp_path / "key.pem"
    pieces = [leaf.private_key_pem, leaf.cert_chain_pems[0], top.cert_pem, middle.cert_pem]
    file.write_bytes(b"".join(each.bytes() for each in pieces))
    entry = read_key_entry(of(file))
    assert [each.encoded for each in entry.chain] == [
        ssl.PEM_cert_to_DER_cert(each.bytes().decode()) for each in pieces[1:]
    ]


def test_texts_of_one_line() -> None:
    """As a settings file has them, whose lines are joined."""
    leaf = trustme.CA().issue_cert("localhost")
    key, chain = leaf.private_key_pem.bytes().decode(), leaf.cert_chain_pems[0].bytes().decode()
    files = TlsFiles("L", None, key=key.replace("\n", ""), chain=chain.replace("\n", " "))
    assert server_tls(files).chain[0].names == ["localhost"]
