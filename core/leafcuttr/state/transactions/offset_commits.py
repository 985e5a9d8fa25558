"""A group's offsets as part of a transaction: what TxnOffsetCommit and plugins share.

Both coordinators have a say: that of transactions admits the group's partition of `__consumer_offsets`, that of groups
checks the member and writes.
"""

from collections.abc import Sequence
from typing import Final

import trio

from leafcuttr.errors import ErrorCode, InvalidGroupId
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.coordinator import GroupCoordinator
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.state.transactions.coordinator import TransactionCoordinator

_AT_ONCE: Final = 500  # offsets in one batch; more are stored in several


async def commit_in_transaction(
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    group_id: str,
    committer: Committer,
    offsets: Sequence[NewOffset],
    *,
    adds: bool,
    knows_abortable: bool,
) -> list[ErrorCode]:
    """An error code for each of the offsets; their partitions exist. With `adds` the group becomes part of the
    transaction; `knows_abortable` as in `TransactionCoordinator.admit`.

    Raises BrokerError, for all of them: InvalidGroupId, IllegalGeneration, CoordinatorLoadInProgress,
    CoordinatorNotAvailable.
    """
    if not group_id:
        raise InvalidGroupId
    await groups.ready()
    admitted = transactions.admit(
        transactional_id,
        producer.producer_id,
        producer.epoch,
        groups.partition_of(group_id),
        adds=adds,
        knows_abortable=knows_abortable,
    )
    code = admitted if isinstance(admitted, ErrorCode) else await admitted
    if code:
        return [code] * len(offsets)
    codes: list[ErrorCode] = []
    while len(codes) < len(offsets):
        done = groups.offsets.commit_in_transaction(
            group_id, committer, producer, offsets[len(codes) : len(codes) + _AT_ONCE]
        )
        codes += done if isinstance(done, list) else await done
        if len(codes) < len(offsets):
            await trio.lowlevel.checkpoint()
    return codes
