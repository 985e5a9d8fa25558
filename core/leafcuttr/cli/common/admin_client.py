"""Requests to the admin port of a broker, with what `lc.metrics.auth` wants: NAME:PASSWORD (basic), a token (bearer),
or over TLS the certificate of the client settings (mtls).

The log-in of the client settings, which for SCRAM never leaves this machine as it is, is shown to a port of this
machine only, and only where that requests one.
"""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import click

from leafcuttr.cli.common.pairs import pairs
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.properties import client_settings
from leafcuttr_sdk.authentication import basic_authorization
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    import ssl

HTTPS: Final = "https://"
"""Before the address of a port with TLS."""
_TOKEN: Final = re.compile(r"bearer +([\x21-\x7E]+)", re.IGNORECASE)
_HERE: Final = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?")


class LogIn(NamedTuple):
    """A header Authorization, and where it is from."""

    header: str
    source: str


def log_in_of(file: Path) -> LogIn:
    """What `--admin-auth` names: a file with one line, `NAME:PASSWORD` or `Bearer TOKEN`. Raises click.UsageError."""
    try:
        text = file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise click.UsageError(f"--admin-auth {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"--admin-auth {file}: it is not UTF-8") from None
    token = _TOKEN.fullmatch(text.strip())
    if token is not None:
        return LogIn(f"Bearer {token[1]}", f"--admin-auth {file}")
    if "\n" in text or not text.partition(":")[0] or ":" not in text:
        # Not the line itself: it may be half a password.
        raise click.UsageError(f"--admin-auth {file}: expected one line, NAME:PASSWORD or Bearer TOKEN")
    return LogIn(basic_authorization(text), f"--admin-auth {file}")


def log_in_of_client(properties: Sequence[str], address: str) -> LogIn | None:
    """What clients of the broker log in with, if they do, and the address is one of this machine."""
    if not _HERE.fullmatch(address.removeprefix(HTTPS).rpartition(":")[0]):
        return None
    try:
        sasl = client_settings({"bootstrap.servers": "localhost", **pairs("-X", properties)}).sasl
    except ClientSettingError:
        # Which the client itself complains of, or librdkafka alone has it, as OAUTHBEARER.
        return None
    if sasl is None or sasl.is_token:
        return None
    return LogIn(basic_authorization(f"{sasl.username}:{sasl.password}"), "the client settings")


def tls_of_client(properties: Sequence[str], address: str) -> "ssl.SSLContext | None":
    """For an address with `https://`: whom clients of the broker trust, and the certificate that they show; without
    such settings what the system trusts. Raises click.UsageError. Blocks: files are read."""
    if not address.startswith(HTTPS):
        return None
    from leafcuttr.client.tls import make_context

    given = {**pairs("-X", properties), "bootstrap.servers": "localhost", "security.protocol": "SSL"}
    try:
        tls = client_settings(given).tls
        assert tls is not None
        return make_context(tls)
    except ClientSettingError as error:
        raise click.UsageError(str(error)) from None


def open_admin(
    address: str,
    path: str,
    method: str,
    timeout_s: float,
    given: LogIn | None,
    of_client: LogIn | None,
    tls: "ssl.SSLContext | None" = None,
) -> HTTPResponse:
    """The answer; `given` is shown at once, `of_client` where basic is requested; an `address` with `https://` needs
    `tls`. Raises PluginError, one line, where the port lets nobody in without another log-in, or the two do not agree
    on TLS; HTTPError for other answers that are none; OSError."""
    shown = given
    url = address if address.startswith(HTTPS) else f"http://{address.removeprefix('http://')}"
    while True:
        request = urllib.request.Request(f"{url}{path}", method=method)
        if shown is not None:
            request.add_unredirected_header("Authorization", shown.header)
        try:
            return cast(HTTPResponse, urllib.request.urlopen(request, timeout=timeout_s, context=tls))
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
            challenges = " ".join(error.headers.get_all("WWW-Authenticate", ())).lower()
            error.close()
        except OSError as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if tls is not None and (why := _why_no_tls(cause)) is not None:
                raise PluginError(f"the admin port at {address}: {why}") from None
            raise
        except http.client.HTTPException as error:
            if tls is not None:
                raise
            raise PluginError(
                f"the admin port at {address} does not speak HTTP ({type(error).__name__}); if it has TLS: "
                f"--admin-server {HTTPS}{address}"
            ) from None
        if shown is not None:
            raise PluginError(f"the admin port at {address} refuses the log-in of {shown.source}")
        if of_client is None or "basic" not in challenges:
            raise PluginError(
                f"the admin port at {address} needs a log-in: --admin-auth FILE, with NAME:PASSWORD or Bearer TOKEN"
            )
        shown = of_client


def _why_no_tls(error: object) -> str | None:
    """None: it is about something else."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is refused: {error.verify_message} (ssl.truststore.location or ssl.ca.location of "
            "--client-config names its authority)"
        )
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or str(error)
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return "it has no TLS: --admin-server HOST:PORT, without https://"
    return (
        f"no TLS: {reason.replace('_', ' ').lower()} (ssl.keystore.location or ssl.certificate.location of "
        "--client-config names our certificate)"
    )
