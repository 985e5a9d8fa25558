"""Conformance of authorizers: `leafcuttr_sdk.security` says what they promise."""

import inspect
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from leafcuttr_sdk._described import described, kind_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.principals import ANONYMOUS, Principal
from leafcuttr_sdk.security import (
    CLUSTER_NAME,
    LOCALHOST,
    Authorizer,
    AuthorizerSpec,
    Operation,
    Requester,
    Resource,
    ResourceType,
)
from leafcuttr_sdk.testing.report import Notes, Report, literally, told

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

PROMISES: Final = {
    "made": "it can be made",
    "called": "verdict is a method that is not async, and takes requester, operation and resource",
    "answers": "it returns True, False or None, and raises nothing, whatever the question is",
    "steady": "the same question has the same answer until it calls `changed`",
    "does not block": "it answers at once",
    "allows": "it allows what it has to",
    "denies": "it does not allow what it must not",
}
_PATIENCE_S: Final = 0.1
_ON: Final = {
    ResourceType.TOPIC: ("orders", "", "a,b=c", "\0", "ü" * 249, "\udcff", "x" * 32_767, "../../etc", None),
    ResourceType.GROUP: ("readers", "", None),
    ResourceType.CLUSTER: (CLUSTER_NAME, None),
    ResourceType.TRANSACTIONAL_ID: ("tx-1", "\n", None),
    ResourceType.DELEGATION_TOKEN: ("token", None),
    ResourceType.USER: ("User:alice", "alice", None),
}
_REQUESTERS: Final = (
    Requester(Principal("User", "alice"), LOCALHOST, "PLAINTEXT"),
    Requester(ANONYMOUS, "::1", "IN_PROCESS"),
    Requester(Principal("User", "CN=a\\,b,O=\udcff"), "10.0.0.7", ""),
    Requester(Principal("Group", ""), "fe80::1%eth0", "SASL_SSL"),
)


@described
class Question(NamedTuple):
    """What an authorizer is asked."""

    principal: Principal
    operation: Operation
    resource_type: ResourceType
    name: str = CLUSTER_NAME
    host: str = LOCALHOST


def check_authorizer(
    spec: AuthorizerSpec,
    broker: "Broker",
    *,
    allows: Iterable[Question] = (),
    denies: Iterable[Question] = (),
) -> None:
    """Check an authorizer. It is made with this `broker`, of which it may need no more than the settings. `allows` are
    questions that it has to answer with True, `denies` those that it must not. Raises ContractError with all that is
    wrong."""
    authorizer_report(spec, broker, allows, denies).raise_problems()


def authorizer_report(
    spec: AuthorizerSpec,
    broker: "Broker",
    allows: Iterable[Question] = (),
    denies: Iterable[Question] = (),
) -> Report:
    """The report that `check_authorizer` would raise."""
    notes = Notes("authorizer", spec.name, PROMISES)
    changes: list[None] = []
    allowed, denied = list(allows), list(denies)
    try:
        authorizer = spec.make(broker, lambda: changes.append(None))
    except PluginError as error:
        # Without its settings it may well be right to: only who gives it questions means it to work.
        if allowed or denied:
            notes.add("made", literally(f"it refuses to be made: {error}"))
        return notes.report(["made"])
    except Exception as error:
        notes.add("made", literally(f"making it raised {told(error)}: raise PluginError with one line"))
        return notes.report(["made"])
    method: object = getattr(authorizer, "verdict", None)
    if not callable(method) or inspect.iscoroutinefunction(method):
        notes.add("called", f"{type(authorizer).__name__} has no method `def verdict`, which is not async")
        return notes.report(["made", "called"])
    trial = _Trial(authorizer, notes, changes)
    for requester, operation, resource in _questions():
        trial.ask(requester, operation, resource)
    for each in allowed:
        if trial.ask(*_asked(each)) is not True:
            notes.add("allows", literally(_shown(each)))
    for each in denied:
        if trial.ask(*_asked(each)) is True:
            notes.add("denies", literally(_shown(each)))
    return notes.report()


class _Trial:
    def __init__(self, authorizer: Authorizer, notes: Notes, changes: list[None]) -> None:
        self._authorizer = authorizer
        self._notes = notes
        self._changes = changes

    def ask(self, requester: Requester, operation: Operation, resource: Resource) -> bool | None:
        before = len(self._changes)
        answers = [self._once(requester, operation, resource) for _ in range(2)]
        if answers[0] is not answers[1] and before == len(self._changes):
            self._notes.add(
                "steady", literally(f"asked twice for {operation} on {_name(resource)} it answers {answers}")
            )
        return answers[0]

    def _once(self, requester: Requester, operation: Operation, resource: Resource) -> bool | None:
        what = f"for {operation} on {_name(resource)} by {_short(str(requester.principal))}"
        worked = time.thread_time()
        try:
            said = cast("object", self._authorizer.verdict(requester, operation, resource))
        except Exception as error:
            self._notes.add("answers", literally(f"it raised {told(error)} {what}"))
            return None
        if time.thread_time() - worked > _PATIENCE_S:
            self._notes.add("does not block", literally(f"it worked for long {what}"))
        if said is not None and not isinstance(said, bool):
            self._notes.add("answers", literally(f"it returned {kind_of(said)} {what}"))
            return None
        return said


def _questions() -> Iterator[tuple[Requester, Operation, Resource]]:
    for requester in _REQUESTERS:
        for kind, names in _ON.items():
            for name in names:
                for operation in Operation:
                    yield requester, operation, Resource(kind, name)


def _asked(question: Question) -> tuple[Requester, Operation, Resource]:
    principal, operation, kind, name, host = question
    return Requester(principal, host, "PLAINTEXT"), operation, Resource(kind, name)


def _shown(question: Question) -> str:
    return f"{question.principal}: {question.operation} on {_name(Resource(*question[2:4]))}"


def _name(resource: Resource) -> str:
    return f"{resource.type} {'any' if resource.name is None else _short(resource.name)}"


def _short(text: str) -> str:
    return ascii(text if len(text) < 40 else f"{text[:40]}...")
