"""Incremental fetch sessions (KIP-227): what a consumer requested last time, so that it need not say it again.

A full fetch (epoch 0) may open a session; later fetches name it and send only what changed, and the answer leaves
out partitions about which there is nothing new. The rules of epochs, of which partitions are left out, and of which
session may evict which from the full cache are Kafka's. Sessions are kept in memory: after a restart a client is told
that its session is unknown, and opens another.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from leafcuttr.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from leafcuttr_sdk import Clock

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
_MAX_EPOCH: Final = 2**31 - 1
# Kafka's min.incremental.fetch.session.eviction.ms has this value and is not configurable since KIP-227.
_EVICTION_MS: Final = 120_000
# What all sessions together remember at most, some 60 MB. The slots alone would let one client fill gigabytes.
MOST_PARTITIONS: Final = 200_000

Key = tuple[str | bytes, int]
"""Topic id (16 bytes, Fetch 13 and later) or topic name, and partition number."""


@dataclass(slots=True, eq=False)
class FetchSpec:
    """One partition of a session or of a request without one, and what was last answered about it."""

    topic: str | bytes
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    answered_high_watermark: int = -1
    answered_log_start: int = -1

    @property
    def key(self) -> Key:
        return self.topic, self.partition

    def update(self, other: "FetchSpec") -> None:
        """Take over what a newer request says; what was answered stays."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch


@dataclass(slots=True, eq=False)
class FetchSession:
    """An open session. `epoch` is the one that the next request has to carry."""

    id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[Key, FetchSpec] = field(default_factory=dict)

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1

    def has_news(self, spec: FetchSpec, high_watermark: int, log_start: int, *, with_records: bool) -> bool:
        """Whether an incremental answer has to mention this partition; remembers what it will say.

        A partition that was answered with records goes to the end, so that under a small `max_bytes` every
        partition has its turn. One of a delayed fetch may have been forgotten meanwhile, by another request with the
        number of this session.
        """
        changed = (
            with_records
            or spec.answered_high_watermark != high_watermark
            or spec.answered_log_start != log_start
        )
        spec.answered_high_watermark = high_watermark
        spec.answered_log_start = log_start
        if with_records and len(self.partitions) > 1 and spec.key in self.partitions:
            self.partitions[spec.key] = self.partitions.pop(spec.key)
        return changed


@dataclass(slots=True, eq=False)
class FetchPlan:
    """What one fetch request comes down to.

    `session` is None without one. `incremental` answers may leave out partitions; `session_id` goes in the answer.
    """

    specs: Sequence[FetchSpec]
    session: FetchSession | None = None
    incremental: bool = False

    @property
    def session_id(self) -> int:
        return self.session.id if self.session else NO_SESSION


class FetchSessions:
    """The cache of sessions: at most `slots` of them, with at most `most_partitions` in all.

    Unlike in Kafka, a session that would go beyond the second limit is not opened, or ends when it grows.
    """

    def __init__(self, slots: int, clock: Clock, most_partitions: int = MOST_PARTITIONS) -> None:
        self._slots = slots
        self._most_partitions = most_partitions
        self._partitions = 0  # of all sessions
        self._clock = clock
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(
        self,
        session_id: int,
        epoch: int,
        specs: Sequence[FetchSpec],
        forgotten: Iterable[Key],
        *,
        uses_topic_ids: bool,
    ) -> FetchPlan:
        """Decide what a request fetches.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch or FetchSessionTopicIdError: the whole request fails.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._close(session_id)
            if epoch == FINAL_EPOCH:
                return FetchPlan(specs)
            return FetchPlan(specs, self._open(specs, uses_topic_ids))
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionIdNotFound
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError
        self._update(session, specs, forgotten)
        if not session.partitions:
            self._close(session_id)
            return FetchPlan(())
        if self._partitions > self._most_partitions:
            self._close(session_id)
            raise FetchSessionIdNotFound
        session.used_ms = self._elapsed_ms()
        session.advance()
        return FetchPlan(tuple(session.partitions.values()), session, incremental=True)

    def close(self, session: FetchSession) -> None:
        """End one that its client is not told of."""
        self._close(session.id)

    def _update(self, session: FetchSession, specs: Sequence[FetchSpec], forgotten: Iterable[Key]) -> None:
        partitions = session.partitions
        before = len(partitions)
        for spec in specs:
            known = partitions.get(spec.key)
            if known is None:
                partitions[spec.key] = spec
            else:
                known.update(spec)
        for key in forgotten:
            partitions.pop(key, None)
        self._partitions += len(partitions) - before

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _open(self, specs: Sequence[FetchSpec], uses_topic_ids: bool) -> FetchSession | None:
        now = self._elapsed_ms()
        if len(self._sessions) >= self._slots and not self._evict(len(specs), now):
            return None
        if self._partitions + len(specs) > self._most_partitions:
            return None
        session_id = random.randint(1, _MAX_EPOCH)
        while session_id in self._sessions:
            session_id = random.randint(1, _MAX_EPOCH)
        session = FetchSession(
            session_id, uses_topic_ids, now, now, partitions={spec.key: spec for spec in specs}
        )
        self._sessions[session_id] = session
        self._partitions += len(specs)
        return session

    def _elapsed_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def _evict(self, size: int, now: int) -> bool:
        """Evict one: the longest unused session if it is stale, else the smallest older one that is smaller."""
        if not self._sessions:
            return False
        stale = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now - stale.used_ms > _EVICTION_MS:
            self._close(stale.id)
            return True
        smallest = min(
            self._sessions.values(), key=lambda session: (len(session.partitions), session.used_ms)
        )
        if now - smallest.created_ms > _EVICTION_MS and len(smallest.partitions) < size:
            self._close(smallest.id)
            return True
        return False
