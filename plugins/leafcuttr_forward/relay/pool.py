"""Which of several identical sources is read. Observations go in with their time, a decision comes out; no I/O.

Theory of operation. Sources are probed in rounds. Each is in a state, and a probe moves it as the table `_NEXT` says. A
source that is up and fails a probe is suspect: it is probed again at once, so that one slow answer is no switch, and a
dead source is left within one interval and two timeouts. The source that is read is left

    when it is down                             for the next one in their order, in a ring, among those that are up
    when another one is ahead of it by more     for the one that is ahead of all
      than the threshold

Two probes of a round are not of one moment, and a quick topic grows by more than the threshold between them. So what a
source has at the end of a round is compared with what the others had at the end of the round before: one that is read
and as quick as they are is always ahead of that.

A source can be taken only if each partition has our position: its end is not below (that one is waited for, its
offsets are never reset) and its log begins not above it. Of those that are up, one that lags behind the healthiest by
more than the threshold is passed over: it would be left at once. Where none can be taken, the source that is read
stays, and so does the position.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, TypeAlias

from leafcuttr_sdk.types import TopicPartition

_PLAIN_PAUSE_S: Final = 1.0
"""Between tries in vain, where no back-off is configured."""
_JITTER: Final = 0.2
_MOST_DOUBLINGS: Final = 30


class Health(enum.Enum):
    """What probes say of a source. The value is for people."""

    UNKNOWN = "not probed yet"
    UP = "up"
    SUSPECT = "did not answer a probe"
    DOWN = "down"


_NEXT: Final = {
    (Health.UNKNOWN, True): Health.UP,
    (Health.UNKNOWN, False): Health.DOWN,
    (Health.UP, True): Health.UP,
    (Health.UP, False): Health.SUSPECT,
    (Health.SUSPECT, True): Health.UP,
    (Health.SUSPECT, False): Health.DOWN,
    (Health.DOWN, True): Health.UP,
    (Health.DOWN, False): Health.DOWN,
}
"""By state, and whether a probe was answered."""


class Range(NamedTuple):
    """What a source has of a partition."""

    start: int
    end: int


Ranges: TypeAlias = Mapping[TopicPartition, Range]


class Stay(NamedTuple):
    """Nothing changes."""


class Switch(NamedTuple):
    """Read this source from now on. `first`: none was read before."""

    to: int
    why: str
    first: bool = False
    lagging: int | None = None
    """The source that is left because it lags."""


class GiveUp(NamedTuple):
    """The relay ends, with this line."""

    why: str


Decision: TypeAlias = Stay | Switch | GiveUp
STAY: Final = Stay()


@dataclass(slots=True)
class Watched:
    """One source, as probes have found it."""

    name: str
    health: Health = Health.UNKNOWN
    ranges: Ranges = field(default_factory=dict[TopicPartition, Range])
    trouble: str | None = None
    """Why it cannot be read, in a line."""
    before: int = 0
    """Its weight when the last round ended."""
    refused: str | None = None
    """It has other records than those that were forwarded: it is not taken as long as the relay runs."""

    @property
    def weight(self) -> int:
        """The sum of its end offsets, over all partitions of all topics."""
        return sum(each.end for each in self.ranges.values())


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait after tries in vain: without back-off always the same."""

    enabled: bool
    min_s: float
    max_s: float

    def after(self, tries: int, random: Random) -> float:
        """Seconds, after so many tries in vain in a row, from 1 on."""
        if not self.enabled:
            return _PLAIN_PAUSE_S
        doubled = self.min_s * (1 << min(tries - 1, _MOST_DOUBLINGS))
        return min(self.max_s, doubled * random.uniform(1 - _JITTER, 1 + _JITTER))


class SourcePool:
    """The sources of one relay; one source is a pool too, which only counts tries in vain.

    `lag_threshold` in records; `max_retries` and `max_failovers` are -1 without a limit.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        lag_threshold: int,
        max_retries: int = -1,
        max_failovers: int = -1,
        first: int = 0,
    ) -> None:
        self.sources: Final = [Watched(name) for name in names]
        self.current: int | None = None
        self.switches = 0
        """Without the first choice."""
        self.vain = 0
        """How often in a row no source at all has answered."""
        self._lags: dict[str, int] = dict.fromkeys(names, 0)
        """By how many records the source that is read lags behind each, when the last round ended."""
        self._threshold = lag_threshold
        self._max_retries = max_retries
        self._max_failovers = max_failovers
        self._first = first

    # Observations

    def answered(self, index: int, ranges: Ranges) -> None:
        """A probe was answered: what the source has of each partition that is read."""
        source = self.sources[index]
        source.health = _NEXT[source.health, True]
        source.ranges, source.trouble = ranges, None
        self.vain = 0

    def failed(self, index: int, why: str) -> None:
        """A probe was not answered in time, or with an error."""
        source = self.sources[index]
        source.health = _NEXT[source.health, False]
        source.trouble = why

    def refuse(self, index: int, why: str) -> None:
        """What the source has is not what the one before had: the last record that was forwarded is not there, or is
        another one."""
        self.sources[index].refused = why

    def round_ended(self) -> None:
        """All sources were probed once more."""
        if all(each.health is Health.DOWN for each in self.sources):
            self.vain += 1
        here = None if self.current is None else self.sources[self.current]
        for each in self.sources:
            self._lags[each.name] = 0 if here is None else each.before - here.weight
            each.before = each.weight

    # Decisions

    def decide(self, position: Mapping[TopicPartition, int]) -> Decision:
        """What is to be done now. `position` is the next offset of each partition that is read, as far as it is known.
        A switch is taken as done."""
        if self._max_retries >= 0 and max(1, self._max_retries) <= self.vain:
            return GiveUp(f"no source answers after {self.vain} tries: {self.why_down}")
        if all(each.refused is not None for each in self.sources):
            refusals = "; ".join(f"{each.name}: {each.refused}" for each in self.sources)
            return GiveUp(f"no source has what was copied last: {refusals}")
        usable = [index for index in range(len(self.sources)) if self.why_not(index, position) is None]
        if self.current is None:
            return self._begin(usable)
        others = [index for index in usable if index != self.current]
        if not others:
            return STAY
        found = self._due(self.current, others)
        if found is None:
            return STAY
        if 0 <= self._max_failovers <= self.switches:
            return GiveUp(f"{found.why}, and max_failovers allows {self._max_failovers} switches of source")
        self.switches += 1
        self.current = found.to
        self._lags = dict.fromkeys(self._lags, 0)
        return found

    def why_not(self, index: int, position: Mapping[TopicPartition, int]) -> str | None:
        """Why this source cannot be taken at this position; None if it can."""
        source = self.sources[index]
        if source.refused is not None:
            return source.refused
        if source.health is not Health.UP:
            return source.trouble or source.health.value
        for partition, offset in position.items():
            found = source.ranges.get(partition)
            if found is None:
                return f"it does not have {partition.topic}-{partition.partition}"
            if found.end < offset:
                return f"{partition.topic}-{partition.partition} ends at {found.end}, before the position {offset}"
            if found.start > offset:
                return f"{partition.topic}-{partition.partition} begins at {found.start}, behind the position {offset}"
        return None

    @property
    def suspects(self) -> list[int]:
        """Those to probe again at once."""
        return [index for index, each in enumerate(self.sources) if each.health is Health.SUSPECT]

    def _begin(self, usable: Sequence[int]) -> Decision:
        """The first choice waits for the probes of those before it in the ring, and for no other one."""
        for index in self._ring(self._first - 1):
            if index in usable:
                self.current = index
                return Switch(index, "it is the first that can be read", first=True)
            if self.sources[index].health is Health.UNKNOWN:
                return STAY
        return STAY

    def _due(self, current: int, others: Sequence[int]) -> Switch | None:
        here = self.sources[current]
        healthiest = max(others, key=lambda index: self.sources[index].weight)
        most = self.sources[healthiest].weight
        if here.health is Health.DOWN or here.refused is not None:
            near = (
                index
                for index in self._ring(current)
                if index in others and most - self.sources[index].weight <= self._threshold
            )
            return Switch(next(near), f"{here.name}: {here.refused or here.trouble or here.health.value}")
        name = self.sources[healthiest].name
        lag = self._lags[name]
        if here.health is Health.UP and lag > self._threshold:
            return Switch(
                healthiest,
                f"{here.name} lags behind {name} by {lag} records, more than {self._threshold}",
                lagging=current,
            )
        return None

    def _ring(self, after: int) -> list[int]:
        count = len(self.sources)
        return [(after + step) % count for step in range(1, count + 1)]

    @property
    def why_down(self) -> str:
        """The trouble of each source, in one line."""
        return "; ".join(f"{each.name}: {each.trouble or each.health.value}" for each in self.sources)
