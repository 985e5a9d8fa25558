"""Transactions of several processes for tests: writing to one, and what becomes visible."""

from __future__ import annotations

from leafcuttr.client.calls import Calls
from leafcuttr.client.shared.joined import open_joined
from leafcuttr_sdk.blocking_peers import SharedTransaction
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import new_batch, read_to
from support.waiting import eventually


async def write(calls: Calls, shared: SharedTransaction, tp: TopicPartition, *values: bytes) -> None:
    async with open_joined(calls, shared) as joined:
        for value in values:
            (answer,) = await joined.append([new_batch(tp, value)])
            assert isinstance(answer, Appended), answer


async def sees(peer: Peer, tp: TopicPartition, *values: bytes) -> None:
    """Readers of committed records, a moment later."""

    async def same() -> bool:
        ends = await peer.offsets({tp: LATEST}, committed=True)
        async with peer.reader() as reader:
            if ends[tp]:
                reader.assign({tp: 0})
            return (await read_to(reader, ends))[tp] == list(values)

    await eventually(same, f"{list(values)} in {tp}", seconds=10)  # type: ignore[arg-type]  # T for None
