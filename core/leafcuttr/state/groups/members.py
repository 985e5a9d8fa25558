"""The members of one group, its leader, and the protocols that all of them support.

Only the book-keeping is here. `machine` decides when a member may join and when it is removed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from leafcuttr.state.groups.events import Protocols, Token


@dataclass(slots=True, eq=False, kw_only=True)
class Member:
    """One member. `deadline`: when its session ends (monotonic seconds), None while it waits for an answer.

    `is_new`: it waits in its first JoinGroup and cannot heartbeat, because it does not know its id yet.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    joining: Token | None = None
    syncing: Token | None = None
    deadline: float | None = None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


def size_of(protocols: Protocols) -> int:
    """In bytes, names by their characters."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


@dataclass(slots=True, eq=False)
class Members:
    """The members by id, in the order in which they came."""

    by_id: dict[str, Member] = field(default_factory=dict)
    by_instance: dict[str, str] = field(default_factory=dict)
    size: int = 0  # bytes of all names and metadata of protocols
    _leader_id: str | None = None
    _supporters: Counter[str] = field(default_factory=Counter)

    @property
    def leader_id(self) -> str | None:
        """None only if there are no members. Once the leader is gone, the longest-standing of the others leads."""
        # Found when it is requested: thousands that leave together would each go past those gone before.
        if self._leader_id not in self.by_id:
            self._leader_id = next(iter(self.by_id), None)
        return self._leader_id

    @leader_id.setter
    def leader_id(self, member_id: str | None) -> None:
        self._leader_id = member_id

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self.by_id

    def add(self, member: Member) -> None:
        self.by_id[member.member_id] = member
        self.size += size_of(member.protocols)
        self._supporters.update({name for name, _ in member.protocols})
        if member.instance_id is not None:
            self.by_instance[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> Member:
        """Forget a member."""
        member = self.by_id.pop(member_id)
        self.size -= size_of(member.protocols)
        self._supporters -= Counter({name for name, _ in member.protocols})
        if member.instance_id is not None:
            self.by_instance.pop(member.instance_id, None)
        return member

    def replace(self, old_id: str, new: Member) -> Member:
        """Let `new` take the place, and the lead if it had it, of the member `old_id`; return that one."""
        led = self.leader_id == old_id
        old = self.remove(old_id)
        self.add(new)
        if led:
            self._leader_id = new.member_id
        return old

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._supporters -= Counter({name for name, _ in member.protocols})
        self.size += size_of(protocols) - size_of(member.protocols)
        member.protocols = protocols
        self._supporters.update({name for name, _ in protocols})

    def any_supported_by_all(self, names: Iterable[str]) -> bool:
        return any(self._supporters[name] == len(self.by_id) for name in names)

    def elect_protocol(self) -> str:
        """The protocol that all can do and most like best; of equals, the one that was voted for first."""
        candidates = {name for name, count in self._supporters.items() if count == len(self.by_id)}
        votes: Counter[str] = Counter()
        for member in self:
            votes[next(name for name, _ in member.protocols if name in candidates)] += 1
        return votes.most_common(1)[0][0]

    def keep_or_replace_leader(self) -> bool:
        """Keep the leader if it has joined this rebalance, else take the first that has. False if none has."""
        leader = self.by_id.get(self.leader_id or "")
        if leader is not None and leader.joining is not None:
            return True
        present = next((member for member in self if member.joining is not None), None)
        if present is None:
            return False
        self._leader_id = present.member_id
        return True

    def all_waiting_to_join(self) -> bool:
        return all(member.joining is not None for member in self)

    def waiting_to_join(self) -> int:
        return sum(member.joining is not None for member in self)

    def rebalance_timeout_s(self) -> float:
        return max((member.rebalance_timeout_ms for member in self), default=0) / 1000
