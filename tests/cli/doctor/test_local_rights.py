"""`leafcuttr doctor --config FILE`: ACLs and super users of nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.cli.doctor.findings import DoctorFinding, DoctorSeverity
from leafcuttr.cli.doctor.local.rights import are_for_somebody
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.plugins.catalogue import catalog_of
from leafcuttr.plugins.settings_page import bundled
from leafcuttr.state.metadata import MetadataStore, StoredScramCredential
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.state.security.acls import stored
from support.tls_peer import Certificates

STANDARD = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
SCRAM = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "super.users": "User:admin",
}
BUNDLED = catalog_of(bundled())
OPEN = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
PLAIN = {
    **SCRAM,
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
    ' required user_named="x";',
}


def acl(
    principal: str,
    *,
    cluster: bool = False,
    permission: AclPermission = AclPermission.ALLOW,
    host: str = "*",
) -> Acl:
    kind = AclResourceType.CLUSTER if cluster else AclResourceType.TOPIC
    operation = AclOperation.ALTER if cluster else AclOperation.READ
    return Acl(
        kind, "kafka-cluster" if cluster else "t", PatternType.LITERAL, principal, host, operation, permission
    )


def look(
    folder: Path, given: dict[str, str], *acls: Acl, users: tuple[str, ...] = ("admin",)
) -> list[DoctorFinding]:
    metadata = MetadataStore.open(folder)
    credentials = [StoredScramCredential(name, 1, b"s", b"k", b"v", 4096) for name in users]
    metadata.set_scram_credentials(credentials, [])
    metadata.change_acls(map(stored, acls), [])
    metadata.close()
    settings = Settings(given, BUNDLED)
    return list(are_for_somebody(Site(None, {}, (), settings, parse_listeners(settings), directory=folder)))


def test_all_is_right(tmp_path: Path) -> None:
    acls = [acl("User:admin"), acl("User:*"), acl("User:ANONYMOUS")]
    (found,) = look(tmp_path, {**STANDARD, **SCRAM}, *acls)
    assert found.severity is DoctorSeverity.FINE
    assert found.seen == "3 ACLs and 1 super users, all of clients that can be"


def test_there_is_no_directory_yet(tmp_path: Path) -> None:
    settings = Settings({**STANDARD, **SCRAM})
    site = Site(None, {}, (), settings, parse_listeners(settings), directory=tmp_path / "none")
    (found,) = are_for_somebody(site)
    assert found.seen == "the super user User:admin cannot log in"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("given", "acls", "seen"),
    [
        ({**SCRAM}, [acl("User:admin")], "1 ACLs are stored, and there is no authorizer"),
        ({**SCRAM}, [], "super.users is set, and there is no authorizer"),
        (
            {**STANDARD, **SCRAM},
            [acl(f"User:{name}") for name in ("eve", "dan", "bob", "carol", "admin")],
            "there are ACLs of User:bob, User:carol, User:dan and 1 others, which cannot log in",
        ),
        (
            {**STANDARD, **SCRAM, "super.users": "User:admin;User:eve"},
            [],
            "the super user User:eve cannot log in",
        ),
        (
            {**STANDARD, **SCRAM},
            [
                acl("User:admin", host=host)
                for host in (
                    "10.0.0.7",
                    "2001:db8:0:0:0:0:0:1",
                    "fe80::1%eth0",
                    "10.0.0.0/8",
                    "010.0.0.7",
                    "db.local",
                )
            ],
            "there are ACLs for the hosts '010.0.0.7', '10.0.0.0/8', 'db.local', which no client comes from",
        ),
        (
            {**STANDARD, **SCRAM},
            [acl("User:admin", host=host) for host in ("d", "c", "b", "a")],
            "there are ACLs for the hosts 'a', 'b', 'c' and 1 others, which no client comes from",
        ),
        ({**STANDARD, **PLAIN}, [], "the super user User:admin cannot log in"),
        (
            {**STANDARD, **PLAIN, "super.users": "User:named"},
            [acl("User:admin")],
            "there are ACLs of User:admin, which cannot log in",
        ),
        ({**STANDARD, **OPEN, "super.users": "User:admin"}, [], "the super user User:admin cannot log in"),
        ({**STANDARD, **OPEN, "super.users": "User:ANONYMOUS"}, [], "User:ANONYMOUS is a super user"),
        (
            {**STANDARD, **PLAIN, "super.users": "User:named", "mqtt.authenticators": "broker"},
            [acl("User:admin"), acl("User:eve")],
            "there are ACLs of User:eve, which cannot log in",
        ),
        (
            {**STANDARD, **SCRAM, "super.users": "User:*"},
            [],
            "User:* is a super user, which is the user of the name *, not everybody",
        ),
        (
            {**STANDARD, **SCRAM, "super.users": ""},
            [acl("User:admin"), acl("User:admin", cluster=True, permission=AclPermission.DENY)],
            "there is no super user, and no ACL allows ALTER on the cluster",
        ),
    ],
)
def test_what_is_said(tmp_path: Path, given: dict[str, str], acls: list[Acl], seen: str) -> None:
    (found,) = look(tmp_path, given, *acls)
    assert (found.severity, found.seen) == (DoctorSeverity.WARNING, seen)
    assert found.why and found.change


@pytest.mark.parametrize(
    "more",
    [
        {"sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER"},
        {"mqtt.auth": "basic", "mqtt.authenticators": "ours"},
        {"listeners": "SSL://127.0.0.1:9092", "ssl.client.auth": "requested"},
    ],
)
def test_who_else_there_may_be_is_not_known(tmp_path: Path, more: dict[str, str]) -> None:
    """Certificates, tokens, tickets and plugins give names that stand nowhere."""
    ours = Certificates(tmp_path)
    tls = {"ssl.keystore.location": ours.issue("127.0.0.1").file, "ssl.truststore.location": ours.trusted}
    (found,) = look(tmp_path, {**STANDARD, **SCRAM, **tls, **more}, acl("User:eve"), users=())
    assert found.severity is DoctorSeverity.FINE


@pytest.mark.parametrize(
    ("more", "acls"),
    [({"allow.everyone.if.no.acl.found": "true"}, []), ({}, [acl("User:admin", cluster=True)])],
)
def test_acls_can_be_changed(tmp_path: Path, more: dict[str, str], acls: list[Acl]) -> None:
    given = {**STANDARD, **SCRAM, "super.users": "", **more}
    assert look(tmp_path, given, *acls)[0].severity is DoctorSeverity.FINE


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ({"sasl.enabled.mechanisms": "NTLM"}, "sasl.enabled.mechanisms=NTLM: NTLM is not offered"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "KAFKA_OPTS: /nowhere/jaas.conf: No such file or directory"),
    ],
)
def test_log_ins_that_are_none(
    tmp_path: Path, more: dict[str, str], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/nowhere/jaas.conf")
    (found,) = look(tmp_path, {**STANDARD, **SCRAM, **more})
    assert found.severity is DoctorSeverity.PROBLEM
    assert found.seen.startswith(seen)
