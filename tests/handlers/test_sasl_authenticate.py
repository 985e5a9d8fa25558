"""SaslAuthenticate on a listener without SASL; with it: tests/server/login/test_before.py."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_without_sasl(send: Any, version: int) -> None:
    answer = await send(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert answer.auth_bytes == b""
