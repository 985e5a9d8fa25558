"""Every API, with and without each right of the table. Beside a Kafka: tests/parity/test_access.py."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import (
    CLUSTER_ACTION,
    CREATE_TOKENS_OF_USER,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTION,
    NEEDS,
    WRITE_TOPIC,
    WRITE_TRANSACTION,
    Right,
    denied,
)
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
    PatternType,
    ResourceType,
)
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from parity.access import Admin, Walk, settings
from parity.side import Side, error_codes
from support.broker_process import running_broker
from support.real_kafka import properties
from support.waiting import free_port

REFUSED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
# What a client without the right is not told by an error: something is left out, or it is of another version.
SILENT: frozenset[tuple[ApiKey, Right]] = frozenset(
    {
        (ApiKey.METADATA, DESCRIBE_CLUSTER),
        (ApiKey.DESCRIBE_CLUSTER, DESCRIBE_CLUSTER),
        (ApiKey.CREATE_TOPICS, DESCRIBE_TOPIC_CONFIGS),
        (ApiKey.DESCRIBE_TRANSACTIONS, DESCRIBE_TOPIC),
        (ApiKey.LIST_TRANSACTIONS, DESCRIBE_TRANSACTION),
        (ApiKey.FETCH, CLUSTER_ACTION),
        # A client that has not logged in is refused before.
        (ApiKey.CREATE_DELEGATION_TOKEN, CREATE_TOKENS_OF_USER),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKEN),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS_OF_USER),
        (ApiKey.ADD_PARTITIONS_TO_TXN, WRITE_TRANSACTION),
        (ApiKey.ADD_PARTITIONS_TO_TXN, WRITE_TOPIC),
    }
)
# Lists that leave out what may not be seen; what is refused before rights count.
UNREFUSED: frozenset[tuple[str, str]] = frozenset(
    {
        ("ALTER_CONFIGS", "of a kind that there is not"),
        ("CREATE_DELEGATION_TOKEN", "of another"),
        ("DESCRIBE_CLUSTER", "operations"),
        ("DESCRIBE_DELEGATION_TOKEN", "all"),
        ("DESCRIBE_TOPIC_PARTITIONS", "all"),
        ("INCREMENTAL_ALTER_CONFIGS", "of a kind that there is not"),
        ("LIST_GROUPS", "all"),
        ("LIST_TRANSACTIONS", "all"),
        ("METADATA", "all"),
        ("PRODUCE", "to none"),
        ("SYNC_GROUP", "without a protocol"),
    }
)
Codes = dict[tuple[str, ApiKey], set[int]]


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Codes:
    """The errors of the answers to each API in its newest version, by the rights of the client."""
    folder = tmp_path_factory.mktemp("access")
    port, admin_port, controller = free_port(), free_port(), free_port()
    file = properties(folder, port, controller)
    file.write_text("\n".join((file.read_text(), *settings(port, admin_port, controller), "")))
    found: Codes = defaultdict(set)
    with running_broker(folder, config=file):
        side, admin = Side("127.0.0.1", port, "access"), Admin("127.0.0.1", admin_port, "access")
        Walk(side, admin).run(lambda key: (APIS[key].max_version,))
        for one in side.exchanges:
            state, _, case = one.case.partition(": ")
            assert not isinstance(one.answer, str), (one.api, one.case, one.answer)
            refused = set(error_codes(one.answer))
            found[state, ApiKey[one.api.upper()]] |= refused
            if state == "nothing" and not refused & REFUSED:
                found[f"nothing: {case}", ApiKey[one.api.upper()]] = refused
        side.close()
        admin.close()
    return found


def test_every_api_is_in_the_table() -> None:
    assert list(NEEDS) == list(APIS)


@pytest.mark.parametrize("key", [key for key, needs in NEEDS.items() if needs], ids=lambda key: key.name)
def test_with_all_rights_nothing_is_refused_and_without_each_it_is(codes: Codes, key: ApiKey) -> None:
    assert not codes["everything", key] & REFUSED
    for need in NEEDS[key]:
        for right in need.rights:
            refused = codes[f"all but {right}", key] & REFUSED
            needed = len(need.rights) == 1 and (key, right) not in SILENT
            assert refused == ({right.error} if needed else set()), right
    silent = all((key, right) in SILENT for need in NEEDS[key] for right in need.rights) or key in (
        ApiKey.LIST_GROUPS,
    )
    assert bool(codes["nothing", key] & REFUSED) != silent


def test_what_a_client_without_rights_is_not_refused(codes: Codes) -> None:
    told = {(key.name, state.partition(": ")[2]) for state, key in codes if state.startswith("nothing: ")}
    assert told == UNREFUSED


@pytest.mark.parametrize(
    "right",
    dict.fromkeys(right for needs in NEEDS.values() for need in needs for right in need.rights),
    ids=str,
)
def test_the_error_of_a_right(right: Right) -> None:
    assert denied(right, "because").code == right.error
    assert denied(right, "because").message == "because"
    assert right.error in REFUSED and right.words.endswith("authorization failed.")


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
    return Acl(ResourceType.TOPIC, topic, PatternType.LITERAL, principal, "*", operation, AclPermission.ALLOW)


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
    token = await broker.delegation_tokens.create(bob, bob, [], -1)

    def acl(resource_type: ResourceType, name: str, operation: AclOperation) -> Acl:
        return Acl(resource_type, name, PatternType.LITERAL, str(alice), "*", operation, AclPermission.ALLOW)

    def rights() -> tuple[bool, bool]:
        return may_act_for(broker, context, bob), may_see(broker, context, token)

    acls = broker.authorizer.acls
    assert rights() == (False, False)
    await acls.create([acl(ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS)])
    assert rights() == (True, False)
    await acls.create([acl(ResourceType.DELEGATION_TOKEN, token.id, AclOperation.DESCRIBE)])
    assert rights() == (True, True)
    await acls.delete([AclFilter()])
    await acls.create([acl(ResourceType.USER, "User:bob", AclOperation.DESCRIBE_TOKENS)])
    assert rights() == (False, True)
