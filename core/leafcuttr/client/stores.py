"""Keystores and truststores of a client that are no PEM: JKS and PKCS#12, read as the broker reads its own.

PKCS#12 needs the extra `leafcuttr[security]`. What is wrong is one line with Java's name of the setting.
"""

from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.settings import ClientTls
from leafcuttr.net.keystores import read_key_entry, read_trusted
from leafcuttr.net.tls_files import TlsError, TlsFiles


def own_of_store(file: str, tls: ClientTls) -> str:
    """The private key, which is not encrypted any more, and its certificates, in PEM. Raises ClientSettingError.
    Blocks."""
    try:
        return read_key_entry(_files(tls)._replace(keystore=file)).pem().decode()
    except TlsError as error:
        raise ClientSettingError(str(error)) from None


def trusted_of_store(file: str, tls: ClientTls) -> tuple[bytes, ...]:
    """The certificates that are trusted, in DER. Raises ClientSettingError. Blocks."""
    try:
        found = read_trusted(_files(tls)._replace(truststore=file))
    except TlsError as error:
        raise ClientSettingError(str(error)) from None
    assert found is not None
    return found[1]


def _files(tls: ClientTls) -> TlsFiles:
    return TlsFiles(
        prefix="",
        keystore=None,
        key_password=tls.key_password,
        keystore_password=tls.keystore_password,
        truststore_password=tls.truststore_password,
    )
