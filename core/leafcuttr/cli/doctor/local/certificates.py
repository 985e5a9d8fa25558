"""The certificates of a configuration: what the listeners with TLS show, and who can read the keys."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import Listener

if TYPE_CHECKING:
    from leafcuttr.net.tls_files import TlsError, TlsFiles


def can_be_shown(site: Site) -> Iterator[DoctorFinding]:
    """The keys and certificates of listeners with TLS can be read, are valid, have the advertised names, and are
    readable for nobody else."""
    with_tls = [each for each in site.listeners if each.protocol.endswith("SSL")]
    of_metrics = _of_metrics(site)
    if not with_tls and of_metrics is None:
        yield fine("no listener has TLS")
    for listener in with_tls:
        found = list(_of_listener(site, listener))
        yield from found
        if not found:
            yield fine(f"the certificate of {listener} is for {listener.advertised_host}")
    if of_metrics is not None:
        yield from of_metrics or [fine("the certificate of the metrics port can be shown")]
    yield from _secrets(site)


def _of_metrics(site: Site) -> list[DoctorFinding] | None:
    """What is to be said of the metrics port; None if it has no TLS."""
    from leafcuttr.net.tls_files import files_of_metrics

    files = files_of_metrics(site.settings)
    return None if files is None else list(_of_files(files, []))


def _of_listener(site: Site, listener: Listener) -> Iterator[DoctorFinding]:
    from leafcuttr.net.listener_tls import rules_of, tls_files
    from leafcuttr.net.tls_files import TlsError

    try:
        rules_of(site.settings, listener.name)
        files = tls_files(site.settings, listener)
    except TlsError as error:
        yield _not_served(error)
    else:
        yield from _of_files(files, [listener.advertised_host])


def _of_files(files: "TlsFiles", hosts: list[str]) -> Iterator[DoctorFinding]:
    from leafcuttr.net.doubts import doubts_of_listener
    from leafcuttr.net.tls_files import TlsError

    try:
        for doubt in doubts_of_listener(files, hosts):
            if doubt.keeps_clients_out:
                yield problem(
                    doubt.line,
                    "Clients that check the broker's certificate, as they do by default, do not connect.",
                    "see all of it: leafcuttr certs check; have another certificate issued",
                )
            else:
                yield warning(
                    doubt.line,
                    "The broker starts, and some clients may refuse it, or others may get at its key.",
                    "see all of it: leafcuttr certs check",
                )
    except TlsError as error:
        yield _not_served(error)


def _not_served(error: "TlsError") -> DoctorFinding:
    return problem(
        str(error),
        "The broker does not start without it.",
        "correct the settings or the file; what they may be: leafcuttr config describe '*ssl.*'",
    )


def _secrets(site: Site) -> Iterator[DoctorFinding]:
    """Passwords and keys in a file of settings that everybody can read."""
    from leafcuttr.net.doubts import others_can_read

    if site.file is None or not others_can_read(str(site.file)):
        return
    names = [
        name
        for name in sorted(site.settings.given_names)
        if (setting := site.settings.catalog.broker_setting(name)) is not None
        and setting.sensitive
        and site.settings.where(name).startswith(f"{site.file.name}:")
    ]
    if names:
        yield warning(
            f"every user of this machine can read {site.file}, which has {', '.join(names)}",
            "Passwords and keys are for the user who runs the broker.",
            f"chmod o-r {site.file}",
        )
