"""The log-ins of all connections: which mechanisms a listener offers, how long a log-in and what follows may take.

See `admission` for what they share with handshakes.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.settings import Settings, Source
from leafcuttr.errors import StartError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.server.admission import LONGEST_S, Admission, is_late
from leafcuttr.server.login.before import BeforeLogin, NotLoggedIn
from leafcuttr.server.login.login import Login, MakeExchange
from leafcuttr.server.transport import Transport
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import Principal
from leafcuttr.state.plugged import SASL_MECHANISMS
from leafcuttr.state.security.mechanism_settings import setting_of
from leafcuttr.state.security.named_users import named_users, trusted_file
from leafcuttr_sdk.trouble import import_late

if TYPE_CHECKING:
    from leafcuttr.state.security.bearer.checking import TokenChecker
    from leafcuttr.state.security.bearer.key_source import KeySource

logger = logging.getLogger(__name__)

LOGIN_S: Final = 10.0
"""How long a client may take for one, from the first byte to the last."""
GSSAPI: Final = "GSSAPI"
OAUTHBEARER: Final = "OAUTHBEARER"
OFFERED: Final = (GSSAPI, OAUTHBEARER, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Logins(Admission):
    """Those of one broker; `limiter` is for passwords that are checked."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(logger, LONGEST_S)
        self._broker = broker
        self._checkers: dict[str, TokenChecker] = {}

    def login(self, listener: str) -> Login:
        """Of a new connection. Raises StartError where settings that have changed since make none possible."""
        broker = self._broker
        made = {name: self._exchange(name, listener) for name in mechanisms_of(broker.settings, listener)}
        return Login(made, broker.clock, partial(max_reauth_ms, broker.settings, listener))

    def _exchange(self, mechanism: str, listener: str) -> MakeExchange:
        """Raises StartError."""
        broker, settings, users = self._broker, self._broker.settings, self._broker.users
        if mechanism == "PLAIN":
            from leafcuttr.server.login.plain import PlainServer

            named_users(settings, listener)
            return partial(PlainServer, partial(named_users, settings, listener), users, self.limiter)
        if mechanism == OAUTHBEARER:
            from leafcuttr.server.login.oauthbearer import OAuthBearerServer

            return partial(OAuthBearerServer, self._token_checker(listener))
        if mechanism == GSSAPI:
            return self._gssapi(listener)
        if mechanism not in OFFERED:
            from leafcuttr.server.login.plugged import PluggedServer

            begin = broker.plugged.mechanisms[mechanism]
            return lambda: PluggedServer(mechanism, begin())
        from leafcuttr.server.login.scram import ScramServer
        from leafcuttr.state.security.credentials import BY_NAME

        return partial(
            ScramServer,
            BY_NAME[mechanism],
            users,
            self.limiter,
            tokens=broker.delegation_tokens,
            now_ms=broker.clock.now_ms,
        )

    def _gssapi(self, listener: str) -> MakeExchange:
        """Raises StartError."""
        from leafcuttr.server.login.gssapi import GssapiServer
        from leafcuttr.state.security.kerberos.acceptor import open_acceptor
        from leafcuttr.state.security.kerberos.settings import kerberos_settings

        found = kerberos_settings(self._broker.settings, listener)
        acceptor = partial(open_acceptor, found.key)
        now_ms = self._broker.clock.now_ms
        return partial(GssapiServer, acceptor, found.rules, found.realm, self.limiter, now_ms)

    def _token_checker(self, listener: str) -> "TokenChecker":
        """Raises StartError where a change of the mechanisms has come before what they need."""
        found = self._checkers.get(listener)
        if found is None:
            from leafcuttr.state.security.bearer.checking import TokenChecker, claim_rules, key_settings

            broker = self._broker
            name, wanted = key_settings(broker.settings, listener, trusted_file(broker.settings, listener))
            try:
                source = broker.token_keys.of(wanted)
            except ValueError as error:
                raise StartError(f"{name}={wanted.url}: {error}") from None
            rules = claim_rules(broker.settings, listener)
            found = self._checkers[listener] = TokenChecker(source, rules, broker.clock, self.limiter)
        return found

    async def succeeds(self, transport: Transport, context: RequestContext) -> bytes | None:
        """What came behind the log-in of this connection; None: it is to be closed."""
        listener, peer, host = context.listener.name, context.client.peer, context.client.host
        with self.in_time() as scope:
            login, until = None, trio.current_time() + LOGIN_S
            try:
                context.login = login = self.login(listener)
                most = self._broker.settings.int("sasl.server.max.receive.size")
                left = await BeforeLogin(self._broker, transport, context, login, most, until).run()
            except (NotLoggedIn, StartError) as refused:
                self.refuse(listener, peer, str(refused), of=host)
            except trio.TooSlowError:
                self.refuse(listener, peer, f"no log-in within {LOGIN_S:g} seconds", of=host)
            except OSError:
                if login is not None and login.refusal is not None:
                    # It has read that it is refused, and left.
                    self.refuse(listener, peer, login.refusal, of=host)
                    return None
                self.failed[listener] += 1
                logger.debug("the connection from %s on %s ended in its log-in", peer, listener)
            else:
                principal = Principal(login.principal_type, login.user or "")
                context.client = context.client._replace(principal=principal)
                return left
        if is_late(scope):
            self.refuse(listener, peer, f"no log-in within {LONGEST_S:g} seconds", of=host)
        return None


def mechanisms_of(settings: Settings, listener: str) -> tuple[str, ...]:
    """What a listener offers: of Kafka's, then those of plugins. Raises StartError, with one line, for what is not
    here; whether a plugin brings what `lc.sasl.mechanisms` names is checked once there are plugins."""
    plugged_name, plugged = _named(settings, listener, SASL_MECHANISMS)
    name, found = _named(settings, listener, "sasl.enabled.mechanisms")
    if plugged and settings.source(name) is Source.DEFAULT_CONFIG:
        found = ()
    names = tuple(dict.fromkeys(each.upper() for each in found))
    wrong = [each for each in names if each not in OFFERED]
    if wrong or not (names or plugged):
        what = f"{wrong[0]} is not offered" if wrong else "no mechanism is named"
        allowed = f"allowed are {', '.join(OFFERED)}; {SASL_MECHANISMS} names those of plugins"
        raise StartError(f"{name}={','.join(names)}: {what}; {allowed}")
    for each in plugged:
        if each in OFFERED:
            raise StartError(
                f"{plugged_name}={','.join(plugged)}: {each} is the broker's own: sasl.enabled.mechanisms offers it"
            )
    return names + plugged


def _named(settings: Settings, listener: str, setting: str) -> tuple[str, tuple[str, ...]]:
    """The name under which a list is given to a listener, its own or the common one, and what is in it."""
    name, found = setting_of(settings, listener, None, setting)
    return name, tuple(dict.fromkeys(found)) if isinstance(found, tuple) else ()


def max_reauth_ms(settings: Settings, listener: str, mechanism: str) -> int:
    """`connections.max.reauth.ms`, which a listener, and a mechanism of it, may have of its own."""
    _, found = setting_of(settings, listener, mechanism, "connections.max.reauth.ms")
    return found if isinstance(found, int) else 0


def read_token_keys(settings: Settings, listener: str) -> "KeySource":
    """The keys for OAUTHBEARER on a listener. Raises StartError, one line: the package is missing, no keys are named,
    or they cannot be read. Blocks."""
    try:
        import_late("cryptography.hazmat.primitives.asymmetric.rsa")
    except ImportError:
        raise StartError(
            f"the listener {listener} offers OAUTHBEARER, which needs cryptography, which is not installed: "
            "pip install 'leafcuttr[security]'"
        ) from None
    from leafcuttr.state.security.bearer.checking import read_key_source

    return read_key_source(settings, listener, trusted_file(settings, listener))


def check_kerberos(settings: Settings, listener: str) -> None:
    """Raises StartError, one line, where no client could log in by GSSAPI on a listener: the package is missing, no key
    is named, or it is not in the keytab. Blocks."""
    from leafcuttr.state.security.kerberos.acceptor import KerberosError, library, open_acceptor
    from leafcuttr.state.security.kerberos.settings import kerberos_settings

    try:
        library()
    except ImportError as error:
        why = (
            "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
        )
        raise StartError(
            f"the listener {listener} offers GSSAPI (sasl.enabled.mechanisms), which needs the package gssapi, which "
            f"{why}: pip install 'leafcuttr[kerberos]'"
        ) from None
    key = kerberos_settings(settings, listener).key
    try:
        open_acceptor(key)
    except KerberosError as error:
        raise StartError(
            f"the listener {listener}: there is no key of {key.principal} in the keytab {key.keytab}: {error}"
        ) from None
