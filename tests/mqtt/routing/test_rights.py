"""What clients may do with topics: which resources stand for a topic, and how long an answer is remembered."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from leafcuttr_mqtt.mapping.rules import make_rules
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.guarded_router import GuardedRouter
from leafcuttr_mqtt.routing.hub import Hub
from leafcuttr_mqtt.routing.rights import Publishing, Rights, Who
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.none import NoStore
from leafcuttr_mqtt.storage.state import Recovered, SessionRecord
from leafcuttr_sdk.principals import Principal
from leafcuttr_sdk.security import CLUSTER_NAME, LOCALHOST, Operation, ResourceType
from support.mqtt_routing import Noted, Rig

ALICE, BOB = (Who(Principal("User", name), "10.0.0.7") for name in ("alice", "bob"))


class Security:
    """What is allowed is in a set: principal, operation, name."""

    authorizes = True

    def __init__(self, *allowed: tuple[Who, str, str]) -> None:
        self.version = 0
        self.found = set(allowed)
        self.questions: list[tuple[str, str, bool]] = []

    def allowed(
        self,
        principal: Principal,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        host: str = LOCALHOST,
        quietly: bool = False,
    ) -> bool:
        self.questions.append((operation.value, name, quietly))
        return (Who(principal, host), operation.value, name) in self.found


def rights(security: Security) -> Rights:
    rules = make_rules({"d/#": "devices", "d/+/t": "temperatures", "x/+": "of.{1}"}, {})
    given: Any = security
    return Rights(given, rules)


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("a", ("mqtt/a",)),
        ("a/b c", ("mqtt/a/b c",)),
        ("d", ("devices",)),
        ("d/1/t", ("devices", "temperatures")),
        ("x/7", ("of.7",)),
        ("$SYS/x", ("mqtt/$SYS/x",)),
    ],
)
def test_which_resources_stand_for_a_topic(topic: str, names: tuple[str, ...]) -> None:
    found = rights(Security())
    assert found.kafka_topics(topic) == found.kafka_topics(topic) == names


def test_topics_of_another_cluster_are_not_mapped() -> None:
    given: Any = Security()
    assert Rights(given, None).kafka_topics("d/1/t") == ("mqtt/d/1/t",)


def test_to_publish_takes_all_and_to_receive_one() -> None:
    security = Security((ALICE, "WRITE", "devices"), (ALICE, "READ", "temperatures"))
    found = rights(security)
    assert found.why_not_published(ALICE, "d/1") is None
    assert found.why_not_published(ALICE, "d/1/t") == "User:alice may not WRITE topic temperatures"
    assert not found.may_receive(ALICE, "d/1")
    assert found.may_receive(ALICE, "d/1/t")
    assert not found.may_receive(BOB, "d/1/t")
    assert not found.may_receive(ALICE._replace(host="10.0.0.8"), "d/1/t"), "from another address"


def test_the_topics_of_the_broker_take_describe_on_the_cluster() -> None:
    security = Security((ALICE, "DESCRIBE", CLUSTER_NAME), (BOB, "READ", "mqtt/$SYS/broker/uptime"))
    found = rights(security)
    assert found.may_receive(ALICE, "$SYS/broker/uptime")
    assert not found.may_receive(BOB, "$SYS/broker/uptime")
    assert found.why_not_subscribed(BOB, "$SYS/broker/uptime") == "User:bob may not DESCRIBE the cluster"


def test_what_is_for_the_audit_log() -> None:
    """What a client has requested, and is denied: not what a wildcard leaves out."""
    security = Security()
    found = rights(security)
    assert found.why_not_subscribed(ALICE, "a/+") is None
    assert found.why_not_subscribed(ALICE, "a/#") is None
    assert security.questions == []
    assert found.why_not_subscribed(ALICE, "a") == "User:alice may not READ topic mqtt/a"
    assert security.questions == [("READ", "mqtt/a", True), ("READ", "mqtt/a", False)]
    security.questions.clear()
    publishing = Publishing(found, ALICE)
    assert publishing.why_not("a") and publishing.why_not("a", quietly=True)
    assert security.questions == [("WRITE", "mqtt/a", False), ("WRITE", "mqtt/a", True)]


def test_answers_are_remembered_until_something_changes() -> None:
    security = Security((ALICE, "WRITE", "mqtt/a"), (ALICE, "READ", "mqtt/a"))
    found = rights(security)
    publishing, receives = Publishing(found, ALICE), found.receives(ALICE)
    for _ in range(3):
        assert publishing.why_not("a") is None
        assert receives("a") and not receives("b")
    assert len(security.questions) == 3
    security.found.clear()
    assert publishing.why_not("a") is None and receives("a")
    security.version += 1
    assert publishing.why_not("a") is not None and not receives("a")
    for number in range(3000):
        receives(f"t/{number}")
    assert len(receives.__closure__[0].cell_contents._known) <= 1000  # type: ignore[index,attr-defined]


class Guarded(Rig):
    """A hub with rights."""

    def __init__(self, security: Security) -> None:
        super().__init__()
        self.security = security
        store: Any = NoStore()
        self.hub = Hub(
            self.limits, self.clock, store, logging.getLogger("test"), self.publish, rights(security)
        )

    def client(
        self, client_id: str, who: Who, *filters: str, share: str | None = None
    ) -> tuple[Client, Noted]:
        client, noted, _ = self.connect(client_id)
        self.hub.identify(client, who)
        for each in filters:
            self.hub.subscribe(client, each, Subscription(each, 0, share, False, False, 0, None))
        return client, noted

    def deliver(self, topic: str = "a") -> int:
        return self.hub.publish(Message(topic, b"x"), None)


def test_a_plan_is_asked_for_once() -> None:
    """However many messages there are: that is what keeps fan-out quick."""
    rig = Guarded(Security((ALICE, "READ", "mqtt/a")))
    _, alice = rig.client("a", ALICE, "#")
    _, bob = rig.client("b", BOB, "#")
    assert [rig.deliver() for _ in range(5)] == [1] * 5
    assert (len(alice.frames), len(bob.frames)) == (5, 0)
    assert len(rig.security.questions) == 2
    rig.security.found.add((BOB, "READ", "mqtt/a"))
    rig.security.version += 1
    assert rig.deliver() == 2
    assert len(bob.frames) == 1


def test_a_new_subscription_and_another_user_are_noticed() -> None:
    rig = Guarded(Security((ALICE, "READ", "mqtt/a")))
    client, noted = rig.client("a", ALICE, "#")
    assert rig.deliver() == 1
    rig.client("b", ALICE, "a")
    assert rig.deliver() == 2
    rig.hub.identify(client, BOB)
    assert rig.deliver() == 1
    assert len(noted.frames) == 2


def test_a_bridge_gets_everything() -> None:
    """Its client is nobody that rights are given to."""
    rig = Guarded(Security())
    client, noted, _ = rig.connect("bridge")
    rig.hub.subscribe(client, "#", Subscription("#", 0, None, False, False, 0, None))
    assert rig.deliver() == 1
    assert len(noted.frames) == 1
    assert client.publishing is None


def test_shared_and_single_deliveries() -> None:
    rig = Guarded(Security((ALICE, "READ", "mqtt/a")))
    alice, noted = rig.client("a", ALICE, "a", share="g")
    bob, other = rig.client("b", BOB, "a", share="g")
    assert [rig.deliver() for _ in range(4)] == [1] * 4
    assert (len(noted.frames), len(other.frames)) == (4, 0)
    for client in (alice, bob):
        rig.hub.router.deliver(
            client, Subscription("a", 0, None, False, False, 0, None), Message("a", b""), False
        )
    assert (len(noted.frames), len(other.frames)) == (5, 0)
    rig.hub.end_session(alice)
    assert rig.deliver() == 0


@pytest.mark.parametrize("allowed", [True, False])
def test_the_will_of_a_session_that_ended_before_the_start(allowed: bool) -> None:
    """Whose it was is in its record."""
    rig = Guarded(Security(*[(ALICE, "WRITE", "mqtt/w")] if allowed else []))
    record = SessionRecord("a", 1, will=Will("w", b"gone", 1, False, Properties()), who=ALICE.stored)
    rig.hub.restore(Recovered(wills=[record]))
    assert [each.topic for each in rig.published] == (["w"] if allowed else [])


def test_without_rights_there_is_no_such_router() -> None:
    assert not isinstance(Rig().hub.router, GuardedRouter)
