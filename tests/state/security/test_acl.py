"""What an ACL covers, and which ACLs a filter takes."""

from __future__ import annotations

import pytest

from leafcuttr.state.security.acl import (
    OPERATIONS_ON,
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    bit_set,
)


def acl(
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    operation: AclOperation = AclOperation.READ,
    permission: AclPermission = AclPermission.ALLOW,
) -> Acl:
    return Acl(AclResourceType.TOPIC, name, pattern, "User:alice", "*", operation, permission)


@pytest.mark.parametrize(
    ("operation", "implied"),
    [
        (AclOperation.READ, [AclOperation.DESCRIBE]),
        (AclOperation.WRITE, [AclOperation.DESCRIBE]),
        (AclOperation.DELETE, [AclOperation.DESCRIBE]),
        (AclOperation.ALTER, [AclOperation.DESCRIBE]),
        (AclOperation.ALTER_CONFIGS, [AclOperation.DESCRIBE_CONFIGS]),
        (AclOperation.CREATE, []),
        (AclOperation.DESCRIBE, []),
    ],
)
def test_what_is_allowed_may_imply_more_and_what_is_denied_does_not(
    operation: AclOperation, implied: list[AclOperation]
) -> None:
    assert acl(operation=operation).operations == bit_set(operation, *implied)
    assert acl(operation=operation, permission=AclPermission.DENY).operations == bit_set(operation)


def test_all_is_every_operation() -> None:
    for permission in (AclPermission.ALLOW, AclPermission.DENY):
        every = acl(operation=AclOperation.ALL, permission=permission).operations
        assert all(known & ~every == 0 for known in OPERATIONS_ON.values())
        assert every & bit_set(AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL) == 0


def test_operations_as_kafka_numbers_them() -> None:
    known = [
        OPERATIONS_ON[each]
        for each in (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER)
    ]
    assert known == [3576, 3400, 8096]


def test_which_names_are_covered() -> None:
    assert acl("orders").covers("orders") and not acl("orders").covers("orders-eu")
    assert acl("*").covers("anything")
    assert acl("ord", PatternType.PREFIXED).covers("orders")
    assert not acl("ord", PatternType.PREFIXED).covers("or")
    assert not acl("*", PatternType.PREFIXED).covers("orders"), "a prefix is a prefix, whatever it is"


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (AclFilter(), True),
        (AclFilter(AclResourceType.GROUP), False),
        (AclFilter(name="ord"), True),
        (AclFilter(name="orders"), False),
        (AclFilter(name="orders", pattern_type=PatternType.MATCH), True),
        (AclFilter(name="or", pattern_type=PatternType.MATCH), False),
        (AclFilter(pattern_type=PatternType.MATCH), True),
        (AclFilter(name="ord", pattern_type=PatternType.LITERAL), False),
        (AclFilter(name="ord", pattern_type=PatternType.PREFIXED), True),
        (AclFilter(principal="User:alice"), True),
        (AclFilter(principal="User:bob"), False),
        (AclFilter(host="*"), True),
        (AclFilter(host="10.0.0.1"), False),
        (AclFilter(operation=AclOperation.READ), True),
        (AclFilter(operation=AclOperation.ALL), False),
        (AclFilter(permission=AclPermission.DENY), False),
    ],
)
def test_filters(wanted: AclFilter, taken: bool) -> None:
    assert wanted.takes(acl("ord", PatternType.PREFIXED)) is taken


def test_as_text() -> None:
    assert str(acl()) == "allow User:alice READ on topic orders from *"
    assert str(acl(pattern=PatternType.PREFIXED, permission=AclPermission.DENY)) == (
        "deny User:alice READ on topic prefixed orders from *"
    )
