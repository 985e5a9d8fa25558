"""An authorizer of a plugin, beside super users and Kafka's rules."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security import plugged_authorizer as module
from leafcuttr.state.security.acl import AclOperation, AclResourceType
from leafcuttr.state.security.plugged_authorizer import PluggedAuthorizer
from leafcuttr_sdk import security
from leafcuttr_sdk.principals import Principal

READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, AclResourceType.TOPIC


def client(name: str = "alice", host: str = "10.0.0.1", listener: str = "L") -> ClientIdentity:
    return ClientIdentity(Principal("User", name), listener, "PLAINTEXT", host, 1)


class Standard:
    """Kafka's rules, as far as they are looked at here."""

    def __init__(self) -> None:
        self.version = 7
        self.acls: Any = object()
        self.told: list[Any] = []

    def allows(self, *_: object) -> bool:
        return True

    def allows_on_some(self, *_: object) -> bool:
        return True

    def rule(self, *_: object) -> str:
        return "an ACL"

    def on_change(self, call: Any) -> None:
        self.told.append(call)


class Asked:
    """What a plugin answers, and what it was asked."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.questions: list[tuple[Any, ...]] = []

    def __call__(self, *question: Any) -> bool | None:
        self.questions.append(question)
        return self.answer


def authorizer(standard: Any = None, answer: bool | None = True) -> tuple[PluggedAuthorizer, Asked]:
    made, asked = PluggedAuthorizer("acme", ["User:root"], standard), Asked(answer)
    made.equip(asked)
    return made, asked


def test_until_the_plugin_has_brought_it_only_super_users_may() -> None:
    made = PluggedAuthorizer("acme", ["User:root"], Standard())  # type: ignore[arg-type]
    assert not made.allows(client(), READ, TOPIC, "t")
    assert not made.allows_on_some(client(), READ, TOPIC)
    assert made.operations(client(), TOPIC, "t") == 0
    assert made.allows(client("root"), READ, TOPIC, "t")
    assert made.allows_on_some(client("root"), READ, TOPIC)
    version = made.version
    made.equip(Asked(True))
    assert made.version > version
    assert made.allows(client(), READ, TOPIC, "t"), "what it said before is forgotten"


@pytest.mark.parametrize(
    ("answer", "standard", "allowed", "rule"),
    [
        (True, None, True, "the authorizer acme"),
        (False, Standard(), False, "the authorizer acme"),
        (None, Standard(), True, "an ACL"),
        (None, None, False, "the authorizer acme has no opinion, and there are no ACLs"),
    ],
)
def test_it_is_asked_before_the_acls(answer: bool | None, standard: Any, allowed: bool, rule: str) -> None:
    made, _ = authorizer(standard, answer)
    assert made.allows(client(), READ, TOPIC, "t") is allowed
    assert made.allows_on_some(client(), READ, TOPIC) is allowed
    assert made.rule(client(), READ, TOPIC, "t") == rule
    assert made.rule(client("root"), READ, TOPIC, "t") == "super user"
    assert bool(made.operations(client(), TOPIC, "t") >> READ & 1) is allowed
    assert made.operations(client("root"), TOPIC, "t") == -1
    assert made.acls is (None if standard is None else standard.acls)


def test_what_it_is_asked_in_the_words_of_the_sdk() -> None:
    made, asked = authorizer()
    made.allows(client(), READ, TOPIC, "t")
    made.allows_on_some(client(), WRITE, TOPIC)
    requester = security.Requester(Principal("User", "alice"), "10.0.0.1", "L")
    topic = security.ResourceType.TOPIC
    assert asked.questions == [
        (requester, security.Operation.READ, security.Resource(topic, "t")),
        (requester, security.Operation.WRITE, security.Resource(topic, None)),
    ]


def test_each_operation_and_type_has_its_name() -> None:
    assert {one.name for one in security.Operation} == {one.name for one in AclOperation if one > 2}
    assert {one.name for one in security.ResourceType} == {one.name for one in AclResourceType if one > 1}


def test_operations_are_those_of_the_type() -> None:
    made, asked = authorizer()
    found = made.operations(client(), AclResourceType.GROUP, "g")
    assert found >> READ & 1 and not found >> WRITE & 1
    assert {question[1].name for question in asked.questions} == {
        "READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"
    }  # fmt: skip


def test_an_answer_is_remembered_until_it_changes() -> None:
    made, asked = authorizer()
    for _ in range(3):
        assert made.allows(client(), READ, TOPIC, "t")
    assert len(asked.questions) == 1
    for other in (client("bob"), client(host="10.0.0.2"), client(listener="M")):
        made.allows(other, READ, TOPIC, "t")
    made.allows(client(), WRITE, TOPIC, "t")
    made.allows(client(), READ, AclResourceType.GROUP, "t")
    made.allows(client(), READ, TOPIC, "u")
    assert len(asked.questions) == 7
    asked.answer = False
    assert made.allows(client(), READ, TOPIC, "t")
    version, told = made.version, list[int]()
    made.on_change(lambda: told.append(made.version))
    made.changed()
    assert made.version > version and told == [made.version]
    assert not made.allows(client(), READ, TOPIC, "t")


def test_one_that_changes_in_the_middle_of_an_answer_is_asked_again() -> None:
    made = PluggedAuthorizer("acme", [], None)
    asked: list[None] = []

    def ask(*_: object) -> bool:
        asked.append(None)
        made.changed()
        return True

    made.equip(ask)
    made.allows(client(), READ, TOPIC, "t")
    made.allows(client(), READ, TOPIC, "t")
    assert len(asked) == 2


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    made, asked = authorizer()
    for number in range(100):
        made.allows(client(), READ, TOPIC, f"t{number}")
        assert len(made._remembered) <= 10
    long = "x" * 301
    made.allows(client(), READ, TOPIC, long)
    made.allows(client(), READ, TOPIC, long)
    assert [question[2].name for question in asked.questions].count(long) == 2


def test_changes_of_the_acls_count_too() -> None:
    standard = Standard()
    made, _ = authorizer(standard)
    version = made.version
    standard.version += 1
    assert made.version == version + 1
    made.on_change(lambda: None)
    assert len(standard.told) == 1
