"""Reading the transactional ids back from `__transaction_state` at start, one partition after the other.

Only the last record of each id counts, so values are parsed when all keys of a partition have been seen. A record that
cannot be read is skipped with a warning; a log that cannot be read makes its ids unavailable.
"""

import logging
from collections.abc import Callable
from typing import Final

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.state.transactions.machine import Transaction
from leafcuttr.state.transactions.records import parse_key, parse_value
from leafcuttr.state.transactions.store import TransactionLog
from leafcuttr.state.transactions.table import TransactionTable
from leafcuttr.wire.entries import decode_entries
from leafcuttr.wire.errors import WireError

logger = logging.getLogger(__name__)

# How many records are read between two checkpoints of the loop.
_STEP: Final = 500


async def load(
    table: TransactionTable, log: TransactionLog, published: Callable[[list[Transaction]], None]
) -> None:
    """Load every partition in `table.loading`, publishing each as it is done: from then on clients change its ids."""
    for partition in sorted(table.loading):
        try:
            found = await _load_partition(log, partition)
        except (BrokerError, WireError) as error:
            logger.error(
                "__transaction_state-%d cannot be read, its transactional ids are not available: %s",
                partition,
                error,
            )
            table.failed.add(partition)
            found = []
        if partition not in table.loading:
            continue  # the topic has been deleted meanwhile
        table.loading.discard(partition)
        for transaction in found:
            table.adopt(transaction)
        published(found)


async def _load_partition(log: TransactionLog, partition: int) -> list[Transaction]:
    latest: dict[bytes, tuple[int, bytes]] = {}
    async for batches in log.batches(partition):
        for header, batch in batches:
            if header.is_control:
                continue
            for offset, key, value in decode_entries(header, batch):
                if key is None:
                    continue
                if value is None:
                    latest.pop(key, None)
                else:
                    latest[key] = offset, value
    found = []
    for number, (key, (offset, value)) in enumerate(latest.items()):
        if number % _STEP == 0:
            await trio.lowlevel.checkpoint()
        try:
            transactional_id = parse_key(key)
            if transactional_id is not None:
                found.append(Transaction(transactional_id, parse_value(value)))
        except WireError as error:
            logger.warning("record %d of __transaction_state-%d is skipped: %s", offset, partition, error)
    return found
