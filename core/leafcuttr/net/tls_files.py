"""What the settings say of TLS on one listener, as values, and the error for what is wrong with it. No file is read."""

from typing import Final, NamedTuple, Protocol

METRICS: Final = "lc.metrics"
"""The prefix of the settings of the metrics port."""


class TlsError(Exception):
    """A listener's TLS cannot be had: the message is one line that names the setting."""


VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


class TlsFiles(NamedTuple):
    """The settings of one listener. `prefix` is what their names begin with, for messages; empty: with `ssl.`."""

    prefix: str
    keystore: str | None
    key_password: str | None = None
    truststore: str | None = None
    client_auth: str = "none"
    key: str | None = None
    """The private key as PEM text, and `chain` its certificates: both, in the place of a keystore."""
    chain: str | None = None
    trusted: str | None = None
    """Trusted certificates as PEM text, in the place of a truststore."""
    versions: tuple[str, ...] = VERSIONS
    cipher_suites: tuple[str, ...] = ()
    keystore_password: str | None = None
    truststore_password: str | None = None
    allows_other_subject: bool = True
    """Whether a certificate that takes the place of the first one may have another subject, or lack some of its
    alternative names."""
    allows_other_names: bool = True
    own: frozenset[str] | None = None
    """Settings that have the prefix; the others are common to all listeners. None: all have it."""

    def name(self, setting: str) -> str:
        """The whole name of a setting, `ssl.` and what follows."""
        is_own = self.prefix and (self.own is None or f"ssl.{setting}" in self.own)
        return f"{self.prefix}.ssl.{setting}" if is_own else f"ssl.{setting}"

    @property
    def has_key(self) -> bool:
        """Whether a key is given, in one of the ways."""
        return self.keystore is not None or self.key is not None or self.chain is not None

    @property
    def store_password_name(self) -> str:
        """The setting of the password of the keystore. A listener that has no settings of its own for it (of a plugin)
        has one for both passwords."""
        return self.name("key.password" if self.own is None and self.prefix else "keystore.password")


class _Texts(Protocol):
    """The broker's settings, or a plugin's."""

    def text(self, name: str) -> str: ...
    def optional_text(self, name: str) -> str | None: ...
    def bool(self, name: str) -> bool: ...


def files_of_prefix(settings: _Texts, prefix: str) -> TlsFiles:
    """What the settings `<prefix>.ssl.*` say, of a listener that is not for Kafka's clients: all are its own."""
    password = settings.optional_text(f"{prefix}.ssl.key.password") or None
    return TlsFiles(
        prefix,
        settings.optional_text(f"{prefix}.ssl.keystore.location") or None,
        password,
        settings.optional_text(f"{prefix}.ssl.truststore.location") or None,
        settings.text(f"{prefix}.ssl.client.auth"),
        keystore_password=password,
    )


def files_of_metrics(settings: _Texts) -> TlsFiles | None:
    """The same of the metrics port; None where it is off, or has no certificate."""
    files = files_of_prefix(settings, METRICS)
    return files if settings.bool(f"{METRICS}.enable") and files.has_key else None
