"""EndTxn: commits and aborts, and the epoch to go on with."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.transactions.states import TransactionState
from support.transactional import begin, end_request, init

VERSIONS = range(6)


def state(broker: Broker) -> TransactionState:
    found = broker.transactions.find("id")
    assert found is not None
    return found.now.state


@pytest.mark.one_in(2)
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_ends_a_transaction(
    broker: Broker, coordinators: None, send: Any, version: int, commit: bool
) -> None:
    """With version 5 the epoch ends as well (KIP-890)."""
    await broker.topics.create("t", 1, {})
    producer = await begin(send)
    answer = await send(end_request(producer, commit=commit), version)
    assert answer.error_code == ErrorCode.NONE
    assert state(broker) is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    next_epoch = producer.producer_id, producer.producer_epoch + 1
    assert (answer.producer_id, answer.producer_epoch) == (next_epoch if version >= 5 else (-1, -1))
    found = broker.transactions.find("id")
    assert found is not None and found.now.epoch == producer.producer_epoch + (version >= 5)
    assert broker.topics.by_name["t"].partitions[0].log.log_end_offset == 1, "the marker"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_older_producer_is_fenced(send: Any, version: int) -> None:
    """Versions 0 and 1 do not know PRODUCER_FENCED (KIP-588)."""
    await init(send)
    answer = await send(end_request((await init(send)).fenced, commit=True), version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert answer.error_code == fenced


async def test_there_is_nothing_to_end(send: Any) -> None:
    producer = await init(send)
    answer = await send(end_request(producer, commit=True), 4)
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    answer = await send(end_request(producer._replace(transactional_id="other"), commit=True), 4)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
