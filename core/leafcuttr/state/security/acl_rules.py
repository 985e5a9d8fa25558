"""The rules of Kafka's StandardAuthorizer over a set of ACLs, found by the names of resources. No verdict is kept."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from leafcuttr.state.security.acl import (
    EVERYBODY,
    WILDCARD,
    Acl,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

EVERYTHING: Final = -1
"""As a bit set of operations."""


class Verdict(NamedTuple):
    """Whether something is allowed, and the rule that decides."""

    allowed: bool
    rule: str


class AclRules:
    """See the module. `authorizer` has the rules in words."""

    def __init__(self, acls: Iterable[Acl], super_users: Iterable[str], *, allow_if_no_acl: bool) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._by_principal: dict[tuple[str, AclResourceType], _Patterns] = {}
        self._of_all: dict[AclResourceType, _Patterns] = {}
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        for patterns in self._patterns(acl):
            patterns.add(acl)

    def remove(self, acl: Acl) -> None:
        for patterns in self._patterns(acl):
            patterns.remove(acl)

    def operations(self, principal: str, host: str, resource_type: AclResourceType, name: str) -> int:
        """All that is allowed on the resource, as a bit set."""
        if principal in self._super_users:
            return EVERYTHING
        allowed = denied = 0
        any_counts = False
        for acl in self._that_count(principal, host, resource_type, name):
            any_counts = True
            if acl.permission == AclPermission.DENY:
                denied |= acl.operations
            else:
                allowed |= acl.operations
        if not any_counts and self._allow_if_no_acl and not self._has_acl(resource_type, name):
            return EVERYTHING
        return allowed & ~denied

    def verdict(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> Verdict:
        """Whether one of these operations is allowed, and why."""
        if principal in self._super_users:
            return Verdict(True, "super user")
        allowing: Acl | None = None
        for acl in self._that_count(principal, host, resource_type, name):
            if acl.operations >> operation & 1:
                if acl.permission == AclPermission.DENY:
                    return Verdict(False, str(acl))
                allowing = allowing or acl
        if allowing is not None:
            return Verdict(True, str(allowing))
        if self._has_acl(resource_type, name):
            return Verdict(False, "no ACL allows it")
        return Verdict(self._allow_if_no_acl, "no ACL of this resource")

    def on_some(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether it is allowed on some resource of the type, whichever: as the default of Kafka's
        `Authorizer.authorizeByResourceType`, which implies no operations."""
        # Any name: super users, and everybody where there is no ACL.
        if self.operations(principal, host, resource_type, "hardcode") >> operation & 1:
            return True
        allowed: set[tuple[PatternType, str]] = set()
        denied: set[tuple[PatternType, str]] = set()
        for each in (principal, EVERYBODY):
            patterns = self._by_principal.get((each, resource_type))
            for acl in patterns.all() if patterns is not None else ():
                if _counts_from(acl, host) and acl.operation in (operation, AclOperation.ALL):
                    of = denied if acl.permission == AclPermission.DENY else allowed
                    of.add((acl.pattern_type, acl.name))
        everything = (PatternType.LITERAL, WILDCARD)
        if everything in denied or everything in allowed:
            return everything not in denied
        return any(
            (kind, name) not in denied
            and not any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
            for kind, name in allowed
        )

    def _patterns(self, acl: Acl) -> "tuple[_Patterns, _Patterns]":
        key = acl.principal, acl.resource_type
        own, every = self._by_principal.get(key), self._of_all.get(acl.resource_type)
        if own is None:
            own = self._by_principal[key] = _Patterns()
        if every is None:
            every = self._of_all[acl.resource_type] = _Patterns()
        return own, every

    def _that_count(
        self, principal: str, host: str, resource_type: AclResourceType, name: str
    ) -> Iterator[Acl]:
        for each in (principal, EVERYBODY):
            patterns = self._by_principal.get((each, resource_type))
            if patterns is not None:
                for acl in patterns.of(name):
                    if _counts_from(acl, host):
                        yield acl

    def _has_acl(self, resource_type: AclResourceType, name: str) -> bool:
        patterns = self._of_all.get(resource_type)
        return patterns is not None and any(True for _ in patterns.of(name))


def is_of_clients(host: str) -> bool:
    """Whether a client can come from this host of an ACL: `*`, or an IP address as clients have it. Names, networks and
    IPv4 addresses with leading zeros are compared as they are, and so never match."""
    if host == WILDCARD:
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _counts_from(acl: Acl, host: str) -> bool:
    """Whether the ACL is for clients at this address. An IPv6 address has many forms: Kafka's tools, and so the ACLs of
    its operators, have the one with all its groups, `2001:db8:0:0:0:0:0:1`."""
    return acl.host in (WILDCARD, host) or (
        ":" in acl.host and ":" in host and _plain(acl.host) == _plain(host)
    )


def _plain(host: str) -> str:
    """An IPv6 address in its one short form, with its scope; what is none stays."""
    address, percent, scope = host.partition("%")
    try:
        return str(IPv6Address(address)) + percent + scope
    except ValueError:
        return host


class _Patterns:
    """ACLs of one type of resource, found by the names of resources. Those of most principals are asked for by nobody:
    what is added is ordered at the first question."""

    __slots__ = ("_added", "_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._added: list[Acl] = []
        self._literal: dict[str, dict[Acl, None]] = {}
        self._prefixed: dict[str, dict[Acl, None]] = {}
        self._lengths: dict[int, int] = {}  # of prefixes, and how many there are of each

    def add(self, acl: Acl) -> None:
        self._added.append(acl)

    def _order(self) -> None:
        added, self._added = self._added, []
        for acl in added:
            if acl.pattern_type == PatternType.LITERAL:
                self._literal.setdefault(acl.name, {})[acl] = None
                continue
            if acl.name not in self._prefixed:
                self._prefixed[acl.name] = {}
                self._lengths[len(acl.name)] = self._lengths.get(len(acl.name), 0) + 1
            self._prefixed[acl.name][acl] = None

    def remove(self, acl: Acl) -> None:
        self._order()
        of_kind = self._literal if acl.pattern_type == PatternType.LITERAL else self._prefixed
        of_name = of_kind[acl.name]
        del of_name[acl]
        if of_name:
            return
        del of_kind[acl.name]
        if acl.pattern_type == PatternType.PREFIXED:
            self._lengths[len(acl.name)] -= 1
            if not self._lengths[len(acl.name)]:
                del self._lengths[len(acl.name)]

    def of(self, name: str) -> Iterator[Acl]:
        """Those that cover a resource of this name."""
        if self._added:
            self._order()
        yield from self._literal.get(name, ())
        if name != WILDCARD:
            yield from self._literal.get(WILDCARD, ())
        for length in self._lengths:
            if length <= len(name):
                yield from self._prefixed.get(name[:length], ())

    def all(self) -> Iterator[Acl]:
        self._order()
        for of_kind in (self._literal, self._prefixed):
            for of_name in of_kind.values():
                yield from of_name
