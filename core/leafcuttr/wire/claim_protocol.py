"""What the members of a claim tell each other through a classic consumer group. No I/O, no member's state.

A claim (`leafcuttr_sdk.peers.Peer.claim`) is a group of this protocol type, so that tools which show groups of
consumers leave it out. Each member joins with one protocol and says whether it holds the claim; the leader of a
rebalance gives it to the member that holds it, else to the one with the smallest member id. So one that comes takes it
from nobody.

What every implementation keeps to, in this process and over the network:

- The rebalance timeout is the session timeout.
- A member says that it holds the claim only while it does by its own clock: for one session timeout from when it sent
  the last request of its generation that was answered without an error. A rebalance under way (REBALANCE_IN_PROGRESS)
  does not lengthen that, since the coordinator may go on without the member after the rebalance timeout. So of two
  members of a group at most one says it.
- It holds on to the claim during a rebalance, which it joins at once.
- Over the network it heartbeats each second, or three times a session if that is more often: a member that waits learns
  so of one that left. In the broker's process it is told.
"""

from collections.abc import Iterable
from typing import Final

PROTOCOL_TYPE: Final = "claim"
PROTOCOL_NAME: Final = "one"

_VERSION: Final = b"\x00\x00"
HOLDS: Final = _VERSION + b"\x01"
"""Of a member that holds the claim: its metadata in JoinGroup. In an assignment: the member has it."""
WAITS: Final = _VERSION + b"\x00"


def says_held(data: bytes | bytearray | memoryview) -> bool:
    """Whether metadata, or an assignment, says that the member has the claim. Bytes that make no sense do not."""
    return bytes(data[2:3]) == b"\x01"


def assignments(members: Iterable[tuple[str, bytes | bytearray | memoryview]]) -> dict[str, bytes]:
    """By member id, from the ids and metadata of all members. At least one is needed."""
    claims = [(not says_held(metadata), member_id) for member_id, metadata in members]
    _, holder = min(claims)
    return {member_id: HOLDS if member_id == holder else WAITS for _, member_id in claims}
