"""SASL PLAIN (RFC 4616): name and password as they are. Without TLS everybody on the way can read them."""

from leafcuttr.client.sasl.mechanism import SaslRefusal
from leafcuttr.client.settings import ClientSasl


class Plain:
    """Of one message; the broker's acceptance is the answer to it."""

    def __init__(self, sasl: ClientSasl) -> None:
        self._sasl = sasl

    def first(self) -> bytes:
        """`[authzid] NUL authcid NUL passwd`; without an authzid it is the user himself."""
        for text in (self._sasl.username, self._sasl.password):
            if "\0" in text:
                raise SaslRefusal("PLAIN cannot send a NUL in a name or a password")
        return b"\0".join((b"", self._sasl.username.encode(), self._sasl.password.encode()))

    def respond(self, challenge: bytes) -> bytes | None:
        return None
