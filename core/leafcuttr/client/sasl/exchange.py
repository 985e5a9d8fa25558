"""The requests of an authentication: SaslHandshake, then SaslAuthenticate until the mechanism is done (KIP-152).

    exchange = SaslExchange(sasl, "10.0.0.7:9093")
    while exchange.request is not None:
        exchange.answered(send(exchange.request, at_least=exchange.at_least))

After `lifetime_s` the broker closes the connection, unless the same was done again before (KIP-368).
"""

from typing import Any

from leafcuttr.client.errors import AuthenticationRefused, reason
from leafcuttr.client.sasl.mechanism import SaslMechanism, SaslRefusal
from leafcuttr.client.sasl.plain import Plain
from leafcuttr.client.sasl.scram import HASHES, Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class SaslExchange:
    """One authentication of one connection. `peer` is the broker's address, for the texts of errors."""

    def __init__(self, sasl: ClientSasl, peer: str) -> None:
        self.request: Any = SaslHandshakeRequest(mechanism=sasl.mechanism)
        """What is to be sent next; None once the broker has accepted us."""
        self.at_least = 1
        """The lowest version that can carry it: below 1 of the handshake the tokens are bare."""
        self.lifetime_s: float | None = None
        """How long the session lasts from now on; None for as long as the connection."""
        self._sasl = sasl
        self._peer = peer
        self._mechanism: SaslMechanism = Scram(sasl) if sasl.mechanism in HASHES else Plain(sasl)

    @property
    def takes_long(self) -> bool:
        """Whether `answered` may take so long for the next response that an event loop should leave it to a thread."""
        return isinstance(self._mechanism, Scram)

    def answered(self, response: Any) -> None:
        """The response to `request`. Raises AuthenticationRefused."""
        try:
            if isinstance(response, SaslHandshakeResponse):
                self._begin(response)
            else:
                assert isinstance(response, SaslAuthenticateResponse)
                self._continue(response)
        except SaslRefusal as error:
            raise AuthenticationRefused(f"{self._peer}: {error}") from None

    def _begin(self, response: SaslHandshakeResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            there = ", ".join(map(repr, response.mechanisms[:10])) or "none"
            raise SaslRefusal(f"it does not offer sasl.mechanism={self._sasl.mechanism}; it offers {there}")
        if response.error_code:
            raise SaslRefusal(f"it refuses SaslHandshake: {reason(response.error_code)}")
        self.request, self.at_least = SaslAuthenticateRequest(auth_bytes=self._mechanism.first()), 0

    def _continue(self, response: SaslAuthenticateResponse) -> None:
        if response.error_code:
            text = reason(response.error_code, response.error_message)
            raise SaslRefusal(f"the user {self._sasl.username} is refused: {text}")
        message = self._mechanism.respond(response.auth_bytes)
        if message is None:
            self.request = None
            if response.session_lifetime_ms > 0:
                self.lifetime_s = response.session_lifetime_ms / 1000
        else:
            self.request = SaslAuthenticateRequest(auth_bytes=message)
