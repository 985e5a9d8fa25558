"""The task that is a member of a group: it joins when it is allowed to, sends heartbeats, and leaves.

The consumer allows each rebalance, since only it knows that the records of the last one have been dealt with. The
member does the rest beside it: a `poll` that ends or is cancelled while a rebalance is under way does not change that.
Whenever there is something new for the consumer (a rebalance is due, there is an assignment, an error) it is told by
`changed`.

Longer than other modules because all that may come between two steps of a rebalance (a poll, a heartbeat, a change of
the topics, the end) has to be seen beside them; the protocol itself is in `membership`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import trio

from leafcuttr.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    ErrorCode,
    InvalidGroupId,
)
from leafcuttr.plugins.facade.consumer import protocol
from leafcuttr.plugins.facade.consumer.assignors import ASSIGNORS, Assignor, Wants
from leafcuttr.plugins.facade.consumer.membership import Membership, Phase
from leafcuttr.plugins.facade.consumer.options import ConsumerOptions
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.coordinator import WaitingRequest
from leafcuttr.state.groups.events import NO_MEMBER, Join, JoinAnswer, Leaver, Sync, SyncAnswer
from leafcuttr.state.patterns import Pattern
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.errors import FencedInstanceId, InvalidSessionTimeout, UnknownServerError

# Three heartbeats a session, and one every three seconds at least: Kafka's `heartbeat.interval.ms`.
_BEATS: Final = 3
_BEAT_S: Final = 3.0
# Topics that come, grow or go within this time make one rebalance together.
_GATHER_S: Final = 0.1
# An assignment of more members times partitions than this is made by a worker thread.
_LARGE: Final = 20_000


class Subscription:
    """What a member wants: topics by name, or by a pattern that is compared with whole names, if it `sees` them."""

    def __init__(
        self,
        topics: frozenset[str],
        pattern: Pattern | None = None,
        sees: Callable[[str], bool] | None = None,
    ) -> None:
        self.topics = topics
        self.pattern = pattern
        self._sees = sees
        # Whether the pattern matches, of each topic that there was: one more topic is one more comparison.
        self._matches: dict[str, bool] = {}

    async def resolve(self, broker: Broker) -> frozenset[str]:
        """The names as of now. A pattern never means the broker's own topics."""
        if self.pattern is None:
            return self.topics
        matches: dict[str, bool] = {}
        for name in [topic.name for topic in broker.topics.by_name.values() if not topic.internal]:
            known = self._matches.get(name)
            matches[name] = await self.pattern.matches(name) if known is None else known
        self._matches = matches
        sees = self._sees
        return frozenset(
            name for name, matching in matches.items() if matching and (sees is None or sees(name))
        )


class ConsumerMember:
    """One member. `run` is its task; everything else is called by the consumer and does not wait."""

    def __init__(
        self, broker: Broker, options: ConsumerOptions, logger: logging.Logger, changed: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._options = options
        self._logger = logger
        self._changed = changed
        self._membership = Membership()
        self._subscription: Subscription | None = None
        self._topics: frozenset[str] = frozenset()
        # What this member assigned as the leader: the topics of the group and how many partitions they had.
        self._assigned_of: Mapping[str, int] | None = None
        self._allowed = trio.Event()
        self._stirred = trio.Event()
        # When to check whether our topics are still the same; infinite while nothing has changed.
        self._check_at = float("inf")
        self._rebalance: trio.CancelScope | None = None
        self._polling = False
        self._polled_at = 0.0
        self._failure: BrokerError | None = None
        self._assignment: Sequence[TopicPartition] | None = None

    # --- for the consumer ---------------------------------------------------------------------------------

    @property
    def wants_rebalance(self) -> bool:
        """Whether `allow` has to be called: the group is in a rebalance, or we are not in the group."""
        if self._subscription is None or self._fenced or self.in_rebalance:
            return False
        return self._membership.wants_rebalance or self._membership.phase is Phase.OUT

    @property
    def in_rebalance(self) -> bool:
        return self._allowed.is_set() or self._rebalance is not None

    @property
    def lost(self) -> bool:
        """What we had is ours no longer, or may not be."""
        return self._membership.lost or self._membership.phase is not Phase.MEMBER

    @property
    def _fenced(self) -> bool:
        return isinstance(self._failure, FencedInstanceId)

    @property
    def topics(self) -> frozenset[str]:
        """What we are subscribed to; with a pattern, what it came to in the last rebalance."""
        if self._subscription is None or self._subscription.pattern is not None:
            return self._topics
        return self._subscription.topics

    @property
    def identity(self) -> tuple[int, str, str | None]:
        """Generation, member id and instance id, for commits."""
        return self._membership.generation, self._membership.member_id, self._options.instance_id

    def subscribe(self, subscription: Subscription | None) -> None:
        """From the next rebalance on; None leaves the group at once."""
        self._subscription = subscription
        if subscription is None:
            self.leave("The consumer unsubscribed.")
            self._topics = frozenset()
        elif self._membership.phase is Phase.MEMBER:
            self._membership.wants_rebalance = True
        elif self._rebalance is not None:
            self._check_at = trio.current_time()
        self._stir()

    def allow(self) -> None:
        """Let the next rebalance begin."""
        self._assignment = None
        self._allowed.set()
        self._stir()

    def take_assignment(self) -> Sequence[TopicPartition] | None:
        """The partitions of a rebalance that is over, once."""
        assignment, self._assignment = self._assignment, None
        return assignment

    def take_failure(self) -> BrokerError | None:
        """What ended the membership: once, but for ever that another took its instance id, or they would take it from
        each other in turns."""
        failure = self._failure
        if not self._fenced:
            self._failure = None
        return failure

    def heard(self, code: ErrorCode) -> None:
        """What a commit was answered."""
        try:
            self._membership.heard(code)
        except BrokerError as error:
            self._fail(error)
        self._stir()

    def polls(self, now: bool) -> None:
        """A `poll` begins, or ends: between two of them at most `max_poll_interval_ms` may go by."""
        self._polling = now
        self._polled_at = trio.current_time()

    def leave(self, reason: str) -> None:
        """Leave the group, and give up a rebalance under way. A static member stays in it until its session ends, so
        that it finds its place when it comes back (KIP-345)."""
        if self._rebalance is not None:
            self._rebalance.cancel()
        self._allowed = trio.Event()
        membership = self._membership
        if membership.member_id != NO_MEMBER and self._options.instance_id is None:
            try:
                self._broker.groups.leave(self._options.group, [Leaver(membership.member_id, reason=reason)])
            except BrokerError as error:
                self._logger.debug("leaving group %s: %s", self._options.group, error)
        membership.left()

    # --- the task -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Be a member whenever there is a subscription and rebalances are allowed, until cancelled."""
        topics = self._broker.topics.on_changed
        topics.append(self._topic_changed)
        try:
            with self._broker.groups.watch(self._options.group, self._stir):
                while True:
                    await self._run_once()
        finally:
            topics.remove(self._topic_changed)

    async def _run_once(self) -> None:
        try:
            await self._stay()
            with trio.CancelScope() as self._rebalance:
                await self._rebalances()
            if self._rebalance.cancel_called:
                # An answer that was on its way may have been taken after we had left.
                self._membership.left()
                self._assignment = None
        except BrokerError as error:
            self._fail(error)
        except Exception as error:
            # A mistake of ours must not take the plugin's whole service with it.
            self._logger.exception("a member of group %s failed", self._options.group)
            self.leave("The consumer failed.")
            self._fail(UnknownServerError(f"the consumer failed: {error}"))
        finally:
            self._rebalance = None
        self._changed()

    def _fail(self, error: BrokerError) -> None:
        self._membership.left()
        self._failure = error
        self._changed()

    def _stir(self) -> None:
        self._stirred.set()

    def _topic_changed(self, _name: str) -> None:
        self._check_at = min(self._check_at, trio.current_time() + _GATHER_S)
        self._stir()

    # --- between rebalances -----------------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Send heartbeats, and see what else would need a rebalance, until one is allowed."""
        beat_s = min(self._options.session_timeout_ms / 1000 / _BEATS, _BEAT_S)
        beat_at = trio.current_time()
        while not self._allowed.is_set():
            wake_at = beat_at + beat_s if self._membership.phase is Phase.MEMBER else float("inf")
            with trio.move_on_at(min(wake_at, self._overdue_at(), self._check_at)):
                await self._stirred.wait()
            self._stirred = trio.Event()
            now = trio.current_time()
            if now >= self._overdue_at():
                self._overdue()
            elif self._membership.phase is Phase.MEMBER:
                self._beat()
                beat_at = now
            if now >= self._check_at:
                await self._check_topics()
            if self.wants_rebalance:
                self._changed()
        self._allowed = trio.Event()

    def _overdue_at(self) -> float:
        if self._polling or self._membership.phase is not Phase.MEMBER:
            return float("inf")
        return self._polled_at + self._options.max_poll_interval_ms / 1000

    def _overdue(self) -> None:
        self._logger.warning(
            "the consumer of group %s has not called poll for %g s (max_poll_interval_ms) and leaves the group",
            self._options.group, self._options.max_poll_interval_ms / 1000,
        )  # fmt: skip
        self.leave("The consumer has not called poll in time.")

    def _beat(self) -> None:
        generation, member_id, instance_id = self.identity
        if member_id == NO_MEMBER:
            return
        try:
            code = self._broker.groups.heartbeat(self._options.group, member_id, instance_id, generation)
        except CoordinatorLoadInProgress:
            return
        except BrokerError as error:
            code = error.code
        self._membership.heard(code)

    async def _check_topics(self) -> None:
        """Whether our subscription, or as leader the group's, comes to something else than in the last rebalance."""
        self._check_at = float("inf")
        if self._membership.phase is not Phase.MEMBER or self._subscription is None:
            self._changed()
            return
        counts = self._assigned_of
        moved = counts is not None and any(self._count(name) != count for name, count in counts.items())
        if moved or await self._subscription.resolve(self._broker) != self._topics:
            self._membership.wants_rebalance = True
        else:
            self._changed()  # one of its partitions may be gone all the same

    def _count(self, topic: str) -> int:
        found = self._broker.topics.by_name.get(topic)
        return 0 if found is None else len(found.partitions)

    # --- a rebalance ------------------------------------------------------------------------------------------

    async def _rebalances(self) -> None:
        """Join and sync, again if need be, until there is an assignment."""
        membership, subscription = self._membership, self._subscription
        if subscription is None:
            return
        self._check()
        membership.begin()
        self._assigned_of = None
        while membership.phase is not Phase.MEMBER:
            await trio.lowlevel.checkpoint()
            if membership.phase is Phase.JOINING:
                self._check_at = float("inf")
                subscription = self._subscription or subscription
                self._topics = await subscription.resolve(self._broker)
                membership.joined(await self._join())
            else:
                assignments = await self._assign() if membership.roster else {}
                membership.synced(await self._sync(assignments))
        try:
            self._assignment = protocol.read_assignment(membership.assignment)
        except MalformedMessage as error:
            self._logger.warning("the leader of group %s sent no assignment: %s", self._options.group, error)
            self._assignment = ()

    def _check(self) -> None:
        """Raises InvalidGroupId, InvalidSessionTimeout."""
        settings, requested = self._broker.settings, self._options.session_timeout_ms
        if not self._options.group:
            raise InvalidGroupId("A member needs the name of a group.")
        shortest = settings.int("group.min.session.timeout.ms")
        longest = settings.int("group.max.session.timeout.ms")
        if not shortest <= requested <= longest:
            raise InvalidSessionTimeout(
                f"A session of {requested} ms: this broker allows {shortest} to {longest} ms "
                "(group.min.session.timeout.ms, group.max.session.timeout.ms)."
            )

    async def _join(self) -> JoinAnswer:
        options = self._options
        metadata = protocol.subscription(self._topics)
        join = Join(
            member_id=self._membership.member_id,
            instance_id=options.instance_id,
            client_id=options.client.client_id or "",
            client_host=options.client.client_host,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocols=tuple((name, metadata) for name in ASSIGNORS),
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.max_poll_interval_ms,
        )
        await self._broker.groups.ready()
        answer = await self._answer(lambda: self._broker.groups.join(options.group, join))
        if isinstance(answer, ErrorCode):
            return JoinAnswer(error=answer, member_id=join.member_id)
        assert isinstance(answer, JoinAnswer)
        return answer

    async def _sync(self, assignments: Mapping[str, bytes]) -> SyncAnswer:
        membership = self._membership
        sync = Sync(
            member_id=membership.member_id,
            instance_id=self._options.instance_id,
            generation=membership.generation,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocol_name=membership.protocol,
            assignments=assignments,
        )
        answer = await self._answer(lambda: self._broker.groups.sync(self._options.group, sync))
        if isinstance(answer, ErrorCode):
            return SyncAnswer(error=answer)
        assert isinstance(answer, SyncAnswer)
        return answer

    async def _answer(self, send: Callable[[], WaitingRequest]) -> JoinAnswer | SyncAnswer | ErrorCode:
        while True:
            self._stirred = trio.Event()
            try:
                waiter = send()
            except CoordinatorLoadInProgress:
                await self._stirred.wait()
                continue
            except BrokerError as error:
                return error.code
            await waiter.wait()
            # None: the topic of all groups was deleted. They begin anew.
            return ErrorCode.NOT_COORDINATOR if waiter.answer is None else waiter.answer

    async def _assign(self) -> Mapping[str, bytes]:
        """As the leader: the assignment of each member, by the protocol that the group has agreed on."""
        membership = self._membership
        assignor = ASSIGNORS[membership.protocol or ""]
        members: list[Wants] = []
        for each in membership.roster:
            try:
                topics = protocol.read_subscription(each.metadata)
            except MalformedMessage:
                self._logger.warning(
                    "member %s of group %s wants nothing that can be read",
                    each.member_id,
                    self._options.group,
                )
                topics = frozenset()
            members.append(Wants(each.member_id, each.instance_id, topics))
            await trio.lowlevel.checkpoint()
        counts = {name: self._count(name) for name in frozenset().union(*(each.topics for each in members))}
        self._assigned_of = counts
        if sum(counts.values()) * len(members) > _LARGE:
            return await trio.to_thread.run_sync(_assignments, assignor, counts, members)
        return _assignments(assignor, counts, members)


def _assignments(assignor: Assignor, counts: Mapping[str, int], members: Sequence[Wants]) -> dict[str, bytes]:
    assignments = assignor(counts, members)
    return {member_id: protocol.assignment(assignment) for member_id, assignment in assignments.items()}
