"""CreateAcls. What needs no right of the client is compared with a Kafka in tests/parity/test_access.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers import create_acls
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.create_acls import AclCreation, CreateAclsRequest


def creation(**more: Any) -> AclCreation:
    fields = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**{**fields, **more})


async def test_without_an_authorizer(send: Any) -> None:
    answer = await send(CreateAclsRequest(creations=[creation(), creation()]), 3)
    assert [each.error_code for each in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2


async def test_each_is_refused_by_itself(secured: Broker, sender_of: Callable[[Broker], Any]) -> None:
    request = CreateAclsRequest(
        creations=[
            creation(),
            creation(operation=99),
            creation(resource_type=4),
            creation(resource_type=4, resource_name="kafka-cluster", operation=7),
        ]
    )
    answer = await sender_of(secured)(request, 3)
    assert [each.error_code for each in answer.results] == [0, 42, 42, 0]
    assert answer.results[1].error_message == "Unknown AclOperation 99"
    assert secured.authorizer is not None and len(secured.authorizer.acls) == 2


async def test_those_that_the_disk_refuses(
    secured: Broker, sender_of: Callable[[Broker], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(secured.metadata, "change_acls", refuse)
    request = CreateAclsRequest(creations=[creation(), creation(resource_name="")])
    answer = await sender_of(secured)(request, 3)
    assert [each.error_code for each in answer.results] == [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_REQUEST,
    ]


async def test_too_many_at_once(
    secured: Broker, sender_of: Callable[[Broker], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_acls, "MOST_AT_ONCE", 1)
    request = CreateAclsRequest(creations=[creation(), creation(operation=4)])
    answer = await sender_of(secured)(request, 3)
    assert [each.error_code for each in answer.results] == [ErrorCode.POLICY_VIOLATION] * 2
