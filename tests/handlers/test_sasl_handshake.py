"""SaslHandshake on a listener without SASL; with it: tests/server/login/test_before.py."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest


@pytest.mark.parametrize("version", [0, 1])
async def test_without_sasl(send: Any, version: int) -> None:
    answer = await send(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.ILLEGAL_SASL_STATE, [])
