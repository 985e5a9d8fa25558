"""What an authorizer, its settings and the audit log make of requests. Every API: test_access_table.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import context_of
from leafcuttr.handlers.delegation_tokens import may_act_for, may_see
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import Principal
from leafcuttr.state.security import AUDIT_LOGGER
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Open = Callable[..., Broker]


async def refused_names(broker: Broker, send: Any, *names: str) -> list[str]:
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer = await send(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    return [one.name for one in answer.topics if one.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.setting("authorizer.class.name")
async def test_without_an_authorizer_everything_is_allowed(
    open_test_broker: Open, sender_of: Callable[[Broker], Any]
) -> None:
    broker = open_test_broker()
    assert broker.authorizer is None and broker.audit is None
    assert await refused_names(broker, sender_of(broker), "a") == []
    broker = open_test_broker({"authorizer.class.name": STANDARD})
    assert await refused_names(broker, sender_of(broker), "a") == ["a"]


@pytest.mark.setting("super.users")
async def test_super_users(open_test_broker: Open, sender_of: Callable[[Broker], Any]) -> None:
    for users, refused in (("User:x; User:ANONYMOUS", []), ("User:x", ["a"]), (" ; ", ["a"])):
        broker = open_test_broker({"authorizer.class.name": STANDARD, "super.users": users})
        assert await refused_names(broker, sender_of(broker), "a") == refused


@pytest.mark.setting("allow.everyone.if.no.acl.found")
async def test_where_there_is_no_acl(open_test_broker: Open, sender_of: Callable[[Broker], Any]) -> None:
    broker = open_test_broker({"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"})
    assert broker.authorizer is not None
    await broker.authorizer.acls.create([acl_of("User:somebody", "a", AclOperation.READ)])
    assert await refused_names(broker, sender_of(broker), "a", "b") == ["a"]


def acl_of(principal: str, topic: str, operation: AclOperation) -> Acl:
    return Acl(
        AclResourceType.TOPIC, topic, PatternType.LITERAL, principal, "*", operation, AclPermission.ALLOW
    )


async def test_what_is_denied_is_in_the_audit_log(
    open_test_broker: Open, sender_of: Callable[[Broker], Any], caplog: pytest.LogCaptureFixture
) -> None:
    await audited("denied", [False], open_test_broker, sender_of, caplog)


@pytest.mark.setting("lc.audit.log")
@pytest.mark.parametrize(("what", "logged"), [("all", [True, False]), ("off", [])])
async def test_all_or_nothing_in_the_audit_log(
    open_test_broker: Open,
    sender_of: Callable[[Broker], Any],
    caplog: pytest.LogCaptureFixture,
    what: str,
    logged: list[bool],
) -> None:
    await audited(what, logged, open_test_broker, sender_of, caplog)


async def audited(
    what: str,
    logged: list[bool],
    open_test_broker: Open,
    sender_of: Callable[[Broker], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = open_test_broker({"authorizer.class.name": STANDARD, "lc.audit.log": what})
    assert broker.authorizer is not None
    await broker.authorizer.acls.create([acl_of("User:ANONYMOUS", "a", AclOperation.READ)])
    await refused_names(broker, sender_of(broker), "a", "b")
    # A list of all topics leaves out what may not be seen, which nobody has requested.
    await sender_of(broker)(MetadataRequest(topics=None), 12)
    lines = [json.loads(each.message) for each in caplog.records if each.name == AUDIT_LOGGER]
    assert [each["allowed"] for each in lines] == logged
    assert all(each["rule"] for each in lines)


async def test_tokens_of_others(open_test_broker: Open) -> None:
    broker = open_test_broker({"authorizer.class.name": STANDARD, "delegation.token.secret.key": "s"})
    assert broker.authorizer is not None
    alice, bob = Principal("User", "alice"), Principal("User", "bob")
    context = context_of(Listener("SASL", "h", 1, "h", 1, "SASL_PLAINTEXT"), "10.0.0.1", 1, 1)
    context.client = context.client._replace(principal=alice)
    assert broker.delegation_tokens is not None
    token = await broker.delegation_tokens.create(bob, bob, [], -1)

    def acl(resource_type: AclResourceType, name: str, operation: AclOperation) -> Acl:
        return Acl(resource_type, name, PatternType.LITERAL, str(alice), "*", operation, AclPermission.ALLOW)

    def rights() -> tuple[bool, bool]:
        return may_act_for(broker, context, bob), may_see(broker, context, token)

    acls = broker.authorizer.acls
    assert rights() == (False, False)
    await acls.create([acl(AclResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS)])
    assert rights() == (True, False)
    await acls.create([acl(AclResourceType.DELEGATION_TOKEN, token.id, AclOperation.DESCRIBE)])
    assert rights() == (True, True)
    await acls.delete([AclFilter()])
    await acls.create([acl(AclResourceType.USER, "User:bob", AclOperation.DESCRIBE_TOKENS)])
    assert rights() == (False, True)
