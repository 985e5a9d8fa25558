"""`leafcuttr_sdk.peers.PeerClaim` in process: a member of the group that the claim is, on the coordinator that clients
use. What the members tell each other is in `leafcuttr.wire.claim_protocol`.

The coordinator is in this process: a join that waits there is not lost on the way, so the claim is held until the
coordinator has let the member go, or given the claim to another.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from leafcuttr.client.claim_outage import ClaimOutage
from leafcuttr.errors import BrokerError, CoordinatorLoadInProgress, ErrorCode, InvalidGroupId
from leafcuttr.plugins.facade.consumer.membership import Membership, Phase
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.coordinator import WaitingRequest
from leafcuttr.state.groups.events import NO_MEMBER, Join, JoinAnswer, Leaver, Sync, SyncAnswer
from leafcuttr.state.identity import ClientIdentity
from leafcuttr.wire.claim_protocol import (
    HOLDS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    WAITS,
    assignments,
    says_held,
)
from leafcuttr_sdk.errors import CoordinatorNotAvailable, InvalidSessionTimeout

_BEATS: Final = 3
_BEAT_S: Final = 3.0
_AGAIN_S: Final = 1.0
"""After how long a group that cannot be stored is tried again."""


class InProcessClaim:
    """See `leafcuttr_sdk.peers.PeerClaim`."""

    def __init__(
        self,
        core: Broker,
        name: str,
        client: ClientIdentity,
        session_timeout_ms: int,
        on_wait: Callable[[str | None], None] | None = None,
    ) -> None:
        self._core = core
        self._name = name
        self._client = client
        self._session_timeout_ms = session_timeout_ms
        self._on_wait = on_wait
        self._outage = ClaimOutage(name)
        self._membership = Membership()
        self._stirred = trio.Event()
        self._has_it = False
        self._lost = trio.Event()

    @property
    def is_held(self) -> bool:
        if not self._has_it or self._lost.is_set():
            return False
        try:
            group = self._core.groups.find(self._name)
        except BrokerError:
            return False
        return self._membership.member_id in group.members

    async def lost(self) -> None:
        await self._lost.wait()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Be a member until the claim, once it is held, is lost. Raises BrokerError before it is held."""
        self._check()
        try:
            with self._core.groups.watch(self._name, self._stir):
                while await self._goes_on():
                    if says_held(self._membership.assignment) and not self._has_it:
                        self._has_it = True
                        task_status.started()
                    elif not self._has_it:
                        self._tell(None)
                    await self._stay()
                    if self._has_it and self._membership.lost:
                        break
        except BrokerError:
            if not self._has_it:
                raise
        finally:
            self._leave()
        self._lost.set()

    def _tell(self, trouble: str | None) -> None:
        if self._on_wait is not None and not self._has_it:
            self._on_wait(trouble)

    def _check(self) -> None:
        """Raises InvalidGroupId, InvalidSessionTimeout."""
        if not self._name:
            raise InvalidGroupId("A claim has a name.")
        settings = self._core.settings
        shortest = settings.int("group.min.session.timeout.ms")
        longest = settings.int("group.max.session.timeout.ms")
        if not shortest <= self._session_timeout_ms <= longest:
            raise InvalidSessionTimeout(
                f"A session of {self._session_timeout_ms} ms: this broker allows {shortest} to {longest} ms "
                "(group.min.session.timeout.ms, group.max.session.timeout.ms)."
            )

    async def _goes_on(self) -> bool:
        """Join and sync; False if the claim was held and is another's now."""
        membership = self._membership
        membership.begin()
        while membership.phase is not Phase.MEMBER:
            await trio.lowlevel.checkpoint()
            if membership.phase is Phase.JOINING:
                membership.joined(await self._join())
            else:
                membership.synced(await self._sync())
            if self._has_it and membership.member_id == NO_MEMBER:
                return False
        return not self._has_it or says_held(membership.assignment)

    async def _stay(self) -> None:
        """Send heartbeats until the group rebalances."""
        beat_s = min(self._session_timeout_ms / 1000 / _BEATS, _BEAT_S)
        membership = self._membership
        while not membership.wants_rebalance:
            with trio.move_on_after(beat_s):
                await self._stirred.wait()
            self._stirred = trio.Event()
            self._beat()

    def _beat(self) -> None:
        membership = self._membership
        try:
            code = self._core.groups.heartbeat(self._name, membership.member_id, None, membership.generation)
        except CoordinatorLoadInProgress:
            return
        except BrokerError as error:
            code = ErrorCode(error.code)
        membership.heard(code)

    def _leave(self) -> None:
        member_id = self._membership.member_id
        self._has_it = False
        self._membership.left()
        if member_id != NO_MEMBER:
            try:
                self._core.groups.leave(self._name, [Leaver(member_id, reason="The claim is over.")])
            except BrokerError:
                return  # the session ends it

    def _stir(self) -> None:
        self._stirred.set()

    async def _join(self) -> JoinAnswer:
        join = Join(
            member_id=self._membership.member_id,
            instance_id=None,
            client_id=self._client.client_id or "",
            client_host=self._client.client_host,
            protocol_type=PROTOCOL_TYPE,
            protocols=((PROTOCOL_NAME, HOLDS if self._has_it else WAITS),),
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._session_timeout_ms,
            can_skip_assignment=False,
        )
        answer = await self._answer(lambda: self._core.groups.join(self._name, join))
        if isinstance(answer, ErrorCode):
            return JoinAnswer(error=answer, member_id=join.member_id)
        assert isinstance(answer, JoinAnswer)
        return answer

    async def _sync(self) -> SyncAnswer:
        membership = self._membership
        roster = [(each.member_id, each.metadata) for each in membership.roster]
        sync = Sync(
            member_id=membership.member_id,
            instance_id=None,
            generation=membership.generation,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=membership.protocol,
            assignments=assignments(roster) if roster else {},
        )
        answer = await self._answer(lambda: self._core.groups.sync(self._name, sync))
        if isinstance(answer, ErrorCode):
            return SyncAnswer(error=answer)
        assert isinstance(answer, SyncAnswer)
        return answer

    async def _answer(self, send: Callable[[], WaitingRequest]) -> JoinAnswer | SyncAnswer | ErrorCode:
        while True:
            self._stirred = trio.Event()
            try:
                await self._core.groups.ready()
                waiter = send()
            except (CoordinatorLoadInProgress, CoordinatorNotAvailable) as error:
                if line := self._outage.line(error, trio.current_time()):
                    self._tell(line)
                with trio.move_on_after(_AGAIN_S):
                    await self._stirred.wait()
                continue
            except BrokerError as error:
                return ErrorCode(error.code)
            self._outage.over()
            await waiter.wait()
            # None: the topic of all groups was deleted. They begin anew.
            return ErrorCode.NOT_COORDINATOR if waiter.answer is None else waiter.answer


@asynccontextmanager
async def open_claim(
    core: Broker,
    name: str,
    client: ClientIdentity,
    session_timeout_ms: int,
    on_wait: Callable[[str | None], None] | None = None,
) -> AsyncIterator[InProcessClaim]:
    """See `leafcuttr_sdk.peers.Peer.claim`."""
    claim = InProcessClaim(core, name, client, session_timeout_ms, on_wait)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(claim.run)
            yield claim
        except Exception as error:
            failure = error  # raised outside the nursery, which would wrap it in a group
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
