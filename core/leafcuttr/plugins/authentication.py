"""`Broker.authentication`: the ways that a service offers, and the authenticators of plugins that check credentials.

Whatever an authenticator raises or returns, and however long it takes: only what it says clearly authenticates.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard, TypeVar

import trio

from leafcuttr.errors import PluginError
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call, call_async
from leafcuttr.state.plugged import OWN_AUTHENTICATOR, Plugged
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.authentication import (
    AUTHENTICATION_S,
    MOST_STEPS,
    Authenticated,
    AuthenticationExchange,
    Authenticator,
    AuthenticatorSpec,
    BearerToken,
    Challenge,
    Credentials,
    NameAndPassword,
    PeerCertificate,
    Principal,
    Refused,
    Step,
)
from leafcuttr_sdk.settings import Settings

_KINDS: Final[dict[type, str]] = {NameAndPassword: "basic", BearerToken: "bearer", PeerCertificate: "mtls"}
_LONGEST_NAME: Final = 255
"""Characters of a name that the log shows."""
_LONGEST_REASON: Final = 500
T = TypeVar("T")

if TYPE_CHECKING:
    from leafcuttr.state.broker import Broker


def authentication_of(
    plugged: Plugged,
    settings: Settings,
    prefix: str,
    listeners: Sequence[str] = (),
    *,
    core: "Broker | None" = None,
) -> "ServiceAuthentication":
    """As the settings below `prefix` name it; `core` has the authenticator `broker`. Raises PluginError: there is no
    such authenticator, or none for a way."""
    ways = tuple(dict.fromkeys(settings.list(f"{prefix}.auth")))
    made: list[MadeAuthenticator] = []
    names = tuple(dict.fromkeys(settings.list(f"{prefix}.authenticators")))
    for name in names:
        found = plugged.authenticators.get(name)
        if name == OWN_AUTHENTICATOR and core is not None and ways != ("none",):
            from leafcuttr.plugins.log_ins import broker_authenticator

            found = "leafcuttr", broker_authenticator(core)
        elif name == OWN_AUTHENTICATOR:
            continue
        if found is None:
            known = ", ".join(sorted((OWN_AUTHENTICATOR, *plugged.authenticators)))
            raise PluginError(
                f"{prefix}.authenticators names {name!r}, which no plugin brings that is on; there is {known}"
            )
        plugin, spec = found
        takes = (*spec.ways, "sasl") if spec.mechanisms else spec.ways
        if set(takes) & set(ways):
            part = Part(plugin, f"authenticator {name}")
            made.append(MadeAuthenticator(part, takes, make_authenticator(part, spec), spec.mechanisms))
    for way in ways:
        if way not in ("none", "mtls") and not any(way in each.ways for each in made):
            raise PluginError(
                f"{prefix}.auth offers {way}, which none of {prefix}.authenticators takes "
                f"({', '.join(names) or 'it names none'})"
            )
    requests = [f"{listener}.ssl.client.auth" for listener in listeners or (prefix,)]
    if "mtls" in ways and all(settings.text(name) == "none" for name in requests):
        verb = "is" if len(requests) == 1 else "are"
        raise PluginError(f"{prefix}.auth offers mtls, but {' and '.join(requests)} {verb} none")
    return ServiceAuthentication(ways, made, plugged.failures)


def make_authenticator(part: Part, spec: AuthenticatorSpec) -> Authenticator:
    """Raises PluginError."""
    try:
        made = call(part, spec.make)
        if not callable(getattr(made, "authenticate", None)):
            raise PartError(part, f"it was made as {kind_of(made)}, which has no method authenticate")
        return made
    except PartError as failed:
        raise PluginError(failed.words if failed.is_said else str(failed)) from None


class MadeAuthenticator(NamedTuple):
    """An authenticator that has been made, and the ways that it takes credentials of."""

    part: Part
    ways: tuple[str, ...]
    authenticator: Authenticator
    mechanisms: tuple[str, ...]


class ServiceAuthentication:
    """`Authentication` of the SDK."""

    def __init__(
        self, ways: tuple[str, ...], authenticators: Sequence[MadeAuthenticator], failures: Failures
    ) -> None:
        self.ways = ways
        self.required = "none" not in ways
        self._authenticators = authenticators
        self._failures = failures
        self._begin: dict[str, MadeAuthenticator] = {}
        if "sasl" in ways:
            for each in reversed(authenticators):
                self._begin.update(dict.fromkeys(each.mechanisms, each))
        self.mechanisms = tuple(
            dict.fromkeys(
                mechanism
                for each in authenticators
                for mechanism in each.mechanisms
                if mechanism in self._begin
            )
        )

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused:
        """See `leafcuttr_sdk.authentication.Authentication`."""
        way = _KINDS[type(credentials)]
        if way not in self.ways:
            return Refused(f"{way} is not offered")
        for each in self._authenticators:
            if way in each.ways:
                outcome = await self._call(each, credentials)
                if outcome is not None:
                    return outcome
        if isinstance(credentials, PeerCertificate):
            return Authenticated(Principal("User", credentials.subject))
        if isinstance(credentials, NameAndPassword):
            return Refused(f"no authenticator knows the name {credentials.name[:_LONGEST_NAME]!r}")
        return Refused("no authenticator knows this token")

    def begin(self, mechanism: str) -> "Exchange":
        """See `leafcuttr_sdk.authentication.Authentication`."""
        each = self._begin.get(mechanism)
        if each is None:
            return Exchange(Refused(f"the mechanism {mechanism[:_LONGEST_NAME]!r} is not offered"))
        try:
            begin = getattr(each.authenticator, "begin", None)
            if begin is None:
                raise PartError(each.part, "it has no method begin")
            exchange = call(each.part, begin, mechanism)
        except PartError as failed:
            self._failures(failed)
            return Exchange(_failed(each))
        return Exchange(partial(self._step, each, exchange))

    async def _call(
        self, each: MadeAuthenticator, credentials: Credentials
    ) -> Authenticated | Refused | None:
        try:
            outcome = await _in_time(each.part, each.authenticator.authenticate, credentials)
            if outcome is None or _is_outcome(outcome):
                return _in_one_line(outcome)
            raise PartError(each.part, f"it returned {kind_of(outcome)} that is no outcome")
        except PartError as failed:
            self._failures(failed)
            return _failed(each)

    async def _step(self, each: MadeAuthenticator, exchange: AuthenticationExchange, data: bytes) -> Step:
        try:
            outcome = await _in_time(each.part, _take_step, exchange, data)
            if isinstance(outcome, Challenge) and _is_bytes(outcome.data):
                return outcome
            if _is_outcome(outcome):
                return _in_one_line(outcome)
            raise PartError(each.part, f"a step returned {kind_of(outcome)} that is no outcome")
        except PartError as failed:
            self._failures(failed)
            return _failed(each)


class Exchange:
    """`AuthenticationExchange` of the SDK, as services have it. It is made of what takes the steps, or of its end."""

    def __init__(self, take: Callable[[bytes], Awaitable[Step]] | Refused) -> None:
        self._take = take
        self._left = MOST_STEPS

    async def step(self, data: bytes) -> Step:
        """See `leafcuttr_sdk.authentication.AuthenticationExchange`."""
        take = self._take
        if isinstance(take, Refused):
            self._take = Refused("the exchange is over")
            return take
        outcome = await take(data)
        self._left -= 1
        if isinstance(outcome, Challenge):
            if self._left:
                return outcome
            outcome = Refused(f"the exchange has not ended after {MOST_STEPS} steps")
        self._take = Refused("the exchange is over")
        return outcome


async def _take_step(exchange: AuthenticationExchange, data: bytes) -> object:
    return await exchange.step(data)


async def _in_time(part: Part, function: Callable[..., Awaitable[object]], *given: object) -> object:
    outcome: object = None
    with trio.move_on_after(AUTHENTICATION_S) as scope:
        outcome = await call_async(part, function, *given)
    if scope.cancelled_caught:
        raise PartError(part, f"it has taken longer than {AUTHENTICATION_S:g} s")
    return outcome


def _failed(each: MadeAuthenticator) -> Refused:
    return Refused(f"the {each.part.name} has failed")


def _in_one_line(outcome: T) -> T | Refused:
    """A reason may repeat what the client has sent: it must not make lines of the log."""
    if isinstance(outcome, Refused):
        told = "".join(
            each if each.isprintable() else ascii(each)[1:-1]
            for each in str(outcome.reason)[:_LONGEST_REASON]
        )
        return Refused(told)
    return outcome


def _is_bytes(data: object) -> bool:
    return isinstance(data, bytes)


def _is_outcome(outcome: object) -> TypeGuard[Authenticated | Refused]:
    if isinstance(outcome, Refused):
        return True
    return (
        isinstance(outcome, Authenticated)
        and isinstance(outcome.principal, Principal)
        and all(isinstance(part, str) and part for part in outcome.principal)
        and (outcome.expires_ms is None or isinstance(outcome.expires_ms, int))
        and _is_bytes(outcome.data)
        and (outcome.still_holds is None or callable(outcome.still_holds))
    )
