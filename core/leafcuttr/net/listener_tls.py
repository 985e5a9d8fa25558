"""TLS of the listeners for Kafka's clients: `ssl.*`, each of which `listener.name.<name>.ssl.*` replaces for one of
them (KIP-103), as values for `tls`."""

from typing import TYPE_CHECKING, Final

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.net.tls_files import TlsError, TlsFiles

if TYPE_CHECKING:
    from leafcuttr.net.principal_rules import PrincipalRules

_RULES: Final = "ssl.principal.mapping.rules"


class _Given:
    """The settings `ssl.*` of one listener: its own, else the common ones."""

    def __init__(self, settings: Settings, listener: str) -> None:
        self._values = settings.values
        self.prefix = f"{LISTENER_PREFIX}{listener.lower()}"
        begin = f"{self.prefix}.ssl."
        self.own = frozenset(
            name.removeprefix(f"{self.prefix}.")
            for name, value in self._values.items()
            if name.startswith(begin) and value is not None
        )

    def value(self, name: str) -> object:
        return self._values[f"{self.prefix}.{name}" if name in self.own else name]

    def text(self, name: str) -> str | None:
        found = self.value(name)
        return str(found) if found else None

    def password(self, name: str) -> str | None:
        """It may be empty."""
        found = self.value(name)
        return found if isinstance(found, str) else None

    def names(self, name: str) -> tuple[str, ...]:
        found = self.value(name)
        return found if isinstance(found, tuple) else ()


def tls_files(settings: Settings, listener: Listener) -> TlsFiles:
    """What the settings say of a listener with TLS. Raises TlsError where they name no key."""
    given = _Given(settings, listener.name)
    text = given.text
    client_auth = text("ssl.client.auth") or "none"
    if listener.protocol == "SASL_SSL" and "ssl.client.auth" not in given.own:
        client_auth = "none"  # clients log in; the common setting is for listeners with SSL only (KIP-684)
    files = TlsFiles(
        prefix=given.prefix,
        keystore=text("ssl.keystore.location"),
        key_password=given.password("ssl.key.password"),
        truststore=text("ssl.truststore.location"),
        client_auth=client_auth,
        key=text("ssl.keystore.key"),
        chain=text("ssl.keystore.certificate.chain"),
        trusted=text("ssl.truststore.certificates"),
        versions=given.names("ssl.enabled.protocols"),
        cipher_suites=given.names("ssl.cipher.suites"),
        keystore_password=given.password("ssl.keystore.password"),
        truststore_password=given.password("ssl.truststore.password"),
        allows_other_subject=bool(given.value("ssl.allow.dn.changes")),
        allows_other_names=bool(given.value("ssl.allow.san.changes")),
        own=given.own,
    )
    if not files.has_key:
        raise TlsError(
            f"the listener {listener.name} is {listener.protocol} and has no key: ssl.keystore.location or "
            f"{given.prefix}.ssl.keystore.location names a file with the private key and its certificates"
        )
    return files


def rules_of(settings: Settings, listener: str) -> "PrincipalRules":
    """How the principals of a listener's clients are made from their certificates. Raises TlsError; not once the
    listener is open, because the setting is not dynamic."""
    from leafcuttr.net.principal_rules import RulesError, principal_rules

    name = f"{LISTENER_PREFIX}{listener.lower()}.{_RULES}"
    text = settings.values.get(name)
    if text is None:
        name, text = _RULES, settings.values[_RULES]
    try:
        return principal_rules(str(text))
    except RulesError as error:
        raise TlsError(f"{name}: {error}") from None


def concerns(name: str, listener: str) -> bool:
    """Whether the setting of this name is one of TLS that counts for the listener."""
    return name.startswith(("ssl.", f"{LISTENER_PREFIX}{listener.lower()}.ssl."))
