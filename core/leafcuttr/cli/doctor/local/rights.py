"""ACLs and super users of a configuration: whether there are clients that they are for."""

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Final, NamedTuple

from leafcuttr.cli.common.offline import copied_metadata
from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.checks import principals_of
from leafcuttr.errors import StartError
from leafcuttr.state.security.acl import EVERYBODY, Acl, AclOperation, AclPermission, AclResourceType

_ANONYMOUS: Final = "User:ANONYMOUS"
_OURS: Final = "broker"
_OF_USERS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms whose users are stored, or named in the settings."""
_SUPER_USERS: Final = "super.users"
_ADD: Final = "the user who is to log in by this name: leafcuttr users create NAME"


class _Clients(NamedTuple):
    """Who there may be: `known` principals, and any of others where certificates, tokens, tickets or plugins give
    names."""

    known: frozenset[str]
    others: bool
    log_in: bool
    """Whether any client can be more than User:ANONYMOUS."""


def are_for_somebody(site: Site) -> Iterator[DoctorFinding]:
    """ACLs and super users are those of clients that can log in, ACLs of addresses that clients have, and somebody may
    change the ACLs."""
    with copied_metadata(site.directory) as metadata:
        if metadata is None:
            users, acls = [], []
        else:
            from leafcuttr.state.security.acls import of_stored

            users = [one.name for one in metadata.scram_credentials()]
            acls = list(map(of_stored, metadata.acls()))
    supers = principals_of(site.settings.text(_SUPER_USERS))
    if not site.settings.text("authorizer.class.name"):
        yield from _without_authorizer(site, acls, supers)
        return
    try:
        clients = _clients(site, users)
    except StartError as error:
        yield problem(
            str(error), "The broker does not start.", "what it may be: leafcuttr config describe 'sasl.*'"
        )
        return
    found = [*_of_super_users(site, clients, supers), *_of_acls(clients, acls), *_of_no_host(acls)]
    if not supers and not site.settings.bool("allow.everyone.if.no.acl.found") and not _can_be_changed(acls):
        found.append(
            warning(
                "there is no super user, and no ACL allows ALTER on the cluster",
                "No client may create topics or ACLs.",
                site.line(_SUPER_USERS, "User:admin"),
                "or offline: leafcuttr acls add --data DIRECTORY",
            )
        )
    yield from found or [fine(f"{len(acls)} ACLs and {len(supers)} super users, all of clients that can be")]


def _without_authorizer(site: Site, acls: Sequence[Acl], supers: Sequence[str]) -> Iterator[DoctorFinding]:
    if acls or supers:
        what = f"{len(acls)} ACLs are stored" if acls else f"{_SUPER_USERS} is set"
        yield warning(
            f"{what}, and there is no authorizer",
            "ACLs count with an authorizer only: every client may do everything.",
            site.line("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        )
    else:
        yield fine("no authorizer, so there are no rights")


def _clients(site: Site, users: Iterable[str]) -> _Clients:
    from leafcuttr.net.listener_tls import tls_files
    from leafcuttr.net.tls_files import TlsError
    from leafcuttr.server.login.logins import mechanisms_of
    from leafcuttr.state.security.named_users import named_users

    settings, names, others, anonymous = site.settings, set[str](), False, False
    for listener in site.listeners:
        if listener.protocol.startswith("SASL"):
            for mechanism in mechanisms_of(settings, listener.name):
                named = named_users(settings, listener.name) if mechanism == "PLAIN" else None
                names |= set(users if named is None else named)
                others |= mechanism not in _OF_USERS
            continue
        anonymous = True
        if listener.protocol == "SSL":
            try:
                auth = tls_files(settings, listener).client_auth
            except TlsError:  # which another check is about
                auth = "none"
            others |= auth != "none"
    for name in settings.given_names:
        if name.endswith(".authenticators"):
            named_ones = set(settings.list(name))
            others |= bool(named_ones - {_OURS})
            names |= set(users) if _OURS in named_ones else set()
    known = {f"User:{name}" for name in names} | ({_ANONYMOUS} if anonymous else set())
    return _Clients(frozenset(known), others, others or bool(names))


def _of_super_users(site: Site, clients: _Clients, supers: Sequence[str]) -> Iterator[DoctorFinding]:
    for each in supers:
        if each == _ANONYMOUS and each in clients.known:
            yield warning(
                f"{each} is a super user",
                "Every client that does not log in may do everything.",
                site.line(_SUPER_USERS, "User:admin"),
            )
        elif each == EVERYBODY:
            yield warning(
                f"{each} is a super user, which is the user of the name *, not everybody",
                "A super user is one principal.",
                site.line(_SUPER_USERS, "User:admin"),
            )
        elif each not in clients.known and not clients.others:
            why = (
                "There is no such user, so its rights wait for the next one of this name."
                if clients.log_in
                else "No listener has a log-in, so every client is User:ANONYMOUS."
            )
            yield warning(f"the super user {each} cannot log in", why, _ADD)


def _of_acls(clients: _Clients, acls: Sequence[Acl]) -> Iterator[DoctorFinding]:
    nobody = sorted({acl.principal for acl in acls} - clients.known - {EVERYBODY, _ANONYMOUS})
    if nobody and not clients.others:
        yield warning(
            f"there are ACLs of {_first_of(nobody)}, which cannot log in",
            "A name may be mistyped; and one who gets this name later has these rights.",
            f"leafcuttr acls remove --principal {nobody[0]}",
            _ADD,
        )


def _of_no_host(acls: Sequence[Acl]) -> Iterator[DoctorFinding]:
    from leafcuttr.state.security.acl_rules import is_of_clients

    hosts = sorted({acl.host for acl in acls if not is_of_clients(acl.host)})
    if hosts:
        yield warning(
            f"there are ACLs for the hosts {_first_of([*map(repr, hosts)])}, which no client comes from",
            "The host of an ACL is one IP address, or *. Such an ACL allows nothing, and denies nothing.",
            f"leafcuttr acls remove --host {quote(hosts[0])}",
            "the same ACL with --host and an address: leafcuttr acls add",
        )


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} others" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _can_be_changed(acls: Iterable[Acl]) -> bool:
    return any(
        acl.resource_type is AclResourceType.CLUSTER
        and acl.permission is AclPermission.ALLOW
        and acl.operation in (AclOperation.ALTER, AclOperation.ALL)
        for acl in acls
    )
