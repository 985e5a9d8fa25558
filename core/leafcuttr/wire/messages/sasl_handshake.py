"""The first step of an authentication: the client names a SASL mechanism, the broker says which it has.

Versions:
- 1: the steps that follow are SaslAuthenticate requests, no bare tokens (KIP-152).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, STRING, array, field, message


@message("0-1")
class SaslHandshakeRequest:
    mechanism: str = field(STRING, "0+")


@message("0-1")
class SaslHandshakeResponse:
    error_code: int = field(INT16, "0+")
    mechanisms: Sequence[str] = field(array(STRING), "0+")
