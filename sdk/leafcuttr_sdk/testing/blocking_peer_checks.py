"""Conformance of blocking peers: `leafcuttr_sdk.blocking_peers` says what they promise.

The check creates topics and groups in the peer's cluster, with names that begin with its prefix, and leaves them there.
"""

from collections.abc import Callable
from typing import Final

from leafcuttr_sdk.blocking_peers import BlockingPeer
from leafcuttr_sdk.testing.report import Notes, Report

BLOCKING_PROMISES: Final = {
    "cluster": "it says which cluster it is, its topics, and who leads their partitions",
    "order": "batches are appended in the order of the calls of `append` and `send`, and counted by `flush`",
    "refusals": "what is refused is said by `append`, raised by `send` and `flush`, and nothing is sent behind it",
    "reading": "`read` gives what is there from the position on, and nothing after its time",
    "offsets": "offsets by time, of the ends, and of the last stable one",
    "shared": "what several processes write to a transaction becomes visible together, with its offsets",
    "aborted": "an aborted transaction is named to readers, and its offsets are not committed",
    "epochs": "each transaction has an epoch of its own, and what is written to an earlier one is refused",
    "fencing": "a later owner fences an earlier one, and those that have joined that",
    "twice": "a partition that two have written to is noticed, before or at the commit",
    "resumed": "a transaction that was left open is ended by another process",
    "interrupted": "an owner whose context ends with an exception aborts its transaction",
    "groups": "offsets are committed for groups without members",
}


def check_blocking_peer(
    peer: BlockingPeer, *, prefix: str = "check-blocking", second: BlockingPeer | None = None
) -> None:
    """Check a blocking peer. `second` is another one of the same cluster, as another process has one; without it the
    peer is both. Raises ContractError with all that is wrong."""
    blocking_peer_report(peer, prefix=prefix, second=second).raise_problems()


def blocking_peer_report(
    peer: BlockingPeer,
    *,
    prefix: str = "check-blocking",
    second: BlockingPeer | None = None,
    only: frozenset[str] | None = None,
) -> Report:
    """The report that `check_blocking_peer` would raise; of these promises if `only` names some."""
    from leafcuttr_sdk.testing.blocking_peer_trial import BlockingTrial
    from leafcuttr_sdk.testing.shared_transaction_trial import SharedTransactionTrial

    notes = Notes("blocking peer", type(peer).__name__, BLOCKING_PROMISES)
    trial = BlockingTrial(peer, second or peer, notes, prefix)
    shared = SharedTransactionTrial(trial)
    parts: dict[str, Callable[[], None]] = {
        "cluster": trial.cluster,
        "order": trial.order,
        "refusals": trial.refusals,
        "reading": trial.reading,
        "offsets": trial.offsets,
        "shared": shared.shared,
        "aborted": shared.aborted,
        "epochs": shared.epochs,
        "fencing": shared.fencing,
        "twice": shared.twice,
        "resumed": shared.resumed,
        "interrupted": shared.interrupted,
        "groups": trial.groups,
    }
    done = [name for name in parts if only is None or name in only]
    for name in done:
        trial.part(name, parts[name])
    return notes.report(done)
