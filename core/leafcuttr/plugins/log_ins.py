"""Log-ins of clients that are not Kafka's: whose name and password, token or certificate it is, by the users and the
settings of the broker. `Security.authenticate`, and the authenticator `broker`.

A password is checked by PBKDF2 in a worker. Once it was right a hash of it is kept, with a key that this process alone
has, for as long as the user has this credential; several clients that come with it at once wait for one check. A wrong
one, and a name that there is not, cost the same each time.
"""

import hmac
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.errors import StartError
from leafcuttr.state.broker import Broker
from leafcuttr.state.plugged import OWN_AUTHENTICATOR
from leafcuttr.state.security.credential_changes import on_credential_change
from leafcuttr.state.security.credentials import ScramCredential
from leafcuttr.state.security.named_users import named_users, trusted_file
from leafcuttr.state.security.passwords import fitting_credential
from leafcuttr_sdk.authentication import (
    Authenticated,
    AuthenticatorSpec,
    BearerToken,
    Credentials,
    NameAndPassword,
    PeerCertificate,
    Refused,
)
from leafcuttr_sdk.principals import Principal

if TYPE_CHECKING:
    from leafcuttr.state.security.bearer.checking import TokenChecker

_AT_ONCE: Final = 2
"""Passwords and signatures that are checked at the same time."""
_LONGEST_SHOWN: Final = 100


class _Right(NamedTuple):
    """A password that was right: its keyed hash, and the credential that it fits."""

    hashed: bytes
    credential: ScramCredential


class LogIns:
    """See the module. One for a broker."""

    def __init__(self, core: Broker) -> None:
        self._core = core
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self._key = os.urandom(32)
        self._right: dict[str, _Right] = {}
        self._under_way: dict[bytes, trio.Event] = {}
        self._checker: TokenChecker | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._follows = False
        core.users.on_change(self._user_changed)

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused:
        """Raises nothing."""
        found = await self.known(credentials)
        if found is not None:
            return found
        if isinstance(credentials, NameAndPassword):
            return Refused(f"there is no user {credentials.name[:_LONGEST_SHOWN]!r}")
        return Refused("it is no token of OAUTHBEARER")

    async def known(self, credentials: Credentials) -> Authenticated | Refused | None:
        """The same; None for a name that no user has, and for what is no token."""
        if isinstance(credentials, NameAndPassword):
            return await self._by_password(*credentials)
        if isinstance(credentials, BearerToken):
            return await self._by_token(credentials.token)
        return self._by_certificate(credentials)

    @property
    def takes_tokens(self) -> bool:
        """Whether the settings say which keys sign them."""
        return any(value for name, value in self._core.settings.values.items() if _is_url(name))

    # --- passwords ------------------------------------------------------------------------------------------

    async def _by_password(self, name: str, password: str) -> Authenticated | Refused | None:
        try:
            given = password.encode()
            name.encode()
        except UnicodeEncodeError:
            return Refused("the name or the password is not UTF-8")
        named = self._named(name)
        if named is not None:
            await trio.lowlevel.checkpoint()
            if not hmac.compare_digest(named.encode(), given):
                # As long as for a name that there is not.
                await fitting_credential(self._core.users, name, given, self._limiter)
                return Refused(f"the password of {name[:_LONGEST_SHOWN]!r} is wrong")
            return _authenticated(name, lambda: self._named(name) == named)
        if not name or not given:
            return Refused("the name or the password is empty")
        hashed = hmac.digest(self._key, f"{name}\0".encode() + given, "sha256")
        if not self._remembers(name, hashed):
            await self._verify(name, given, hashed)
        right = self._right.get(name)
        if right is None or right.hashed != hashed:
            wrong = f"the password of {name[:_LONGEST_SHOWN]!r} is wrong"
            return Refused(wrong) if name in self._core.users else None
        return _authenticated(name, partial(self._core.users.has, name, right.credential))

    def _named(self, name: str) -> str | None:
        """The password that the settings of a listener, or the file that KAFKA_OPTS names, have for this name."""
        for listener in self._core.listeners:
            if not listener.protocol.startswith("SASL"):
                continue
            try:
                found = named_users(self._core.settings, listener.name)
            except StartError:  # a setting that was changed since: the listener says so itself
                continue
            if found is not None and name in found:
                return found[name]
        return None

    def _remembers(self, name: str, hashed: bytes) -> bool:
        right = self._right.get(name)
        return (
            right is not None
            and hmac.compare_digest(right.hashed, hashed)
            and self._core.users.has(name, right.credential)
        )

    async def _verify(self, name: str, password: bytes, hashed: bytes) -> None:
        """Remember it if it is right."""
        other = self._under_way.get(hashed)
        if other is not None:
            await other.wait()
            if self._remembers(name, hashed):
                return
        done = self._under_way[hashed] = trio.Event()
        try:
            credential = await fitting_credential(self._core.users, name, password, self._limiter)
            if credential is not None and self._core.users.has(name, credential):
                self._right[name] = _Right(hashed, credential)
        finally:
            done.set()
            if self._under_way.get(hashed) is done:
                del self._under_way[hashed]

    def _user_changed(self, name: str) -> None:
        self._right.pop(name, None)

    # --- tokens and certificates ----------------------------------------------------------------------------

    async def _by_token(self, text: str) -> Authenticated | Refused | None:
        if text.count(".") != 2:
            await trio.lowlevel.checkpoint()
            return None
        try:
            checker = self._token_checker()
        except (ImportError, StartError, ValueError) as error:
            return Refused(f"tokens cannot be checked: {error}")
        if checker is None:
            return None
        from leafcuttr.state.security.bearer.token import TokenRefused

        try:
            token = await checker.check(text)
        except TokenRefused as refused:
            return Refused(f"a token is refused: {refused}")
        return Authenticated(Principal("User", token.subject), token.expires_ms)

    def _token_checker(self) -> "TokenChecker | None":
        """By the settings for all listeners, or else those of the first listener that has some. The keys are read by
        the broker's own task. Raises ImportError, StartError, ValueError."""
        if self._checker is None and self.takes_tokens:
            from leafcuttr.state.security.bearer.checking import TokenChecker, claim_rules, key_settings

            core, wrong = self._core, StartError("no setting says which keys sign them")
            for listener in ("", *(each.name for each in core.listeners)):
                try:
                    ca_file = trusted_file(core.settings, listener)
                    _, wanted = key_settings(core.settings, listener, ca_file)
                except StartError:
                    continue
                source, rules = core.token_keys.of(wanted), claim_rules(core.settings, listener)
                self._checker = TokenChecker(source, rules, core.clock, self._limiter)
                return self._checker
            raise wrong
        return self._checker

    def _by_certificate(self, certificate: PeerCertificate) -> Authenticated | Refused:
        from leafcuttr.net.certificates import parse_certificate
        from leafcuttr.net.der import DerError
        from leafcuttr.net.principal_rules import NoRuleMatches, RulesError, principal_rules

        try:
            rules = principal_rules(self._core.settings.text("ssl.principal.mapping.rules"))
            return Authenticated(
                Principal("User", rules.name(parse_certificate(certificate.der).subject_text))
            )
        except DerError as error:
            return Refused(f"the certificate cannot be read ({error})")
        except NoRuleMatches as subject:
            return Refused(f"no rule of ssl.principal.mapping.rules matches {subject}")
        except RulesError as error:
            return Refused(f"ssl.principal.mapping.rules: {error}")

    # --- changes --------------------------------------------------------------------------------------------

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """See `Security.on_change`. `call` raises nothing."""
        if not self._follows:
            self._follow()
        self._callbacks.append(call)

        def end() -> None:
            if call in self._callbacks:
                self._callbacks.remove(call)

        return end

    def _follow(self) -> None:
        self._follows = True
        core, token = self._core, trio.lowlevel.current_trio_token()

        def changed() -> None:
            # Once for all that changes together, and after those whose answers change.
            token.run_sync_soon(self._tell, idempotent=True)

        on_credential_change(core, changed)
        core.quotas.on_change(changed)
        if core.authorizer is not None:
            core.authorizer.on_change(changed)

    def _tell(self) -> None:
        for callback in list(self._callbacks):
            callback()


class BrokerAuthenticator:
    """`Authenticator` of the SDK."""

    def __init__(self, log_ins: LogIns) -> None:
        self._log_ins = log_ins

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused | None:
        return await self._log_ins.known(credentials)


def broker_authenticator(core: Broker) -> AuthenticatorSpec:
    """The one that the broker brings itself."""
    log_ins = log_ins_of(core)
    ways = ("basic", "bearer", "mtls") if log_ins.takes_tokens else ("basic", "mtls")
    summary = "the broker's users, tokens of OAUTHBEARER, and certificates"
    return AuthenticatorSpec(OWN_AUTHENTICATOR, summary, lambda: BrokerAuthenticator(log_ins), ways)


def log_ins_of(core: Broker) -> LogIns:
    """The one of this broker."""
    if core.plugged.log_ins is None:
        core.plugged.log_ins = LogIns(core)
    found: LogIns = core.plugged.log_ins
    return found


def _authenticated(name: str, still_holds: Callable[[], bool]) -> Authenticated:
    return Authenticated(Principal("User", name), still_holds=still_holds)


def _is_url(name: str) -> bool:
    return name.endswith("sasl.oauthbearer.jwks.endpoint.url")
