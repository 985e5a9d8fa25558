"""The certificate that a broker shows: whether it is good for other clients too, and for how long."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, warning
from leafcuttr.cli.doctor.remote.remote_broker import RemoteBroker
from leafcuttr.client.tls import make_context
from leafcuttr.net.certificates import Certificate, parse_certificate
from leafcuttr.net.der import DerError
from leafcuttr.net.doubts import SOON_DAYS


def is_good(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """The certificate of a broker with TLS is valid for weeks to come, and for the name that was used; its key is not
    short."""
    if target.settings.tls is None:
        yield fine("no TLS, so no certificate")
        return
    try:
        found = _shown(target)
    except (OSError, DerError) as error:
        yield warning(
            f"the certificate of {target.address} cannot be read: {error}",
            "What other clients make of it is not known.",
            f"see it: leafcuttr certs show {target.address}",
        )
        return
    wrong = list(_doubts(target, found))
    yield from wrong
    if not wrong:
        yield fine(f"{found.subject_text}, for {found.days_left(time.time()):.0f} days")


def _shown(target: RemoteBroker) -> Certificate:
    assert target.settings.tls is not None
    context = make_context(replace(target.settings.tls, verifies=False))
    with (
        socket.create_connection((target.host, target.port), target.timeout) as sock,
        context.wrap_socket(sock, server_hostname=target.host) as tls,
    ):
        return parse_certificate(tls.getpeercert(True) or b"")


def _doubts(target: RemoteBroker, one: Certificate) -> Iterator[DoctorFinding]:
    days = one.days_left(time.time())
    if days < SOON_DAYS:
        when = f"expires in {days:.0f} days" if days >= 0 else "has expired"
        yield warning(
            f"the certificate of {one.subject_text} {when}",
            "From then on clients that check certificates do not connect.",
            "have another one issued; a LeafCuttr takes it without a restart: leafcuttr certs reload",
        )
    if not one.is_for(target.host):
        yield warning(
            f"the certificate is not for {target.host}; its names are {', '.join(one.names) or 'none'}",
            "Clients that check names, as they do by default, do not connect by this one.",
            "give clients one of its names, or have a certificate issued for this one",
        )
    if one.key.is_short:
        yield warning(
            f"the key of the certificate is short, {one.key}",
            "Clients of today may refuse it.",
            "have a certificate issued for a key of P-256, or of RSA with 2048 bits or more",
        )
