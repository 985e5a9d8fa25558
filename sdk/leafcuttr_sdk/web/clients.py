"""The principal of each request: credentials from its headers or its certificate, checked before any handler is called
(RFC 7617 for Basic, RFC 6750 for Bearer).
"""

import base64
import ssl
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from leafcuttr_sdk.authentication import (
    ANONYMOUS,
    Authenticated,
    Authentication,
    BearerToken,
    Credentials,
    NameAndPassword,
    PeerCertificate,
    act_for,
)
from leafcuttr_sdk.trouble import Complaints
from leafcuttr_sdk.web.asgi import Scope
from leafcuttr_sdk.web.errors import ApiError

if TYPE_CHECKING:
    import logging

CHALLENGES: Final = {
    "basic": 'Basic realm="leafcuttr", charset="UTF-8"',
    "bearer": 'Bearer realm="leafcuttr"',
}
_LONGEST: Final = 16 * 1024
"""Characters of an Authorization header."""
_SHORT: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


class Clients:
    """Finds the principal of each request of a service."""

    def __init__(self, authentication: Authentication, logger: "logging.Logger", title: str) -> None:
        self._authentication = authentication
        self._complain = Complaints(logger)
        self._title = title
        self._challenges = tuple(
            ("www-authenticate", CHALLENGES[way]) for way in authentication.ways if way in CHALLENGES
        )

    async def identify(self, scope: Scope) -> Authenticated:
        """The client of this request; from here on this task acts for it. Raises ApiError: 401 with the challenges of
        the ways that the service offers; 403 where it takes certificates only."""
        credentials = self._credentials(scope)
        if credentials is None:
            if self._authentication.required:
                raise self.refusal("This request needs authentication.")
            client = Authenticated(ANONYMOUS)
        else:
            outcome = await self._authentication.authenticate(credentials)
            if not isinstance(outcome, Authenticated):
                peer = scope["client"] or ("?", 0)
                # By the address alone: a reason may hold a name, of which there are as many as a client likes.
                self._complain(
                    peer[0],
                    "%s refused a client at %s: %s",
                    self._title,
                    peer[0],
                    outcome.reason,
                )
                raise self.refusal("The credentials are not valid.")
            client = outcome
        act_for(client.principal)
        return client

    def _credentials(self, scope: Scope) -> Credentials | None:
        ways = self._authentication.ways
        headers = [value for name, value in scope["headers"] if name == b"authorization"]
        if headers and self._challenges:
            # Of two, what stands in front of us may have read the other one.
            return self._from_header(headers[0].decode("latin-1") if len(headers) == 1 else "")
        if "mtls" in ways:
            return certificate_of(scope["state"]["connection"].tls)
        return None

    def _from_header(self, header: str) -> Credentials:
        found = credentials_of(header, self._authentication.ways)
        if found is not None:
            return found
        raise self.refusal("The Authorization header makes no sense, or is of a scheme that is not offered.")

    def refusal(self, message: str) -> ApiError:
        """The answer to a client without valid credentials."""
        if self._challenges:
            return ApiError(401, message, self._challenges)
        return ApiError(403, "A certificate of the client is needed.")


def credentials_of(header: str, ways: Sequence[str]) -> NameAndPassword | BearerToken | None:
    """What a header Authorization says; None where it makes no sense, or is of a way that is not among these."""
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if len(header) > _LONGEST or not value:
        return None
    if scheme.lower() == "bearer" and "bearer" in ways:
        return BearerToken(value)
    if scheme.lower() == "basic" and "basic" in ways:
        try:
            name, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:  # no base64, not even of ASCII, or no UTF-8
            return None
        if colon and name:
            return NameAndPassword(name, password)
    return None


def certificate_of(tls: "ssl.SSLObject | None") -> PeerCertificate | None:
    """Of the client of a TLS connection, if it has shown one."""
    if tls is None:
        return None
    der = tls.getpeercert(binary_form=True)
    about = cast("dict[str, Any] | None", tls.getpeercert())
    if der is None or not about:
        return None
    return PeerCertificate(der, _distinguished_name(about.get("subject", ())))


def _distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """As in RFC 4514: the last part first."""
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in each) for each in subject
    ]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in ',+"\\<>;=' else each for each in value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and len(value) > 1:
        text = f"{text[:-1]}\\ "
    return text.replace("\0", "\\00")
