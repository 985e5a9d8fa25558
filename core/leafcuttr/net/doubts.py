"""What is no reason to refuse a certificate, but may keep clients from taking it, or let others have its key.

Each is a line: for the log, for the doctor and for `leafcuttr certs`.
"""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from leafcuttr.net.certificates import Certificate, first_gap, parse_certificate
from leafcuttr.net.der import DerError
from leafcuttr.net.keystores import read_trusted
from leafcuttr.net.tls import server_tls
from leafcuttr.net.tls_files import TlsFiles

SOON_DAYS: Final = 30
"""From when on it is said that a certificate ends."""


class Doubt(NamedTuple):
    """One line, and whether clients that check certificates cannot connect."""

    line: str
    keeps_clients_out: bool = False


def doubts_of_chain(setting: str, chain: Sequence[Certificate], now_s: float) -> Iterator[Doubt]:
    """Of the certificates that a listener shows. `setting` is where they are from."""
    for one in chain:
        if one.not_after < now_s:
            yield Doubt(
                f"{setting}: the certificate of {one.subject_text} has expired ({_date(one.not_after)})", True
            )
        elif one.not_before > now_s:
            yield Doubt(
                f"{setting}: the certificate of {one.subject_text} is not valid before {_date(one.not_before)}",
                True,
            )
    own = chain[0]
    if not own.serves:
        yield Doubt(
            f"{setting}: the certificate of {own.subject_text} may not be used by a server (extendedKeyUsage)",
            True,
        )
    if own.key.is_short:
        yield Doubt(f"{setting}: the key of {own.subject_text} is short, {own.key}")
    gap = first_gap(chain)
    if gap is not None:
        yield Doubt(
            f"{setting}: the certificate of {chain[gap + 1].subject_text} comes behind that of "
            f"{chain[gap].subject_text}, which was issued by {chain[gap].issuer_text}"
        )


def doubts_of_listener(files: TlsFiles, hosts: Sequence[str], now_s: float | None = None) -> Iterator[Doubt]:
    """All that can be said of the TLS of a listener to which clients connect as these `hosts`. Blocks: files are read.
    Raises TlsError for what it could not be served with."""
    now_s = time.time() if now_s is None else now_s
    tls = server_tls(files)
    yield from doubts_of_chain(tls.setting, tls.chain, now_s)
    own = tls.chain[0]
    for one in tls.chain:
        if 0 <= one.days_left(now_s) < SOON_DAYS:
            days = one.days_left(now_s)
            yield Doubt(f"{tls.setting}: the certificate of {one.subject_text} expires in {days:.0f} days")
    for host in hosts:
        if not own.is_for(host):
            names = ", ".join(own.names) or "none"
            yield Doubt(
                f"{tls.setting}: the certificate is not for {host}, as which clients connect; its names are {names}",
                True,
            )
    yield from _doubts_of_trusted(files, now_s)
    if files.keystore is not None and others_can_read(files.keystore):
        yield Doubt(f"{tls.setting}: every user of this machine can read the private key (chmod o-r)")


def others_can_read(path: str) -> bool:
    """Whether a user who is neither the owner nor of the group may read the file."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)  # noqa: PTH116
    except OSError:
        return False


def _doubts_of_trusted(files: TlsFiles, now_s: float) -> Iterator[Doubt]:
    found = read_trusted(files)
    if found is None:
        return
    setting, certificates = found
    for each in certificates:
        try:
            one = parse_certificate(each)
        except DerError:  # which OpenSSL has taken
            continue
        if one.not_after < now_s:
            yield Doubt(
                f"{setting}: the trusted certificate of {one.subject_text} has expired ({_date(one.not_after)}); "
                "those that it has signed are refused"
            )


def _date(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
