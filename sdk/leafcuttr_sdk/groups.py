"""Consumer groups, as a plugin sees them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from leafcuttr_sdk._described import described
from leafcuttr_sdk.types import TopicPartition


@described
class CommittedOffset(NamedTuple):
    """How far a group has read a partition."""

    offset: int
    """The next one to read."""
    metadata: str = ""


@described
class GroupMember(NamedTuple):
    """A member of a group, and what it is assigned; nothing while the group rebalances."""

    member_id: str
    client_id: str
    host: str
    partitions: Sequence[TopicPartition]
    """What it has been assigned, in a stable group."""
    instance_id: str | None = None
    """That of a static member (KIP-345)."""


@described
class GroupInfo(NamedTuple):
    """A consumer group as it is now."""

    group: str
    state: str
    """Kafka's name for it: `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Dead`."""
    protocol: str
    members: Sequence[GroupMember]


@described
class ConsumerGroupMetadata(NamedTuple):
    """In whose name a consumer commits. One that is no member has generation -1 and neither member nor instance id."""

    group: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Groups(Protocol):
    """All consumer groups of this broker, those of clients and of plugins."""

    def names(self) -> list[str]:
        """All of them, sorted; also those without members."""
        ...

    def get(self, group: str) -> GroupInfo | None:
        """None for a group that does not exist. Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        ...

    def committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """The committed offsets of a group; none for one that does not exist. Raises as `get`."""
        ...

    def lag(self, group: str) -> Mapping[TopicPartition, int]:
        """Records between each committed offset and the high watermark. Raises as `get`."""
        ...

    async def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit for a group without members. Raises BrokerError: UnknownMemberId where it has some."""
        ...

    async def delete(self, group: str) -> None:
        """Raises NonEmptyGroup, GroupIdNotFound."""
        ...
