"""One step of a SASL mechanism: what the client says, and what the broker answers.

Versions:
- 1: how long the session lasts, before whose end the client has to authenticate again (KIP-368).
- 2: flexible.
"""

from leafcuttr.wire.schema import BYTES, INT16, INT64, STRING, field, message


@message("0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes = field(BYTES, "0+")


@message("0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    auth_bytes: bytes = field(BYTES, "0+")
    session_lifetime_ms: int = field(INT64, "1+", ignorable=True)
