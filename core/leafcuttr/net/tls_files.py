"""What the settings say of TLS on one listener, as values, and the error for what is wrong with it. No file is read."""

from typing import Final, NamedTuple


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

    def name(self, setting: str) -> str:
        """The whole name of a setting, `ssl.` and what follows."""
        return f"{self.prefix}.ssl.{setting}" if self.prefix else f"ssl.{setting}"
