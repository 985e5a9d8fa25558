"""InitProducerId: ids and epochs for idempotent and transactional producers."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest


def idempotent(**known: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, **known})


async def test_every_version_gives_a_new_id_with_epoch_zero(send: Any) -> None:
    given = []
    for version in range(6):
        answer = await send(idempotent(), version)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
        given.append(answer.producer_id)
    assert given == sorted(set(given))


async def test_a_producer_that_has_an_id_gets_another(send: Any) -> None:
    answer = await send(idempotent(producer_id=700, producer_epoch=5), 5)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != 700


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (idempotent(producer_id=5), ErrorCode.INVALID_REQUEST),
        (idempotent(producer_epoch=5), ErrorCode.INVALID_REQUEST),
        (idempotent(producer_id=-2), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id="tx", producer_id=5), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id="tx"), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (
            idempotent(transactional_id="tx", transaction_timeout_ms=900_001),
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
    ],
)
async def test_refusals(send: Any, requested: InitProducerIdRequest, code: ErrorCode) -> None:
    answer = await send(requested, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


async def test_a_full_disk_is_an_error_that_clients_repeat(broker: Broker, send: Any) -> None:
    broker.metadata._connection.execute("PRAGMA query_only = ON")
    answer = await send(idempotent(), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.metadata._connection.execute("PRAGMA query_only = OFF")
    assert (await send(idempotent(), 5)).error_code == ErrorCode.NONE
