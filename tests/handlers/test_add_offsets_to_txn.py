"""AddOffsetsToTxn: the partition that keeps a group's offsets becomes part of the transaction."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from support.transactional import init

VERSIONS = range(5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_adds_the_partition_of_the_group(broker: Broker, send: Any, version: int) -> None:
    producer = await init(send)
    answer = await send(AddOffsetsToTxnRequest(**producer._asdict(), group_id="g"), version)
    assert answer.error_code == ErrorCode.NONE
    found = broker.transactions.find("id")
    assert found is not None and set(found.now.partitions) == {broker.groups.partition_of("g")}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_older_producer_is_fenced(send: Any, version: int) -> None:
    """Versions 0 and 1 do not know PRODUCER_FENCED (KIP-588)."""
    await init(send)
    producer = (await init(send)).fenced
    answer = await send(AddOffsetsToTxnRequest(**producer._asdict(), group_id="g"), version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert answer.error_code == fenced
