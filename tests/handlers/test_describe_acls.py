"""DescribeAcls. What needs no right of the client is compared with a Kafka in tests/parity/test_access.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest

EVERY = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


async def test_without_an_authorizer(send: Any) -> None:
    answer = await send(EVERY, 3)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    assert answer.error_message == "No Authorizer is configured on the broker"


async def test_numbers_that_stand_for_nothing(secured: Broker, sender_of: Callable[[Broker], Any]) -> None:
    answer = await sender_of(secured)(replace(EVERY, operation=99), 3)
    assert (answer.error_code, answer.error_message) == (42, "Unknown AclOperation 99")


async def test_acls_of_one_pattern_are_together(secured: Broker, sender_of: Callable[[Broker], Any]) -> None:
    def acl(name: str, operation: AclOperation) -> Acl:
        return Acl(
            AclResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", operation, AclPermission.ALLOW
        )

    assert secured.authorizer is not None
    await secured.authorizer.acls.create(
        [acl("a", AclOperation.READ), acl("b", AclOperation.READ), acl("a", AclOperation.WRITE)]
    )
    for version in (1, 2, 3):
        answer = await sender_of(secured)(EVERY, version)
        assert (answer.error_code, answer.error_message) == (0, "")
        found = {one.resource_name: [each.operation for each in one.acls] for one in answer.resources}
        assert found == {"a": [3, 4], "b": [3]}
