"""Which member of a shared subscription gets a message."""

from __future__ import annotations

from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.shared import Balance
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.topics.tree import Group
from support.mqtt_routing import Noted, Rig


def group_of(rig: Rig, *names: str, qos: int = 1) -> tuple[Group[Client, Subscription], list[Client]]:
    group = Group[Client, Subscription]("g", "a")
    clients = [rig.connect(name, expiry_s=100)[0] for name in names]
    group.members = {client: Subscription("a", qos, "g") for client in clients}
    return group, clients


def chosen(balance: Balance, group: Group[Client, Subscription], qos: int = 1) -> str | None:
    found = balance.choose(group, qos)
    return None if found is None else found[0].client_id


def test_members_take_turns(rig: Rig) -> None:
    balance, (group, _) = Balance(), group_of(rig, "a", "b", "c")
    assert [chosen(balance, group) for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]


def test_slow_members_and_those_that_are_away_come_last(rig: Rig) -> None:
    balance, (group, (a, b, c)) = Balance(), group_of(rig, "a", "b", "c")
    rig.hub.disconnected(a, a.connection)  # type: ignore[arg-type]
    assert isinstance(b.connection, Noted)
    b.connection.fluent = False
    assert [chosen(balance, group) for _ in range(3)] == ["c", "c", "c"]
    rig.hub.disconnected(c, c.connection)  # type: ignore[arg-type]
    assert chosen(balance, group) == "b"
    rig.hub.disconnected(b, b.connection)  # type: ignore[arg-type]
    assert {chosen(balance, group) for _ in range(6)} == {"a", "b", "c"}


def test_a_message_with_qos_0_goes_to_nobody_who_is_away(rig: Rig) -> None:
    balance, (group, (a,)) = Balance(), group_of(rig, "a")
    assert chosen(balance, group, qos=0) == "a"
    rig.hub.disconnected(a, a.connection)  # type: ignore[arg-type]
    assert chosen(balance, group, qos=0) is None
    assert chosen(balance, group, qos=1) == "a"
    group.members = {a: Subscription("a", 0, "g")}
    assert chosen(balance, group, qos=1) is None


def test_groups_are_forgotten(rig: Rig) -> None:
    balance, (group, _) = Balance(), group_of(rig, "a", "b")
    assert chosen(balance, group) == "a"
    balance.forget("g", "a")
    assert chosen(balance, group) == "a"
