"""How topics are called at the target: MirrorMaker 2's two replication policies, and the names of its own topics.

Source: DefaultReplicationPolicy and IdentityReplicationPolicy of org.apache.kafka.connect.mirror. A policy belongs to
one flow: identity takes each topic as one of the flow's source.
"""

import re
from dataclasses import dataclass
from typing import Final

DEFAULT_POLICY: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
HEARTBEATS: Final = "heartbeats"


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """The names that topics of `source` have at the target."""

    source: str
    identity: bool = False
    separator: str = "."
    internal_separator: str = "."

    def remote(self, topic: str) -> str:
        """What a topic of the source is called at the target. Heartbeats always have the alias."""
        if self.identity and not self._looks_like_heartbeats(topic):
            return topic
        return f"{self.source}{self.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The alias that a topic came from last; None for one that began where it is."""
        if self.identity and not self._looks_like_heartbeats(topic):
            return self.source
        parts = topic.split(self.separator)
        while parts and not parts[-1]:  # as Java's split leaves them out
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream(self, topic: str) -> str | None:
        """What a topic is called where it came from; None for one that began where it is."""
        if self.identity and not self._looks_like_heartbeats(topic):
            return topic
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original(self, topic: str) -> str:
        """What a topic was called where it began."""
        while (upstream := self.upstream(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def is_heartbeats(self, topic: str) -> bool:
        """Of this cluster, or of another one over any number of flows."""
        return self.original(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Kafka's or MirrorMaker's own: never copied. Others may end with `internal` (KIP-1074)."""
        suffix = f"{self.internal_separator}internal"
        return (
            topic.startswith(("__", "."))
            or (topic.startswith("mm2") and topic.endswith(suffix))
            or topic.endswith(f"{self.internal_separator}checkpoints{suffix}")
        )

    def is_cycle(self, topic: str, target: str) -> bool:
        """Whether a topic came through the target already. Names of identity do not tell."""
        while (source := self.source_of(topic)) is not None:
            if source == target:
                return True
            upstream = self.upstream(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    def checkpoints_topic(self) -> str:
        """At the target."""
        between = self.internal_separator
        return f"{self.source}{between}checkpoints{between}internal"

    def offset_syncs_topic(self, other: str) -> str:
        """`other` is the alias of the cluster that does not have it."""
        between = self.internal_separator
        return f"mm2-offset-syncs{between}{other}{between}internal"

    def internal_patterns(self) -> tuple[str, ...]:
        """`is_internal`, as regular expressions."""
        between = re.escape(self.internal_separator)
        return (r"__.*", r"\..*", rf"mm2.*{between}internal", rf".*{between}checkpoints{between}internal")

    def cycle_patterns(self, target: str) -> tuple[str, ...]:
        """`is_cycle`, as regular expressions."""
        between, alias = re.escape(self.separator), re.escape(target)
        behind = rf"(?!(?:{between})*\Z).+"
        if self.identity:
            behind = rf".*{HEARTBEATS}"
        return (rf"(?:.*{between})?{alias}{between}{behind}",)

    def heartbeats_pattern(self) -> str:
        """`is_heartbeats`, as a regular expression."""
        return rf"(?:.*{re.escape(self.separator)})?{HEARTBEATS}"

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(HEARTBEATS)
