"""TLS of the listeners for Kafka's clients: `ssl.*`, each of which `listener.name.<name>.ssl.*` replaces for one of
them (KIP-103), as values for `tls`."""

from typing import Final

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.settings import Settings
from leafcuttr.net.tls_files import TlsError, TlsFiles

_KEYS: Final = ("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain")


def tls_files(settings: Settings, listener: str) -> TlsFiles:
    """What the settings say of a listener with TLS. Raises TlsError where they name no key."""
    own = f"{LISTENER_PREFIX}{listener.lower()}"
    given = settings.values

    def value(name: str) -> object:
        found = given.get(f"{own}.{name}")
        return given[name] if found is None else found

    def text(name: str) -> str | None:
        found = value(name)
        return str(found) if found else None

    def names(name: str) -> tuple[str, ...]:
        found = value(name)
        return found if isinstance(found, tuple) else ()

    has_own = any(given.get(f"{own}.{name}") for name in _KEYS)
    files = TlsFiles(
        own if has_own else "",
        text("ssl.keystore.location"),
        text("ssl.key.password"),
        text("ssl.truststore.location"),
        text("ssl.client.auth") or "none",
        text("ssl.keystore.key"),
        text("ssl.keystore.certificate.chain"),
        text("ssl.truststore.certificates"),
        names("ssl.enabled.protocols"),
        names("ssl.cipher.suites"),
    )
    if files.keystore is None and files.key is None and files.chain is None:
        raise TlsError(
            f"the listener {listener} is SSL and has no key: ssl.keystore.location or {own}.ssl.keystore.location "
            "names a PEM file with the private key and its certificates"
        )
    return files


def concerns(name: str, listener: str) -> bool:
    """Whether the setting of this name is one of TLS that counts for the listener."""
    return name.startswith(("ssl.", f"{LISTENER_PREFIX}{listener.lower()}.ssl."))
