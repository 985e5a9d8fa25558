"""A name that one process of many has: a member of a classic group, by the rules of `wire.claim_protocol`.

`ClaimState` has no I/O: it knows for how long the claim is held by this member's own clock. `claimed` runs the member:
join, sync, heartbeat; after whatever goes wrong it joins again, and holds the claim meanwhile as long as the rules
allow.
"""

import itertools
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.claim_outage import ClaimOutage
from leafcuttr.client.codes import NEW_COORDINATOR
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import ClientError, refusal
from leafcuttr.client.retrying import RetryPauses
from leafcuttr.client.rights import said
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.wire.claim_protocol import (
    HOLDS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    WAITS,
    assignments,
    says_held,
)
from leafcuttr.wire.messages.heartbeat import HeartbeatRequest
from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from leafcuttr.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from leafcuttr.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from leafcuttr_sdk.security import Operation

_LANES: Final = itertools.count()
_LEAVING_S: Final = 2.0
_FATAL: Final = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    }
)
"""What no retry changes, or only somebody else."""


class ClaimState:
    """Whether the claim is held, by a clock in seconds. `session_s` is the session timeout."""

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._until: float | None = None
        """Until when the member of the last generation is safe; None while nothing is held."""

    def is_held(self, now: float) -> bool:
        return self._until is not None and now < self._until

    def seconds_left(self, now: float) -> float:
        """How long it is held if nothing is heard any more."""
        return 0.0 if self._until is None else max(self._until - now, 0.0)

    def metadata(self, now: float) -> bytes:
        """What the member says of itself as it joins."""
        return HOLDS if self.is_held(now) else WAITS

    def assigned(self, assignment: bytes | memoryview, sent_at: float) -> None:
        """SyncGroup, sent at that time, was answered."""
        self._until = sent_at + self._session_s if says_held(assignment) else None

    def heard(self, sent_at: float, now: float) -> None:
        """A heartbeat, sent at that time, was answered without an error. One that is too late brings nothing back."""
        if self.is_held(now) and self._until is not None:
            self._until = max(self._until, sent_at + self._session_s)

    def has_lapsed(self, now: float) -> bool:
        """Whether it was held and is not any more, though nobody has said so."""
        return self._until is not None and not self.is_held(now)

    def dropped(self) -> None:
        """The coordinator does not have this member any more."""
        self._until = None


class GroupClaim:
    """See `leafcuttr_sdk.peers.PeerClaim`."""

    def __init__(self, state: ClaimState) -> None:
        self._state = state
        self.changed = trio.Event()

    @property
    def is_held(self) -> bool:
        return self._state.is_held(trio.current_time())

    async def lost(self) -> None:
        while self.is_held:
            with trio.move_on_after(self._state.seconds_left(trio.current_time())):
                await self.changed.wait()
        await trio.lowlevel.checkpoint()

    async def gained(self) -> None:
        """Wait until it is held."""
        while not self.is_held:
            await self.changed.wait()

    def tell(self) -> None:
        """Those who wait look again."""
        self.changed.set()
        self.changed = trio.Event()


@asynccontextmanager
async def claimed(
    calls: Calls,
    name: str,
    session_timeout_ms: int,
    logger: logging.Logger,
    on_wait: Callable[[str | None], None] | None = None,
) -> AsyncIterator[GroupClaim]:
    """See `leafcuttr_sdk.peers.Peer.claim`. Raises BrokerError where the cluster does not allow such a group."""
    member = _Member(calls, name, session_timeout_ms, logger, on_wait)
    failure: BrokerError | None = None
    raised: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                nonlocal failure
                try:
                    await member.run()
                except BrokerError as error:
                    failure = error
                    member.state.dropped()
                    member.claim.tell()
                    if not member.was_held:
                        nursery.cancel_scope.cancel()

            nursery.start_soon(run)
            try:
                await member.claim.gained()
                member.was_held = True
                yield member.claim
            except BaseException as error:
                raised = error
            nursery.cancel_scope.cancel()
    finally:
        # Also where the nursery itself is cancelled from outside.
        with trio.move_on_after(_LEAVING_S, shield=True):
            await member.leave()
        calls.cluster.drop_lane(member.lane)
    if failure is not None and not member.was_held:
        raise failure
    if raised is not None:
        raise raised


class _Member:
    def __init__(
        self,
        calls: Calls,
        name: str,
        session_timeout_ms: int,
        logger: logging.Logger,
        on_wait: Callable[[str | None], None] | None,
    ) -> None:
        self.state = ClaimState(session_timeout_ms / 1000)
        self.claim = GroupClaim(self.state)
        self.was_held = False
        self._calls = calls
        self._cluster = calls.cluster
        self._name = name
        self.lane = f"claim {name} {next(_LANES)}"
        """A connection for requests that the coordinator holds back, until the other members have come: their own do
        not wait behind them, nor those of other claims."""
        self._timeout_ms = session_timeout_ms
        self._logger = logger
        self._on_wait = on_wait
        self._outage = ClaimOutage(name)
        self._id = ""
        self._generation = -1
        self._backoff = RetryPauses(calls.settings)
        self._warned = False

    async def run(self) -> None:
        """Until cancelled. Raises BrokerError for what no retry changes."""
        while True:
            try:
                await self._join()
                await self._stay()
            except BrokerError as error:
                self._react(error)
            except ClientError as error:
                self._cluster.forget_coordinator(CoordinatorKind.GROUP, self._name)
                self._say(error)
            else:
                continue
            self.claim.tell()
            await self._backoff.wait()

    async def leave(self) -> None:
        """At once, so that another member need not wait for the end of the session."""
        if not self._id:
            return
        request = LeaveGroupRequest(
            group_id=self._name,
            member_id=self._id,
            members=[MemberIdentity(member_id=self._id, reason="the claim was given back")],
        )
        try:
            await self._ask(request)
        except (BrokerError, ClientError):
            return  # the session ends it

    def _react(self, error: BrokerError) -> None:
        if error.code in _FATAL:
            raise error
        if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._id, self._generation = "", -1
            self.state.dropped()
        elif error.code is ErrorCode.ILLEGAL_GENERATION:
            # The group went on without it: another one may have got the claim.
            self._generation = -1
            self.state.dropped()
        elif error.code is not ErrorCode.REBALANCE_IN_PROGRESS:
            if error.code in NEW_COORDINATOR:
                self._cluster.forget_coordinator(CoordinatorKind.GROUP, self._name)
            self._say(error)

    def _say(self, error: Exception) -> None:
        line = self._outage.line(error, trio.current_time())
        if line is None:
            return
        if self._on_wait is not None and not self.was_held:
            self._on_wait(line)
        elif not self._warned:
            self._warned = True
            self._logger.warning("the claim %r cannot be confirmed: %s", self._name, line)

    async def _join(self) -> None:
        response = await self._ask(self._join_request(), self._patience_s)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:  # KIP-394
            self._id = response.member_id
            response = await self._ask(self._join_request(), self._patience_s)
        self._check(response.error_code)
        self._id, self._generation = response.member_id, response.generation_id
        given = (
            assignments([(each.member_id, each.metadata) for each in response.members])
            if response.leader == self._id and response.members
            else {}
        )
        sent_at = trio.current_time()
        synced = await self._ask(
            SyncGroupRequest(
                group_id=self._name,
                generation_id=self._generation,
                member_id=self._id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL_NAME,
                assignments=[
                    SyncGroupRequestAssignment(member_id=member, assignment=content)
                    for member, content in given.items()
                ],
            ),
            self._patience_s,
        )
        self._check(synced.error_code)
        self.state.assigned(synced.assignment, sent_at)
        self._backoff.reset()
        self._outage.over()
        self._warned = False
        if self._on_wait is not None and not self.was_held and not says_held(synced.assignment):
            self._on_wait(None)
        self.claim.tell()

    def _join_request(self) -> JoinGroupRequest:
        metadata = self.state.metadata(trio.current_time())
        return JoinGroupRequest(
            group_id=self._name,
            session_timeout_ms=self._timeout_ms,
            rebalance_timeout_ms=self._timeout_ms,
            member_id=self._id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=metadata)],
        )

    async def _stay(self) -> None:
        """Heartbeats, until something is wrong."""
        period = min(self._timeout_ms / 3000, 1.0)
        request = HeartbeatRequest(group_id=self._name, generation_id=self._generation, member_id=self._id)
        while True:
            await trio.sleep(period)
            sent_at = trio.current_time()
            answer = await self._ask(request, self._timeout_ms / 1000)
            self._check(answer.error_code)
            self.state.heard(sent_at, trio.current_time())
            if self.state.has_lapsed(trio.current_time()):
                # This member has the claim, but could not say so for too long: the group is to give it anew.
                self.state.dropped()
                self.claim.tell()
                return

    @property
    def _patience_s(self) -> float:
        """The coordinator waits for all members, for one rebalance timeout."""
        return self._timeout_ms / 1000 + self._calls.settings.request_timeout_s

    async def _ask(self, request: Any, timeout_s: float | None = None) -> Any:
        limit = self._calls.settings.request_timeout_s if timeout_s is None else timeout_s
        # Another broker may be the coordinator by now: one that cannot be reached is not waited for.
        reach_s = min(limit, max(self._timeout_ms / 3000, 1.0))
        node = await self._cluster.coordinator(
            CoordinatorKind.GROUP, self._name, timeout_s=reach_s, needs=Operation.READ
        )
        lane = self.lane if isinstance(request, JoinGroupRequest | SyncGroupRequest) else None
        return await self._cluster.request(request, node=node, timeout_s=limit, reach_s=reach_s, lane=lane)

    def _check(self, code: int) -> None:
        if code:
            raise refusal(code, said(code, None, self._name, Operation.READ))
