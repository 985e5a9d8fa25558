"""Broker settings of transactions that a client sees at once; those of their time are in tests/state/transactions."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from support import librdkafka
from support.changing import alter_broker
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient, produce_request

ONE = {"transaction.state.log.num.partitions": "1"}


def init(client: WireClient, timeout_ms: int) -> InitProducerIdResponse:
    """Once the coordinator is there."""
    request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=timeout_ms)
    not_yet = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def answer() -> Any:
        found = client.ask(request, 4)
        return None if found.error_code in not_yet else found

    found = until(answer, "the coordinator")
    assert isinstance(found, InitProducerIdResponse)
    return found


@pytest.mark.setting("transaction.max.timeout.ms")
def test_transaction_max_timeout_ms(serve: Any) -> None:
    refused = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    with serve({**ONE, "transaction.max.timeout.ms": "5000"}) as broker, WireClient(broker.address) as client:
        assert [init(client, ms).error_code for ms in (5000, 5001)] == [0, refused]
    with serve(ONE) as broker, WireClient(broker.address) as client:
        assert [init(client, ms).error_code for ms in (900_000, 900_001)] == [0, refused]


@pytest.mark.setting("transaction.partition.verification.enable", while_running=True)
def test_transaction_partition_verification_enable(serve: Any, scope: str) -> None:
    """Records of a transaction that nobody has begun: a client of the old kind names its partitions beforehand."""
    with serve(ONE) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")
        given = init(client, 60_000)
        data = batch(
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=0,
            transactional=True,
        )

        def outcome() -> int:
            request = produce_request("t", data, 0, -1, transactional_id="id")
            return int(client.ask(request, 11).responses[0].partition_responses[0].error_code)

        assert outcome() == ErrorCode.TRANSACTION_ABORTABLE
        alter_broker(broker.address, scope, {"transaction.partition.verification.enable": "false"})
        assert outcome() == 0
