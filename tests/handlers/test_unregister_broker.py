"""UnregisterBroker: the only broker stays."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.unregister_broker import UnregisterBrokerRequest


@pytest.mark.parametrize(
    ("broker_id", "code", "message"),
    [
        (5, ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 5 is not currently registered"),
        (1, ErrorCode.INVALID_REQUEST, "Broker 1 is the only one and cannot be unregistered."),
    ],
)
async def test_no_broker_can_be_unregistered(
    send: Any, broker_id: int, code: ErrorCode, message: str
) -> None:
    answer = await send(UnregisterBrokerRequest(broker_id=broker_id), 0)
    assert (answer.error_code, answer.error_message) == (code, message)
