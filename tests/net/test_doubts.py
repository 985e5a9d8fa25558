"""What may keep clients from taking a certificate: a line each, and nothing is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from leafcuttr.net.certificates import Certificate, parse_certificate
from leafcuttr.net.doubts import Doubt, doubts_of_chain, doubts_of_listener
from leafcuttr.net.tls_files import TlsError, TlsFiles
from support.made_certificates import certificate


def lines(found: Iterator[Doubt]) -> list[str]:
    return [each.line for each in found]


def chain_of(*certificates: x509.Certificate) -> list[Certificate]:
    return [parse_certificate(each.public_bytes(Encoding.DER)) for each in certificates]


def test_doubts() -> None:
    """What clients may refuse is said, and refused by nobody here."""
    now = certificate(subject="a", issuer="b").not_valid_before_utc.timestamp() + 1
    day = 86_400
    good = certificate(subject="a", issuer="b")
    assert lines(doubts_of_chain("S", chain_of(good, certificate(subject="b", issuer="c")), now)) == []
    assert lines(doubts_of_chain("S", chain_of(good), now + 10 * day)) == [
        "S: the certificate of CN=a has expired (2024-03-10)"
    ]
    assert lines(doubts_of_chain("S", chain_of(good), now - 2)) == [
        "S: the certificate of CN=a is not valid before 2024-02-29"
    ]
    short = certificate(subject="a", key=rsa.generate_private_key(65537, 1024))
    assert lines(doubts_of_chain("S", chain_of(short), now)) == ["S: the key of CN=a is short, RSA 1024"]
    client = certificate(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), subject="a")
    assert lines(doubts_of_chain("S", chain_of(client), now)) == [
        "S: the certificate of CN=a may not be used by a server (extendedKeyUsage)"
    ]
    assert lines(doubts_of_chain("S", chain_of(good, certificate(subject="c")), now)) == [
        "S: the certificate of CN=c comes behind that of CN=a, which was issued by CN=b"
    ]
    both = chain_of(certificate(subject="a", issuer="b"), certificate(subject="b"))
    old = lines(doubts_of_chain("S", both, now + 90 * day))
    assert [line.partition(" of ")[2].partition(" ")[0] for line in old] == ["CN=a", "CN=b"]


def test_which_keep_clients_out() -> None:
    now = certificate().not_valid_before_utc.timestamp()
    for one, at, keeps in (
        (certificate(), now + 11 * 86_400, True),
        (certificate(), now - 1, True),
        (certificate(key=rsa.generate_private_key(65537, 1024)), now, False),
    ):
        (found,) = doubts_of_chain("S", chain_of(one), at)
        assert found.keeps_clients_out is keeps


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.touch(0o600)
    return path


NOW = datetime.datetime.now(datetime.UTC)


def issue(file: Path, *names: str, days: int = 365) -> TlsFiles:
    found = trustme.CA().issue_cert(*names, not_after=NOW + datetime.timedelta(days=days, hours=1))
    found.private_key_and_cert_chain_pem.write_to_path(file)
    return TlsFiles("L", str(file))


def test_names_that_clients_connect_to(file: Path) -> None:
    files = issue(file, "kafka.test", "*.edge.test")
    assert lines(doubts_of_listener(files, ["kafka.test", "a.edge.test"])) == []
    (found,) = doubts_of_listener(files, ["kafka.test", "localhost"])
    assert found.keeps_clients_out
    assert found.line == (
        f"L.ssl.keystore.location={file}: the certificate is not for localhost, as which clients connect; its names "
        "are *.edge.test, kafka.test"
    )


@pytest.mark.parametrize(("days", "said"), [(29, ["29"]), (31, []), (0, ["0"])])
def test_the_end_is_near(file: Path, days: int, said: list[str]) -> None:
    found = list(doubts_of_listener(issue(file, "a", days=days), []))
    assert [each.line.rpartition(" in ")[2].split()[0] for each in found] == said
    assert not any(each.keeps_clients_out for each in found)


def test_a_key_that_others_can_read(file: Path) -> None:
    files = issue(file, "a")
    file.chmod(0o644)
    assert lines(doubts_of_listener(files, [])) == [
        f"L.ssl.keystore.location={file}: every user of this machine can read the private key (chmod o-r)"
    ]
    file.chmod(0o640)
    assert lines(doubts_of_listener(files, [])) == []


def test_an_authority_that_has_expired(file: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.pem"
    old.write_bytes(certificate(subject="old").public_bytes(Encoding.PEM))
    files = issue(file, "a")._replace(truststore=str(old))
    assert lines(doubts_of_listener(files, [])) == [
        f"L.ssl.truststore.location={old}: the trusted certificate of CN=old has expired (2024-03-10); those that it "
        "has signed are refused"
    ]


def test_what_cannot_be_served_is_an_error() -> None:
    with pytest.raises(TlsError, match="No such file"):
        list(doubts_of_listener(TlsFiles("L", "/nowhere"), []))
