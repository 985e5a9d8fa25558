"""Requests that are tried again until they are answered: at any broker, the controller, a coordinator, the leaders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import trio

from leafcuttr.client.cluster import RemoteCluster
from leafcuttr.client.codes import NEW_COORDINATOR, NEW_LEADER, PASSING_AT_LEADERS
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import ClientError, UnreadableResponse, refusal
from leafcuttr.client.protocol import VersionRanges
from leafcuttr.client.retrying import until_answered
from leafcuttr.client.rights import on_group, on_topic, on_transaction, said_of_request, topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr_sdk.types import TopicPartition

T = TypeVar("T")

CodeOf = Callable[[Any], tuple[int, str | None]]
"""The error code of a response, and what the broker says of it."""


class Calls:
    """All raise BrokerError: RequestTimedOut, where no broker answers in time. `at_least` and `at_most` bound the
    version of the request."""

    def __init__(self, cluster: RemoteCluster) -> None:
        self.cluster = cluster
        self.settings = cluster.settings

    async def any_broker(
        self,
        request: Any,
        code_of: CodeOf = lambda _: (0, None),
        *,
        at_least: int = 0,
        at_most: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        async def attempt(left_s: float) -> Any:
            response = await self.cluster.request(
                request, at_least=at_least, at_most=at_most, timeout_s=left_s
            )
            _check(request, *_code(code_of, response))
            return response

        return await until_answered(self.settings, attempt, timeout_s=timeout_s)

    async def broker(
        self, node: int, request: Any, code_of: CodeOf = lambda _: (0, None), *, at_least: int = 0
    ) -> Any:
        async def attempt(left_s: float) -> Any:
            response = await self.cluster.request(request, node=node, at_least=at_least, timeout_s=left_s)
            _check(request, *_code(code_of, response))
            return response

        return await until_answered(self.settings, attempt)

    async def metadata(self, topics: Sequence[str] | None) -> Any:
        async def attempt(left_s: float) -> Any:
            return await self.cluster.metadata(topics, timeout_s=left_s)

        return await until_answered(self.settings, attempt)

    async def versions(self) -> VersionRanges:
        """By API key what a broker offers."""

        async def attempt(left_s: float) -> VersionRanges:
            return await self.cluster.versions(timeout_s=left_s)

        return await until_answered(self.settings, attempt)

    async def controller(self, request: Any, code_of: CodeOf, *, at_least: int = 0) -> Any:
        async def attempt(left_s: float) -> Any:
            deadline = trio.current_time() + left_s
            node = await self.cluster.controller(timeout_s=left_s)
            try:
                response = await self.cluster.request(
                    request, node=node, at_least=at_least, timeout_s=deadline - trio.current_time()
                )
            except ClientError:
                self.cluster.forget_controller()
                raise
            code, message = _code(code_of, response)
            if code == ErrorCode.NOT_CONTROLLER:
                self.cluster.forget_controller()
            _check(request, code, message)
            return response

        return await until_answered(self.settings, attempt)

    async def coordinator(
        self,
        kind: int,
        key: str,
        request: Any,
        code_of: CodeOf,
        *,
        at_least: int = 0,
        at_most: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        async def attempt(left_s: float) -> Any:
            deadline = trio.current_time() + left_s
            needs = on_group(request) if kind == CoordinatorKind.GROUP else on_transaction(request)
            node = await self.cluster.coordinator(kind, key, timeout_s=left_s, needs=needs)
            try:
                response = await self.cluster.request(
                    request,
                    node=node,
                    at_least=at_least,
                    at_most=at_most,
                    timeout_s=max(deadline - trio.current_time(), 0.001),
                )
            except ClientError:
                self.cluster.forget_coordinator(kind, key)
                raise
            code, message = _code(code_of, response)
            if code in NEW_COORDINATOR:
                self.cluster.forget_coordinator(kind, key)
            _check(request, code, message, key)
            return response

        return await until_answered(self.settings, attempt, timeout_s=timeout_s)

    async def leaders(
        self,
        partitions: Iterable[TopicPartition],
        build: Callable[[Mapping[str, Sequence[int]]], Any],
        answers: Callable[[Any], Iterable[tuple[TopicPartition, int, T]]],
        *,
        at_least: int = 0,
    ) -> dict[TopicPartition, T]:
        """One request to each leader of these partitions, made by `build` of the partitions by topic; `answers` gives
        error code and answer of each. Partitions that do not exist are left out."""
        found: dict[TopicPartition, T] = {}
        left = set(partitions)

        async def attempt(left_s: float) -> None:
            led = await self._by_leader(left, left_s)
            problems: list[BrokerError | ClientError] = []

            async def ask(node: int, some: list[TopicPartition]) -> None:
                request = build(by_topic(some))
                try:
                    response = await self.cluster.request(
                        request, node=node, at_least=at_least, timeout_s=left_s
                    )
                except (ClientError, BrokerError) as error:
                    problems.append(error)
                    for tp in some:
                        self.cluster.forget_leader(tp)
                    return
                for tp, code, answer in answers(response):
                    if tp not in left:
                        continue
                    if not code:
                        found[tp] = answer
                        left.discard(tp)
                        continue
                    if code in NEW_LEADER:
                        self.cluster.forget_leader(tp)
                    problems.append(topic_refusal(code, tp, tp.topic, on_topic(request)))

            async with trio.open_nursery() as nursery:
                for node, some in led.items():
                    nursery.start_soon(partial(ask, node, some))
            if left:
                raise _worst(problems) or refusal(
                    ErrorCode.LEADER_NOT_AVAILABLE, "a leader left out partitions"
                )

        await until_answered(self.settings, attempt, passing=PASSING_AT_LEADERS)
        return found

    async def _by_leader(self, left: set[TopicPartition], left_s: float) -> dict[int, list[TopicPartition]]:
        led: dict[int, list[TopicPartition]] = {}
        for tp in sorted(left):
            try:
                node = await self.cluster.leader(tp, timeout_s=left_s)
            except BrokerError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                left.discard(tp)
            else:
                led.setdefault(node, []).append(tp)
        return led


def _code(code_of: CodeOf, response: Any) -> tuple[int, str | None]:
    try:
        return code_of(response)
    except (ValueError, IndexError):
        name = type(response).__name__
        raise UnreadableResponse(f"a broker's {name} leaves out what it was requested for") from None


def _check(request: Any, code: int, message: str | None, key: str = "") -> None:
    if code:
        raise refusal(code, said_of_request(request, code, message, key))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Their numbers by their topics, both in the order in which they come."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def _worst(problems: Sequence[BrokerError | ClientError]) -> BrokerError | ClientError | None:
    """One that does not pass, if there is one."""
    for one in problems:
        if not (one.passes if isinstance(one, ClientError) else one.code in PASSING_AT_LEADERS):
            return one
    return problems[0] if problems else None
