"""What a relay's configuration says, as values. `planning` makes it of files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from leafcuttr_forward.names import check_topic
from leafcuttr_sdk.errors import PluginError

_MOST_PARTITIONS: Final = 2**31 - 1


class RelayFaultsError(PluginError):
    """What is wrong with the files: `faults` has a line for each fault."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class TopicPair(NamedTuple):
    """A source topic, and where its records go."""

    source: str
    target: str
    partition: int | None = None
    """Of the target, for all records; None: the one that a record has at the source."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The pauses after tries in vain, and how many of these there may be."""

    max_retries: int
    enabled: bool
    min_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A source, or the target."""

    name: str
    servers: tuple[str, ...]
    session_timeout_s: float
    auth: tuple[str, str, str] | None = field(repr=False)
    """Mechanism, user and password."""
    tls: bool
    ca_path: str
    certificate_path: str
    key_path: str
    max_failovers: int = -1


class FilterPlan(NamedTuple):
    """One of `[filters.NAME]`."""

    name: str
    path: str
    config: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """How sources are watched."""

    interval_s: float
    lag_threshold: int
    request_timeout_s: float
    randomize: bool
    backoff: RetryPlan


@dataclass(frozen=True, slots=True)
class RelayPlan:
    """All that files say."""

    mode: str
    stop_at_end: bool
    log_level: str
    metrics_address: tuple[str | None, int] | None
    topics: tuple[TopicPair, ...]
    pool: PoolPlan
    sources: tuple[ClusterPlan, ...]
    target: ClusterPlan
    target_backoff: RetryPlan
    filters: tuple[FilterPlan, ...]
    notes: tuple[str, ...]
    """What has no effect here, and keys that are unknown: a line each."""

    @property
    def max_failovers(self) -> int:
        """The smallest of all sources; -1 without a limit."""
        return min((each.max_failovers for each in self.sources if each.max_failovers >= 0), default=-1)


def parse_topic(text: str) -> TopicPair:
    """`SOURCE:TARGET` or `SOURCE:TARGET:PARTITION`, as `--topic` has it. Raises ValueError."""
    source, _, target = text.partition(":")
    if not source or not target:
        raise ValueError("write SOURCE:TARGET or SOURCE:TARGET:PARTITION")
    return TopicPair(check_topic(source), *parse_target(target))


def parse_address(text: str, default_port: int | None = None) -> tuple[str, int]:
    """`host:port`, `[::1]:port`, `:port`. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:
        host, port = text, "" if default_port is None else str(default_port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "[" in host:
        raise ValueError("write HOST:PORT, and an IPv6 address in brackets")
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError("write HOST:PORT")
    if any(each.isspace() or each in "/," for each in host):
        raise ValueError("write HOST:PORT")
    return host, int(port)


def parse_target(text: str) -> tuple[str, int | None]:
    """`TOPIC` or `TOPIC:PARTITION`. Raises ValueError."""
    topic, colon, partition = text.partition(":")
    if not topic:
        raise ValueError("the target topic is missing")
    check_topic(topic)
    if not colon:
        return topic, None
    if not re.fullmatch("[0-9]{1,10}", partition) or int(partition) > _MOST_PARTITIONS:
        raise ValueError(f"{partition[:60]!r} is no partition")
    return topic, int(partition)
