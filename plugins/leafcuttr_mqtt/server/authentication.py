"""Who a client is: the pair of `mqtt.auth.username`, the authenticators of `mqtt.authenticators`, and the enhanced
authentication of 5.0 (4.12) by the mechanisms that they have.

Without the pair, and with `none` among the ways of `mqtt.auth`, everyone is let in, with any credentials or none: so
devices that were set up for a broker with a password need no change.
"""

import hmac
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.bridge.local import LocalStream
from leafcuttr_mqtt.packets.types import Connect, ReasonCode
from leafcuttr_sdk.authentication import (
    ANONYMOUS,
    Authenticated,
    AuthenticationExchange,
    NameAndPassword,
    Principal,
)

if TYPE_CHECKING:
    from leafcuttr_mqtt.settings import Options
    from leafcuttr_sdk.authentication import Authentication
    from leafcuttr_sdk.serving import ByteStream


class NotAuthenticated(Exception):
    """The client is not let in. `reason` is for its CONNACK, the text for the log."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class Doorkeeper:
    """Decides on CONNECT packets. `open` is whether clients need no credentials."""

    def __init__(self, options: "Options", authentication: "Authentication") -> None:
        self._name: Final = None if options.user_name is None else options.user_name.encode()
        self._password: Final = options.password or b""
        self._authentication: Final = authentication
        self.open: Final = self._name is None and not authentication.required

    async def admit(self, connect: Connect, stream: "ByteStream") -> Authenticated:
        """Who the client is. Raises NotAuthenticated."""
        if isinstance(stream, LocalStream):  # a bridge, which is of this process
            return Authenticated(Principal("User", connect.client_id))
        if self._is_the_pair(connect):
            return Authenticated(Principal("User", connect.user_name or ""))
        ways = self._authentication.ways
        refused = "it has sent no credentials"
        if connect.user_name is not None and "basic" in ways:
            answer = await self._authentication.authenticate(_credentials(connect))
            if isinstance(answer, Authenticated):
                return answer
            refused = answer.reason
        elif "mtls" in ways and stream.tls is not None:
            from leafcuttr_sdk.web.clients import certificate_of

            certificate = certificate_of(stream.tls)
            if certificate is None:
                raise NotAuthenticated(ReasonCode.NOT_AUTHORIZED, "it has shown no certificate")
            answer = await self._authentication.authenticate(certificate)
            if isinstance(answer, Authenticated):
                return answer
            refused = answer.reason
        elif self.open:
            return Authenticated(ANONYMOUS)
        elif connect.user_name is not None:
            refused = "its user name and password are wrong"
        raise NotAuthenticated(
            ReasonCode.NOT_AUTHORIZED if connect.user_name is None else ReasonCode.BAD_USER_NAME_OR_PASSWORD,
            refused,
        )

    def begin(self, method: str) -> AuthenticationExchange:
        """Begin an exchange of enhanced authentication. Raises NotAuthenticated: this method is not offered."""
        if method not in self._authentication.mechanisms:
            raise NotAuthenticated(
                ReasonCode.BAD_AUTHENTICATION_METHOD,
                f"the authentication method {method[:255]!r} is not offered",
            )
        return self._authentication.begin(method)

    def _is_the_pair(self, connect: Connect) -> bool:
        if self._name is None:
            return False
        # Both are compared whatever the first comparison says: how long it takes tells nothing.
        name = hmac.compare_digest((connect.user_name or "").encode(), self._name)
        password = hmac.compare_digest(connect.password or b"", self._password)
        return name and password and connect.user_name is not None and connect.password is not None


def _credentials(connect: Connect) -> NameAndPassword:
    # Passwords are binary data in MQTT (3.1.3.6), and texts for authenticators.
    return NameAndPassword(connect.user_name or "", (connect.password or b"").decode("utf-8", "replace"))
