"""The authorizer's answers: Kafka's rules one by one, and against a search through all ACLs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security import authorizer as module
from leafcuttr.state.security.acl import (
    EVERYBODY,
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.acls import Acls
from leafcuttr.state.security.authorizer import StandardAuthorizer
from leafcuttr_sdk.principals import Principal
from support.gates_slice import sampled

TOPIC = AclResourceType.TOPIC
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
HOST = "10.0.0.1"

Make = Callable[..., StandardAuthorizer]


def client(name: str, host: str = HOST) -> ClientIdentity:
    return ClientIdentity(Principal("User", name), "L", "PLAINTEXT", host, 1)


ALICE = client("alice")


def acl(
    name: str,
    pattern: PatternType = LITERAL,
    principal: str = "User:alice",
    operation: AclOperation = READ,
    permission: AclPermission = ALLOW,
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


@pytest.fixture
def acls(tmp_path: Path) -> Iterator[Acls]:
    metadata = MetadataStore.open(tmp_path)
    yield Acls(metadata)
    metadata.close()


async def test_nothing_is_allowed_that_no_acl_allows(acls: Acls) -> None:
    found = StandardAuthorizer(acls, ["User:root"], allow_if_no_acl=False)
    assert not found.allows(ALICE, READ, TOPIC, "orders")
    assert found.allows(client("root"), READ, TOPIC, "orders")
    assert found.operations(ALICE, TOPIC, "orders") == 0
    await acls.create([acl("orders")])
    assert found.allows(ALICE, READ, TOPIC, "orders") and found.allows(ALICE, DESCRIBE, TOPIC, "orders")
    assert not found.allows(ALICE, WRITE, TOPIC, "orders")
    assert not found.allows(ALICE, READ, TOPIC, "order") and not found.allows(ALICE, READ, TOPIC, "orders2")
    assert not found.allows(ALICE, READ, AclResourceType.GROUP, "orders")
    assert not found.allows(client("bob"), READ, TOPIC, "orders")
    before = found.version
    await acls.delete([AclFilter(name="orders")])
    assert found.version > before
    assert not found.allows(ALICE, READ, TOPIC, "orders")


async def test_everybody_where_there_is_no_acl_at_all(acls: Acls) -> None:
    found = StandardAuthorizer(acls, [], allow_if_no_acl=True)
    assert found.allows(ALICE, AclOperation.ALTER, TOPIC, "orders")
    await acls.create([acl("ord", PREFIXED, "User:bob")])
    assert not found.allows(ALICE, READ, TOPIC, "orders"), "there is one, of somebody else"
    assert found.allows(ALICE, READ, TOPIC, "other")
    await acls.create([acl("*", LITERAL, "User:bob")])
    assert not found.allows(ALICE, READ, TOPIC, "other")


async def test_one_that_denies_wins(acls: Acls) -> None:
    found = StandardAuthorizer(acls, ["User:root"], allow_if_no_acl=False)
    await acls.create([acl("*", principal=EVERYBODY), acl("secret", PREFIXED, EVERYBODY, READ, DENY)])
    assert found.allows(ALICE, READ, TOPIC, "orders")
    assert not found.allows(ALICE, READ, TOPIC, "secrets")
    assert found.allows(ALICE, DESCRIBE, TOPIC, "secrets"), "a denied READ denies no DESCRIBE"
    assert found.allows(client("root"), READ, TOPIC, "secrets"), "super users are above it"


async def test_from_some_address_only(acls: Acls) -> None:
    found = StandardAuthorizer(acls, [], allow_if_no_acl=False)
    await acls.create([acl("orders", host=HOST)])
    assert found.allows(ALICE, READ, TOPIC, "orders")
    assert not found.allows(client("alice", "10.0.0.2"), READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("given", "client_host", "counts"),
    [
        ("2001:db8:0:0:0:0:0:1", "2001:db8::1", True),
        ("2001:DB8::1", "2001:db8::1", True),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("2001:db8:0:0:0:0:0:2", "2001:db8::1", False),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0", True),
        ("fe80::1%eth1", "fe80::1%eth0", False),
        ("fe80::1", "fe80::1%eth0", False),
        ("::ffff:10.0.0.1", "10.0.0.1", False),
        ("no:address", "no:address", True),
        ("no:address", "::1", False),
    ],
)
async def test_an_ipv6_address_has_many_forms(acls: Acls, given: str, client_host: str, counts: bool) -> None:
    """Kafka knows an address by all its groups, so that is what stands in ACLs that come from there: one that denies
    must not be without effect here."""
    found = StandardAuthorizer(acls, [], allow_if_no_acl=False)
    await acls.create(
        [acl("open"), acl("*", permission=DENY, host=given), acl("w", operation=WRITE, host=given)]
    )
    who = client("alice", client_host)
    assert found.allows(who, READ, TOPIC, "open") is not counts
    assert found.allows_on_some(who, WRITE, TOPIC) is counts
    assert found.rules.verdict("User:alice", client_host, READ, TOPIC, "open").allowed is not counts


async def test_why(acls: Acls) -> None:
    found = StandardAuthorizer(acls, ["User:root"], allow_if_no_acl=True)
    allowing, denying = acl("ord", PREFIXED), acl("*", principal=EVERYBODY, operation=WRITE, permission=DENY)
    await acls.create([allowing, denying])

    def why(principal: str, operation: AclOperation, name: str) -> tuple[bool, str]:
        return found.rules.verdict(principal, HOST, operation, TOPIC, name)

    assert why("User:root", READ, "orders") == (True, "super user")
    assert why("User:alice", READ, "orders") == (True, str(allowing))
    assert why("User:alice", WRITE, "orders") == (False, str(denying))
    assert why("User:bob", READ, "orders") == (False, "no ACL allows it")
    assert found.rules.verdict("User:bob", HOST, READ, AclResourceType.GROUP, "g") == (
        True,
        "no ACL of this resource",
    )


@pytest.mark.parametrize(
    ("given_acls", "allowed"),
    [
        ([], False),
        ([acl("a", operation=WRITE)], True),
        ([acl("a", operation=AclOperation.ALL)], True),
        ([acl("a", operation=READ)], False),
        ([acl("a", operation=WRITE, principal=EVERYBODY)], True),
        ([acl("a", operation=WRITE, principal="User:bob")], False),
        ([acl("a", operation=WRITE, host="10.9.9.9")], False),
        ([acl("a", operation=WRITE), acl("a", operation=WRITE, permission=DENY)], False),
        ([acl("ab", operation=WRITE), acl("a", PREFIXED, operation=WRITE, permission=DENY)], False),
        ([acl("ab", PREFIXED, operation=WRITE), acl("abc", operation=WRITE, permission=DENY)], True),
        ([acl("a", operation=WRITE), acl("*", operation=WRITE, permission=DENY)], False),
        ([acl("*", operation=WRITE), acl("a", PREFIXED, operation=WRITE, permission=DENY)], True),
        ([acl("a", operation=WRITE), acl("b", operation=WRITE, permission=DENY)], True),
    ],
)
async def test_on_some_resource(acls: Acls, given_acls: list[Acl], allowed: bool) -> None:
    found = StandardAuthorizer(acls, ["User:root"], allow_if_no_acl=False)
    assert not found.allows_on_some(ALICE, WRITE, TOPIC)
    await acls.create(given_acls)
    for _ in range(2):
        assert found.allows_on_some(ALICE, WRITE, TOPIC) is allowed
    assert found.allows_on_some(client("root"), WRITE, TOPIC)


async def test_what_is_remembered_is_bounded(acls: Acls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    found = StandardAuthorizer(acls, [], allow_if_no_acl=False)
    await acls.create([acl("t", PREFIXED)])
    for number in range(100):
        who = client(f"u{number % 7}") if number % 2 else ALICE
        assert found.allows(who, READ, TOPIC, f"t{number}") is (who is ALICE)
        kept = found._remembered.values()  # its size is the point
        assert len(kept) + sum(len(each.operations) for each in kept) <= 10
    assert found.allows(ALICE, READ, TOPIC, "t" * 1000)
    assert not any("t" * 1000 in name for each in found._remembered.values() for _, name in each.operations)


names = st.sampled_from(["*", "a", "ab", "abc", "abd", "b", "ba"])
one_acl = st.builds(
    Acl,
    st.sampled_from([TOPIC, AclResourceType.GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", EVERYBODY]),
    st.sampled_from(["*", HOST, "10.0.0.2"]),
    st.sampled_from(list(AclOperation)[2:]),
    st.sampled_from([ALLOW, DENY]),
)


def searched(every: list[Acl], operation: AclOperation, name: str, default: bool) -> bool:
    """Kafka's rules, by looking at each ACL."""
    of_resource = [one for one in every if one.resource_type == TOPIC and one.covers(name)]
    if not of_resource:
        return default
    count = [
        one
        for one in of_resource
        if one.principal in ("User:alice", EVERYBODY)
        and one.host in ("*", HOST)
        and one.operations >> operation & 1
    ]
    return bool(count) and all(one.permission == ALLOW for one in count)


@given(made=st.lists(one_acl, max_size=12), gone=st.lists(st.integers(0, 11)), default=st.booleans())
@settings(
    max_examples=sampled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_as_a_search_through_all_acls(
    acls: Acls, made: list[Acl], gone: list[int], default: bool
) -> None:
    await acls.delete([AclFilter()])
    found = StandardAuthorizer(acls, [], allow_if_no_acl=default)
    await acls.create(made)
    deleted = {made[number] for number in gone if number < len(made)}
    await acls.delete([AclFilter(*one) for one in deleted])
    left = [one for one in dict.fromkeys(made) if one not in deleted]
    afresh = StandardAuthorizer(acls, [], allow_if_no_acl=default)
    for name in ("*", "a", "ab", "abc", "abcd", "c"):
        for operation in list(AclOperation)[3:]:
            expected = searched(left, operation, name, default)
            for each in (found, afresh):
                assert each.allows(ALICE, operation, TOPIC, name) is expected
                assert each.rules.verdict("User:alice", HOST, operation, TOPIC, name).allowed is expected
