"""Conformance of peers: `leafcuttr_sdk.peers` says what they promise.

The check creates topics and groups in the peer's cluster, with names that begin with its prefix, and leaves them there.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.testing.report import Notes, Report

PROMISES: Final = {
    "cluster": "it says which cluster it is, and what that can do",
    "topics": "topics are created, described and changed; what does not exist is left out or refused",
    "order": "batches are read in the order of the calls of `append`, with offsets without a gap",
    "producer": "producer, sequence and base offset are set by `append`, whatever the batch says",
    "refusals": "a batch that is refused says why, and none is appended behind it",
    "cancelled append": "after a call of `append` was cancelled the next one goes on",
    "waiting": "`read` waits for records and for `assign`, and loses nothing when it is cancelled",
    "bounds": "`read` gives at most as many bytes as it may, and all partitions have their turn",
    "pause": "a partition that is paused or unassigned is not read",
    "out of range": "a position that is none is said once, and `assign` mends it",
    "deleted": "a topic that was deleted, or created anew, is said and not read on",
    "offsets": "offsets by time, of the ends, and of the last stable one",
    "epochs": "where a leader epoch ended",
    "transactions": "records and offsets become visible together or not at all, and what was aborted is named",
    "fencing": "of two producers with one transactional id the first can write no more",
    "groups": "offsets are committed for groups without members, and for no others",
    "claims": "of two that claim a name one has it, and the other once that is over",
}

DeleteTopic = Callable[[str], Awaitable[None]]


async def check_peer(
    peer: Peer,
    *,
    prefix: str = "check-peer",
    second: Peer | None = None,
    delete_topic: DeleteTopic | None = None,
) -> None:
    """Check a peer on its own loop of trio. `second` is another peer of the same cluster, as another process has one;
    without it the peer is both. Without `delete_topic` the check leaves out what needs it. Raises ContractError with
    all that is wrong."""
    (await peer_report(peer, prefix=prefix, second=second, delete_topic=delete_topic)).raise_problems()


async def peer_report(
    peer: Peer,
    *,
    prefix: str = "check-peer",
    second: Peer | None = None,
    delete_topic: DeleteTopic | None = None,
    only: frozenset[str] | None = None,
) -> Report:
    """The report that `check_peer` would raise; of these promises if `only` names some."""
    from leafcuttr_sdk.testing.peer_cluster_trial import ClusterTrial
    from leafcuttr_sdk.testing.peer_reading_trial import ReadingTrial
    from leafcuttr_sdk.testing.peer_trial import PeerTrial
    from leafcuttr_sdk.testing.peer_writing_trial import WritingTrial

    trial = PeerTrial(
        peer, second or peer, Notes("peer", type(peer).__name__, PROMISES), prefix, delete_topic
    )
    cluster, reading, writing = ClusterTrial(trial), ReadingTrial(trial), WritingTrial(trial)
    parts: dict[str, Callable[[], Awaitable[None]]] = {
        "cluster": cluster.cluster,
        "topics": cluster.topics,
        "order": writing.order,
        "producer": writing.producer,
        "refusals": writing.refusals,
        "cancelled append": writing.cancelled_append,
        "waiting": reading.waiting,
        "bounds": reading.bounds,
        "pause": reading.pause,
        "out of range": reading.out_of_range,
        "deleted": reading.deleted,
        "offsets": cluster.offsets,
        "epochs": cluster.epochs,
        "transactions": writing.transactions,
        "fencing": writing.fencing,
        "groups": cluster.groups,
        "claims": cluster.claims,
    }
    done = [
        name
        for name in parts
        if (only is None or name in only) and (name != "deleted" or delete_topic is not None)
    ]
    for name in done:
        await trial.part(name, parts[name])
    return trial.notes.report(done)
