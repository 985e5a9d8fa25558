"""Requests to the admin port of a broker, with what `lc.metrics.auth` wants: NAME:PASSWORD (basic) or a token (bearer).

There is no TLS on that port. So the log-in of the client settings, which for SCRAM never leaves this machine as it is,
is shown to a port of this machine only, and only where that requests one.
"""

import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPResponse
from pathlib import Path
from typing import Final, NamedTuple, cast

import click

from leafcuttr.cli.common.pairs import pairs
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.properties import client_settings
from leafcuttr_sdk.authentication import basic_authorization
from leafcuttr_sdk.errors import PluginError

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
    if not _HERE.fullmatch(address.rpartition(":")[0]):
        return None
    try:
        sasl = client_settings({"bootstrap.servers": "localhost", **pairs("-X", properties)}).sasl
    except ClientSettingError:
        # Which the client itself complains of, or librdkafka alone has it, as OAUTHBEARER.
        return None
    if sasl is None or sasl.is_token:
        return None
    return LogIn(basic_authorization(f"{sasl.username}:{sasl.password}"), "the client settings")


def open_admin(
    address: str, path: str, method: str, timeout_s: float, given: LogIn | None, of_client: LogIn | None
) -> HTTPResponse:
    """The answer; `given` is shown at once, `of_client` where basic is requested. Raises PluginError, one line, where
    the port lets nobody in without another log-in; HTTPError for other answers that are none; OSError."""
    shown = given
    while True:
        request = urllib.request.Request(f"http://{address}{path}", method=method)
        if shown is not None:
            request.add_unredirected_header("Authorization", shown.header)
        try:
            return cast(HTTPResponse, urllib.request.urlopen(request, timeout=timeout_s))
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
            challenges = " ".join(error.headers.get_all("WWW-Authenticate", ())).lower()
            error.close()
        if shown is not None:
            raise PluginError(f"the admin port at {address} refuses the log-in of {shown.source}")
        if of_client is None or "basic" not in challenges:
            raise PluginError(
                f"the admin port at {address} needs a log-in: --admin-auth FILE, with NAME:PASSWORD or Bearer TOKEN"
            )
        shown = of_client
