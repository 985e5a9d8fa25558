"""The table of checks for a configuration on the machine where it is to run."""

from collections.abc import Iterator
from typing import Final

from leafcuttr.cli.doctor.findings import DoctorCheck, DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local import certificates, directory, filesystem, host, listeners, plugins, rights
from leafcuttr.cli.doctor.local.site import Site


def settings_are_good(site: Site) -> Iterator[DoctorFinding]:
    """The file can be read, its values are allowed, and its names are known."""
    from leafcuttr.config.findings import Level
    from leafcuttr.config.listeners import parse_listeners
    from leafcuttr.config.load import data_directory
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr.plugins.catalogue import examine_all

    try:
        site.settings, findings, site.plugins = examine_all(site.file, site.environ, site.overrides)
    except (ConfigError, StartError) as error:
        yield _stops(str(error))
        return
    errors = [one for one in findings if one.level is Level.ERROR]
    for one in errors:
        yield _stops(one.line)
    # What a listener advertises by a guess, the check of that name says with what to change.
    warnings = [one for one in findings if one.level is Level.WARNING and one.key != "advertised.listeners"]
    for one in warnings:
        yield warning(
            one.line, "The broker starts and says this line.", f"correct or remove it: {one.source}"
        )
    if errors:
        return
    site.listeners = parse_listeners(site.settings)
    site.directory = data_directory(site.settings)
    if not warnings:
        yield fine("all settings are known and allowed")


def _stops(line: str) -> DoctorFinding:
    return problem(
        line,
        "The broker does not start with a setting that it cannot follow.",
        "correct it; what a setting may be: leafcuttr config describe NAME",
    )


CHECKS: Final[tuple[DoctorCheck[Site], ...]] = (
    DoctorCheck("settings", settings_are_good),
    DoctorCheck("directory", directory.can_be_used, needs=("settings",)),
    DoctorCheck("format", directory.fits_this_version, needs=("directory",)),
    DoctorCheck("place", directory.will_stay, needs=("settings",)),
    DoctorCheck("file-system", filesystem.can_do_what_is_needed, needs=("directory",)),
    DoctorCheck("disk", directory.has_space, needs=("settings",)),
    DoctorCheck("ports", listeners.can_be_opened, needs=("settings",)),
    DoctorCheck("certificates", certificates.can_be_shown, needs=("settings",)),
    DoctorCheck("plugins", plugins.can_listen, needs=("settings",)),
    DoctorCheck("advertised", listeners.advertises_reachable, needs=("settings",)),
    DoctorCheck("access", listeners.requires_authentication, needs=("settings",)),
    DoctorCheck("rights", rights.are_for_somebody, needs=("format",)),
    DoctorCheck("descriptors", host.may_open_enough, needs=("settings",)),
    DoctorCheck("clock", directory.clock_is_plausible, needs=("settings",)),
)
"""For a configuration, in this order."""
