"""Certificates that are replaced while a listener is open."""

from __future__ import annotations

import datetime
import logging
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme

from leafcuttr.net.live_certificates import LiveCertificates
from leafcuttr.net.tls_files import TlsError, TlsFiles


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def write(
    file: Path, authority: trustme.CA, name: str, kind: trustme.KeyType = trustme.KeyType.ECDSA
) -> None:
    """As who replaces it does: another file in its place."""
    beside = file.with_suffix(".new")
    authority.issue_cert(
        "localhost", common_name=name, key_type=kind
    ).private_key_and_cert_chain_pem.write_to_path(beside)
    beside.replace(file)


@pytest.fixture
def file(tmp_path: Path, authority: trustme.CA) -> Path:
    path = tmp_path / "key.pem"
    write(path, authority, "first")
    return path


def handshake(context: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str, str | None, object]:
    """The name in the certificate that the client sees, the protocol agreed on, the certificate that the server sees.
    Raises ssl.SSLError of the server."""
    ours, theirs = socket.socketpair()
    failed: list[BaseException] = []
    seen: list[object] = []

    def serve() -> None:
        try:
            with context.wrap_socket(ours, server_side=True) as sock:
                seen.append(sock.getpeercert())
                sock.sendall(b"x")
        except OSError as error:
            failed.append(error)
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(theirs, server_hostname="localhost") as sock:
            subject = dict(pair[0] for pair in sock.getpeercert()["subject"])  # type: ignore[index, misc, union-attr]
            found = subject["commonName"], sock.selected_alpn_protocol()
            sock.recv(1)
    except OSError:
        thread.join()
        if failed:
            raise failed[0] from None
        raise
    finally:
        theirs.close()
    thread.join()
    if failed:
        raise failed[0]
    return *found, seen[0]


@pytest.fixture
def client(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.create_default_context()
    authority.configure_trust(made)
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


def test_nothing_is_read_again_while_nothing_changes(
    file: Path, client: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveCertificates(TlsFiles("lc.x", str(file)))
    monkeypatch.setattr("leafcuttr.net.live_certificates.server_tls", None)
    assert not live.look()
    assert handshake(live.context, client)[0] == "first"


@pytest.mark.parametrize("kind", list(trustme.KeyType))
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_new_handshakes_have_the_new_one(
    file: Path,
    authority: trustme.CA,
    client: ssl.SSLContext,
    kind: trustme.KeyType,
    version: ssl.TLSVersion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whether or not its key is of the same kind; and the old one is no longer offered."""
    caplog.set_level(logging.INFO)
    client.maximum_version = version
    live = LiveCertificates(TlsFiles("lc.x", str(file)))
    live.context.set_alpn_protocols(["h2"])
    assert handshake(live.context, client)[:2] == ("first", "h2")
    write(file, authority, "second", kind)
    assert live.look()
    assert not live.look()
    for _ in range(3):
        assert handshake(live.context, client)[:2] == ("second", "h2")
    write(file, authority, "third")
    assert live.look()
    assert handshake(live.context, client)[:2] == ("third", "h2")
    assert [record.getMessage() for record in caplog.records] == [
        f"lc.x: the certificate was read again from {file}"
    ] * 2


def test_a_pair_that_does_not_fit_is_refused_with_one_line(
    file: Path, authority: trustme.CA, client: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveCertificates(TlsFiles("lc.x", str(file)))
    one, other = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    file.write_bytes(one.private_key_pem.bytes() + other.cert_chain_pems[0].bytes())
    for _ in range(3):
        assert not live.look()
    (record,) = caplog.records
    assert record.getMessage() == (
        f"lc.x.ssl.keystore.location={file}: the private key does not belong to the first certificate; the listener's "
        "own comes first; the certificate that was read before stays in use"
    )
    assert handshake(live.context, client)[0] == "first"
    file.unlink()
    assert not live.look()
    assert (
        "No such file or directory; the certificate that was read before" in caplog.records[-1].getMessage()
    )
    write(file, authority, "second")
    assert live.look()
    assert handshake(live.context, client)[0] == "second"


def test_trusted_certificates_are_replaced_and_not_added(
    file: Path, tmp_path: Path, authority: trustme.CA, client: ssl.SSLContext
) -> None:
    trusted = tmp_path / "trusted.pem"
    authority.cert_pem.write_to_path(trusted)
    live = LiveCertificates(TlsFiles("lc.x", str(file), None, str(trusted), "required"))
    authority.issue_cert("me@example.org").configure_cert(client)
    assert handshake(live.context, client)[2]
    trustme.CA().cert_pem.write_to_path(trusted)
    assert live.look()
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(live.context, client)
    authority.cert_pem.write_to_path(trusted)
    assert live.look()
    assert handshake(live.context, client)[2]


def test_what_a_link_leads_to_is_seen(
    file: Path, tmp_path: Path, authority: trustme.CA, client: ssl.SSLContext
) -> None:
    """As Kubernetes replaces secrets."""
    link = tmp_path / "link.pem"
    link.symlink_to(file)
    live = LiveCertificates(TlsFiles("lc.x", str(link)))
    write(tmp_path / "other.pem", authority, "second")
    link.unlink()
    link.symlink_to(tmp_path / "other.pem")
    assert live.look()
    assert handshake(live.context, client)[0] == "second"


def test_what_is_wrong_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="No such file"):
        LiveCertificates(TlsFiles("lc.x", str(tmp_path / "none.pem")))


def test_other_settings(file: Path, tmp_path: Path, authority: trustme.CA, client: ssl.SSLContext) -> None:
    """From then on it is their files that are looked at."""
    other = tmp_path / "other.pem"
    write(other, authority, "other")
    live = LiveCertificates(TlsFiles("lc.acme", str(file)))
    assert not live.use(live.files), "nothing has changed"
    assert live.use(live.files._replace(keystore=str(other), versions=("TLSv1.2",)))
    assert handshake(live.context.newest, client)[0] == "other"
    assert live.context.newest.maximum_version is ssl.TLSVersion.TLSv1_2
    write(file, authority, "first again")
    assert not live.look()
    write(other, authority, "other again")
    assert live.look()
    assert handshake(live.context.newest, client)[0] == "other again"


def test_other_settings_that_do_not_fit(
    file: Path, client: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveCertificates(TlsFiles("lc.acme", str(file)))
    assert not live.use(live.files._replace(keystore="/nowhere"))
    assert live.files.keystore == str(file)
    assert handshake(live.context.newest, client)[0] == "first"
    (record,) = caplog.records
    assert record.getMessage().startswith("lc.acme.ssl.keystore.location=/nowhere: No such file")


def with_names(authority: trustme.CA, file: Path, common_name: str, *names: str, **more: Any) -> None:
    authority.issue_cert(
        *names, common_name=common_name, organization_unit_name="web", **more
    ).private_key_and_cert_chain_pem.write_to_path(file)


STRICT = {"allows_other_subject": False, "allows_other_names": False}


def test_another_subject(
    file: Path, authority: trustme.CA, client: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused unless the settings allow it, as in Kafka."""
    with_names(authority, file, "first", "localhost")
    live = LiveCertificates(TlsFiles("lc.x", str(file), **STRICT))  # type: ignore[arg-type]
    with_names(authority, file, "FIRST", "localhost")
    assert live.look(), "upper case is no difference"
    with_names(authority, file, "second", "localhost")
    assert not live.look()
    before, after = live.chain[0].subject_text, "CN=second"
    (line,) = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert line.startswith(f"lc.x.ssl.keystore.location={file}: its subject is {after}")
    assert f" and was {before} (lc.x.ssl.allow.dn.changes=true allows another); the certificate that" in line
    assert handshake(live.context, client)[0] == "FIRST"
    assert live.use(live.files._replace(allows_other_subject=True))
    assert handshake(live.context, client)[0] == "second"


def test_other_alternative_names(file: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    """More may come, none may go."""
    with_names(authority, file, "a", "localhost", "old.test")
    live = LiveCertificates(TlsFiles("lc.x", str(file), **STRICT))  # type: ignore[arg-type]
    with_names(authority, file, "a", "localhost", "old.test", "new.test")
    assert live.look()
    with_names(authority, file, "a", "localhost", "new.test", "newer.test")
    assert not live.look()
    (line,) = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert (
        "of its alternative names old.test would be lost (lc.x.ssl.allow.san.changes=true allows it)" in line
    )
    assert live.use(live.files._replace(allows_other_names=True))


def test_one_that_has_expired(file: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    """It does not take the place of one that has not; a start with it, and its replacement by another, are better than
    nothing."""
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)
    live = LiveCertificates(TlsFiles("lc.x", str(file)))
    with_names(authority, file, "a", "localhost", not_after=past)
    assert not live.look()
    assert "has expired (" in caplog.records[-1].getMessage()
    assert "stays in use" in caplog.records[-1].getMessage()
    caplog.clear()
    expired = LiveCertificates(TlsFiles("lc.x", str(file)))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and " has expired (" in record.getMessage()
    with_names(authority, file, "b", "localhost", not_after=past + datetime.timedelta(days=1))
    assert expired.look()


def test_check_changes_nothing(file: Path, authority: trustme.CA, client: ssl.SSLContext) -> None:
    live = LiveCertificates(TlsFiles("lc.x", str(file)))
    write(file, authority, "second")
    live.check(live.files)
    assert handshake(live.context, client)[0] == "first"
    with pytest.raises(TlsError, match="No such file"):
        live.check(live.files._replace(keystore="/nowhere"))
    assert live.look(), "what was checked is not taken for read"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("newest", [False, True])
def test_old_sessions_end(
    file: Path, authority: trustme.CA, client: ssl.SSLContext, version: ssl.TLSVersion, newest: bool
) -> None:
    """A session from before the change is not gone on with: neither by the first context, which listeners of plugins
    have, nor by the newest."""
    client.maximum_version = version
    live = LiveCertificates(TlsFiles("lc.x", str(file)))

    def resumed(session: ssl.SSLSession | None) -> tuple[bool | None, ssl.SSLSession | None]:
        ours, theirs = socket.socketpair()
        context = live.context.newest if newest else live.context

        def serve() -> None:
            with context.wrap_socket(ours, server_side=True) as sock:
                sock.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        with client.wrap_socket(theirs, server_hostname="localhost", session=session) as sock:
            sock.recv(1)  # behind the tickets of TLS 1.3
            found = sock.session_reused, sock.session
        thread.join()
        return found

    _, session = resumed(None)
    assert resumed(session)[0], "while nothing has changed it is"
    write(file, authority, "second")
    assert live.look()
    assert not resumed(session)[0]
