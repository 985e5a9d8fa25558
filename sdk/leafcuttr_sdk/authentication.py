"""Authentication: which principal a client acts for.

A plugin brings authenticators (`leafcuttr_register_authenticators`). A service names those it uses in
`<prefix>.authenticators`, and the ways that it offers its clients in `<prefix>.auth` (`authentication_settings`);
`Broker.authentication` has the two together. `lc.sasl.mechanisms` names SASL mechanisms of authenticators that the
listeners for Kafka's clients offer.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from leafcuttr_sdk._described import described
from leafcuttr_sdk.principals import ANONYMOUS as ANONYMOUS
from leafcuttr_sdk.principals import Principal as Principal
from leafcuttr_sdk.principals import act_for as act_for
from leafcuttr_sdk.principals import current_principal as current_principal
from leafcuttr_sdk.settings import WAYS as WAYS
from leafcuttr_sdk.settings import authentication_settings as authentication_settings


def basic_authorization(name_and_password: str) -> str:
    """The header Authorization of a client that logs in over HTTP with `NAME:PASSWORD` (RFC 7617, in UTF-8)."""
    return f"Basic {base64.b64encode(name_and_password.encode()).decode()}"


@described
class NameAndPassword(NamedTuple):
    """What HTTP's Basic, SASL's PLAIN and MQTT send."""

    name: str
    password: str

    def __repr__(self) -> str:
        return f"NameAndPassword({self.name!r}, '...')"  # for logs


@described
class BearerToken(NamedTuple):
    """What HTTP's Bearer (RFC 6750) and SASL's OAUTHBEARER send."""

    token: str

    def __repr__(self) -> str:
        return "BearerToken('...')"


@described
class PeerCertificate(NamedTuple):
    """The certificate of a TLS client, verified by the listener against its truststore."""

    der: bytes
    subject: str
    """Its distinguished name as in RFC 4514: `CN=sensor-7,O=Acme`."""


Credentials: TypeAlias = NameAndPassword | BearerToken | PeerCertificate


@described
class Authenticated(NamedTuple):
    """These credentials are right."""

    principal: Principal
    expires_ms: int | None = None
    """When the client has to authenticate again: milliseconds since the Unix epoch. None: not before it connects."""
    data: bytes = b""
    """What the last step of a mechanism has for the client, as SCRAM's `v=...` by which the client knows the server."""
    still_holds: Callable[[], bool] | None = None
    """Whether the credentials are still right, by a look into memory; None: they are until `expires_ms`. A service asks
    when `Security.on_change` tells it, and ends what the client has open once they are not."""


@described
class Refused(NamedTuple):
    """These credentials are wrong, or no longer valid. The reason is one line for the log; the client is not told."""

    reason: str


@described
class Challenge(NamedTuple):
    """The answer to a step of an exchange after which the client has to take another one."""

    data: bytes


Step: TypeAlias = Challenge | Authenticated | Refused
"""What comes of a step."""


class AuthenticationExchange(Protocol):
    """One exchange of a SASL mechanism (RFC 4422), with one client. It is over with `Authenticated` or `Refused`."""

    async def step(self, data: bytes) -> Step:
        """Take what the client has sent. Of a mechanism whose server speaks first, as CRAM has it, the first step gets
        b"". It may wait."""
        ...


class Authenticator(Protocol):
    """An authenticator that has been made. `leafcuttr_sdk.testing.check_authenticator` tests one against this contract.

    Several calls may be under way at once. One that raises, or takes longer than `AUTHENTICATION_S`, refuses, and so
    does a step.
    """

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused | None:
        """Say whose credentials these are. It may wait: for a worker thread, another server. None: they are of
        a kind, or have a name, that this authenticator does not know; then the next one is called."""
        ...


class ExchangeAuthenticator(Authenticator, Protocol):
    """One that has mechanisms too."""

    def begin(self, mechanism: str) -> AuthenticationExchange:
        """Begin an exchange of one of its spec's mechanisms. It does not wait. What it makes has nothing to close: a
        client that leaves is not heard of again."""
        ...


AUTHENTICATION_S: Final = 10.0
"""How long a call of an authenticator, or a step, may take, in seconds."""
MOST_STEPS: Final = 16
"""Steps of one exchange; what has not ended then is refused."""


@described
class AuthenticatorSpec(NamedTuple):
    """An authenticator by its name: what `leafcuttr_register_authenticators` returns."""

    name: str
    """Unique among all authenticators. `broker` is the broker's own: `Security.authenticate`."""
    summary: str
    make: Callable[[], Authenticator]
    """Makes it for a service that names it. Imports what is heavy. It may raise PluginError with one line."""
    ways: tuple[str, ...] = ()
    """Those of `WAYS` that it takes credentials of."""
    mechanisms: tuple[str, ...] = ()
    """SASL mechanisms that its `begin` has, by their registered names, as `SCRAM-SHA-256`. With them it is one for the
    way `sasl`, which `ways` does not name."""


class Authentication(Protocol):
    """What `Broker.authentication` returns: the ways that a service offers, and its authenticators."""

    @property
    def ways(self) -> tuple[str, ...]:
        """As `<prefix>.auth` has them."""
        ...

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that clients may choose from: of the authenticators in their order, where `sasl` is offered."""
        ...

    @property
    def required(self) -> bool:
        """Whether `none` is not among them."""
        ...

    def authenticate(self, credentials: Credentials) -> Awaitable[Authenticated | Refused]:
        """Call the authenticators that take such credentials in their order, until one knows these. A certificate that
        none knows is the principal `User:` and its subject, as in Kafka; everything else that none knows is refused. It
        raises nothing."""
        ...

    def begin(self, mechanism: str) -> AuthenticationExchange:
        """Begin an exchange with the first authenticator that has this mechanism. Neither this nor a step raises: of
        a mechanism that is not offered the first step is refused, and of an exchange that is over every one."""
        ...
