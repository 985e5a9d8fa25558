"""The certificates of a configuration: what the listeners with TLS show, and who can read the keys."""

from collections.abc import Iterator

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import Listener


def can_be_shown(site: Site) -> Iterator[DoctorFinding]:
    """The keys and certificates of listeners with TLS can be read, are valid, have the advertised names, and are
    readable for nobody else."""
    with_tls = [each for each in site.listeners if each.protocol.endswith("SSL")]
    if not with_tls:
        yield fine("no listener has TLS")
    for listener in with_tls:
        found = list(_of_listener(site, listener))
        yield from found
        if not found:
            yield fine(f"the certificate of {listener} is for {listener.advertised_host}")
    yield from _secrets(site)


def _of_listener(site: Site, listener: Listener) -> Iterator[DoctorFinding]:
    from leafcuttr.net.doubts import doubts_of_listener
    from leafcuttr.net.listener_tls import rules_of, tls_files
    from leafcuttr.net.tls_files import TlsError

    try:
        rules_of(site.settings, listener.name)
        for doubt in doubts_of_listener(tls_files(site.settings, listener), [listener.advertised_host]):
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
        yield problem(
            str(error),
            "The broker does not start without it.",
            "correct the settings or the file; what they may be: leafcuttr config describe 'ssl.*'",
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
