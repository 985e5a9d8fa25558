"""`check_authorizer` finds what is wrong with an authorizer, and nothing wrong with one that is right."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_sdk import AuthorizerSpec, Operation, PluginError, Principal, ResourceType
from leafcuttr_sdk.testing import ContractError, Question, check_authorizer
from leafcuttr_sdk.testing import authorizer_checks as module

BROKER: Any = SimpleNamespace(settings=None)
ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")


def question(principal: Principal = ALICE, name: str = "orders") -> Question:
    return Question(principal, Operation.READ, ResourceType.TOPIC, name)


class Good:
    def __init__(self, broker: Any, changed: Any) -> None:
        self.changed = changed

    def verdict(self, requester: Any, operation: Any, resource: Any) -> bool | None:
        return True if requester.principal == ALICE and resource.name == "orders" else None


def spec(make: Any) -> AuthorizerSpec:
    return AuthorizerSpec("tried", "for a test", make)


def test_a_good_one() -> None:
    check_authorizer(
        spec(Good), BROKER, allows=[question()], denies=[question(BOB), question(name="payments")]
    )


class Async(Good):
    async def verdict(self, requester: Any, operation: Any, resource: Any) -> bool:  # type: ignore[override]
        return True


class Raises(Good):
    def verdict(self, requester: Any, operation: Any, resource: Any) -> bool:
        return bool(resource.name.startswith("a"))  # None has no such method


class Says(Good):
    def verdict(self, requester: Any, operation: Any, resource: Any) -> Any:
        return 1


class Wavers(Good):
    told = False

    def verdict(self, requester: Any, operation: Any, resource: Any) -> bool:
        self.told = not self.told
        return self.told


class Blocks(Good):
    worked = False

    def verdict(self, requester: Any, operation: Any, resource: Any) -> bool | None:
        until = time.thread_time() + 0.12
        while not self.worked and time.thread_time() < until:
            pass
        self.worked = True
        return None


def refuses(broker: Any, changed: Any) -> Any:
    raise PluginError("no file")


def breaks(broker: Any, changed: Any) -> Any:
    raise KeyError("users")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Async, "called: Async has no method `def verdict`, which is not async"),
        (lambda *_: object(), "called: object has no method"),
        (Raises, r"answers: it raised AttributeError.* for READ on TOPIC any"),
        (Says, r"answers: it returned an int for READ on TOPIC 'orders' by 'User:alice'"),
        (Wavers, r"steady: asked twice for READ on TOPIC 'orders' it answers \[True, False\]"),
        (Blocks, "does not block: it worked for long"),
        (breaks, "made: making it raised KeyError"),
    ],
)
def test_what_is_wrong_is_found(make: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        check_authorizer(spec(make), BROKER)


def test_what_it_must_allow_and_deny() -> None:
    with pytest.raises(ContractError, match="allows: User:bob: READ on TOPIC 'orders'"):
        check_authorizer(spec(Good), BROKER, allows=[question(BOB)])
    with pytest.raises(ContractError, match="denies: User:alice: READ on TOPIC 'orders'"):
        check_authorizer(spec(Good), BROKER, denies=[question()])


def test_one_that_says_that_it_has_changed_may_waver() -> None:
    class Changes(Wavers):
        def verdict(self, requester: Any, operation: Any, resource: Any) -> bool:
            self.changed()
            return super().verdict(requester, operation, resource)

    check_authorizer(spec(Changes), BROKER)


def test_one_that_refuses_without_settings_is_right_to() -> None:
    check_authorizer(spec(refuses), BROKER)
    with pytest.raises(ContractError, match="made: it refuses to be made: no file"):
        check_authorizer(spec(refuses), BROKER, allows=[question()])


def test_every_operation_and_type_is_tried() -> None:
    asked = {(operation, resource.type) for _, operation, resource in module._questions()}
    assert asked == {(operation, kind) for operation in Operation for kind in ResourceType}
