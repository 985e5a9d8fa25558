"""Clients that go on with what they may not, or may not any more, over the network; and names that look like others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest
from trio.testing import wait_all_tasks_blocked

from leafcuttr.client.sasl.scram import Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.errors import ErrorCode
from leafcuttr.server.repeated_produce import RepeatedProduce
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion
from leafcuttr.wire.messages.create_acls import AclCreation, CreateAclsRequest
from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.live_broker import LiveBroker, live_broker
from support.logs import batch
from support.wire_client import WireClient

SCRAM, SHA_256 = "SCRAM-SHA-256", ScramMechanism.SCRAM_SHA_256
ODD_NAMES = [
    "a\0b",
    "alice\0",
    "a,b=c",
    "alice,r=x",
    "=2C",
    "*",
    "User:alice",
    "alice;User:bob",
    "ANONYMOUS ",
    "ü\n",
]


class Secured(NamedTuple):
    broker: LiveBroker

    def user(self, name: str, *acls: Acl) -> None:
        upsertion = CredentialUpsertion(name, SHA_256, new_credential(SHA_256, b"secret", 4096))
        self.broker.run(self.broker.broker.users.alter, [upsertion], [])
        if acls:
            authorizer = self.broker.broker.authorizer
            assert authorizer is not None
            self.broker.run(authorizer.acls.create, acls)

    def client(self, name: str) -> WireClient:
        """One that has logged in as this user."""
        found = WireClient(self.broker.address)
        found.socket.settimeout(60)
        ours = Scram(ClientSasl(mechanism=SCRAM, username=name, password="secret"))
        assert found.ask(SaslHandshakeRequest(mechanism=SCRAM), 1).error_code == 0
        challenge = found.ask(SaslAuthenticateRequest(auth_bytes=ours.first()), 2)
        last = found.ask(
            SaslAuthenticateRequest(auth_bytes=ours.respond(bytes(challenge.auth_bytes)) or b""), 2
        )
        assert last.error_code == 0
        return found


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": SCRAM,
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:bob",
    }
    with live_broker(tmp_path_factory.mktemp("secured") / "data", settings) as broker:
        broker.run(partial(broker.broker.topics.create, "t", 1, {}))
        yield Secured(broker)


def on_topic(name: str, operation: AclOperation, principal: str) -> Acl:
    topic, literal = AclResourceType.TOPIC, PatternType.LITERAL
    return Acl(topic, name, literal, principal, "*", operation, AclPermission.ALLOW)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_user_of_an_odd_name_is_nobody_else(secured: Secured, name: str) -> None:
    """It logs in, and has the rights of its own ACLs only, not those of super users or others whose names are like
    its own."""
    others = {"User:a", "User:b", "User:alice,r=x,", "User:,", "User:alice,", "User:ANONYMOUS", "User:ü"}
    secured.user(name, *(on_topic("t", AclOperation.WRITE, other) for other in others - {f"User:{name}"}))
    with secured.client(name) as client:
        assert client.produce("t", batch(1)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        secured.user(f"{name} other", own := on_topic("t", AclOperation.WRITE, f"User:{name}"))
        assert client.produce("t", batch(1)).error_code == 0
    authorizer = secured.broker.broker.authorizer
    assert authorizer is not None
    secured.broker.run(authorizer.acls.delete, [AclFilter(principal=own.principal)])


@pytest.mark.parametrize("name", ["t\0", "t,u", "a=b", "*x", " t", "T", "t."])
def test_an_acl_of_an_odd_name_is_for_that_name(secured: Secured, name: str) -> None:
    secured.user("alice")
    secured.user("carol")
    creation = AclCreation(
        resource_type=2,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:carol",
        host="*",
        operation=4,
        permission_type=3,
    )
    every = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=name,
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    with secured.client("alice") as client, secured.client("carol") as other:
        (made,) = client.ask(CreateAclsRequest(creations=[creation]), 3).results
        assert made.error_code == 0
        (found,) = client.ask(every, 3).resources
        assert found.resource_name == name
        assert other.produce("t", batch(1)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("gone", ["the right", "the user", "the password"])
def test_a_repeated_produce_after_its_right_is_gone(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """Requests that go the short way of those that repeat another one: the next one is refused, or not even read."""
    secured.user("dave", own := on_topic("t", AclOperation.WRITE, "User:dave"))
    broker, authorizer = secured.broker, secured.broker.broker.authorizer
    assert authorizer is not None
    taken: list[int] = []
    answer = RepeatedProduce.answer
    monkeypatch.setattr(RepeatedProduce, "answer", lambda self: (taken.append(self.count), answer(self))[1])
    with secured.client("dave") as client:
        for _ in range(6):
            assert client.produce("t", batch(1)).error_code == 0
        assert taken, "the short way has been taken"
        if gone == "the right":
            broker.run(authorizer.acls.delete, [AclFilter(principal=own.principal)])
            assert client.produce("t", batch(1)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return
        before = broker.call(lambda: broker.log("t").log_end_offset)
        if gone == "the user":
            broker.run(broker.broker.users.alter, [], [CredentialDeletion("dave", SHA_256)])
        else:
            secured.user("dave")
        broker.run(wait_all_tasks_blocked)
        with pytest.raises(ConnectionError):
            client.produce("t", batch(1))
        assert broker.call(lambda: broker.log("t").log_end_offset) == before
