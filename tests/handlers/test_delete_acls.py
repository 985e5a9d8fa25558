"""DeleteAcls. What needs no right of the client is compared with a Kafka in tests/parity/test_access.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest


def of(name: str | None) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=name,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


async def test_without_an_authorizer(send: Any) -> None:
    answer = await send(DeleteAclsRequest(filters=[of(None)]), 3)
    assert [each.error_code for each in answer.filter_results] == [ErrorCode.SECURITY_DISABLED]


async def test_what_each_filter_has_taken(
    secured: Broker, sender_of: Callable[[Broker], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    acls = [
        Acl(
            AclResourceType.TOPIC,
            name,
            PatternType.LITERAL,
            "User:a",
            "*",
            AclOperation.READ,
            AclPermission.ALLOW,
        )
        for name in ("a", "b")
    ]
    assert secured.authorizer is not None
    await secured.authorizer.acls.create(acls)

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    request = DeleteAclsRequest(filters=[of("a"), of("none"), of("a")])
    with monkeypatch.context() as patch:
        patch.setattr(secured.metadata, "change_acls", refuse)
        answer = await sender_of(secured)(request, 3)
        assert {each.error_code for each in answer.filter_results} == {ErrorCode.KAFKA_STORAGE_ERROR}
    answer = await sender_of(secured)(request, 3)
    assert [[acl.resource_name for acl in each.matching_acls] for each in answer.filter_results] == [
        ["a"],
        [],
        ["a"],
    ]
    assert list(secured.authorizer.acls) == acls[1:]


async def test_numbers_that_stand_for_nothing(secured: Broker, sender_of: Callable[[Broker], Any]) -> None:
    request = DeleteAclsRequest(filters=[of(None), replace(of(None), permission_type=9)])
    answer = await sender_of(secured)(request, 3)
    assert [each.error_code for each in answer.filter_results] == [ErrorCode.INVALID_REQUEST] * 2
