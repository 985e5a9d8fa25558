"""Ten thousand ACLs are found by names, not looked through. The rules themselves: test_authorizer.py."""

from __future__ import annotations

from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.state.security.acl_rules import AclRules


def test_ten_thousand_acls_are_not_looked_through() -> None:
    looked = 0

    class Counted(Acl):
        __slots__ = ()

        @property
        def operations(self) -> int:
            nonlocal looked
            looked += 1
            return Acl.operations.__get__(self)

    kinds = [PatternType.LITERAL, PatternType.PREFIXED]
    acls = [
        Counted(
            AclResourceType.TOPIC,
            f"topic-{number:05}",
            kinds[number % 2],
            f"User:{number % 100}",
            "*",
            AclOperation.READ,
            AclPermission.ALLOW,
        )
        for number in range(10_000)
    ]
    rules = AclRules(acls, [], allow_if_no_acl=False)
    found = rules.operations("User:1", "10.0.0.1", AclResourceType.TOPIC, "topic-00001-of-mine")
    assert found >> AclOperation.READ & 1
    assert looked == 1
    assert rules.operations("User:1", "10.0.0.1", AclResourceType.TOPIC, "unheard-of") == 0
    assert looked == 1
    for acl in acls:
        rules.remove(acl)
    empty = AclRules([], [], allow_if_no_acl=False)
    patterns = rules._of_all.values()  # nothing of them is left
    assert all(not list(each.all()) and not each._lengths for each in patterns)
    assert empty.operations("User:1", "h", AclResourceType.TOPIC, "topic-00001") == 0
