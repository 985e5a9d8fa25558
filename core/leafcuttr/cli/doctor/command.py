"""`leafcuttr doctor`: find what usually goes wrong, and say what to change.

The checks are in two tables, `remote.checks` and `local.checks`; this is the command, what it prints and its
exit status: 0 nothing is wrong (warnings alone do not count), 1 something is, 2 wrong usage.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from leafcuttr.cli.common.options.target import property_option
from leafcuttr.cli.common.output import count, json_option, print_json
from leafcuttr.cli.common.pairs import pairs
from leafcuttr.cli.doctor.findings import CheckResult, DoctorFinding, DoctorSeverity, examine

_COLOURS: Final = {
    DoctorSeverity.FINE: "green",
    DoctorSeverity.SKIPPED: "bright_black",
    DoctorSeverity.WARNING: "yellow",
    DoctorSeverity.PROBLEM: "red",
}
_WIDEST: Final = 110
_MARGIN: Final = 24


@click.command()
@click.argument("address", metavar="[HOST:PORT]", required=False)
@click.option(
    "--config",
    "-c",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check this server.properties file, and what it needs on this machine.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that overrides the file, as for serve; may be repeated.",
)
@property_option
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 300),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for each answer.",
)
@click.option(
    "--write", "writes", is_flag=True, help="Also send a record through a new topic, which is deleted again."
)
@click.option("--strict", is_flag=True, help="Warnings count as problems.")
@json_option
def command(
    address: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    properties: tuple[str, ...],
    timeout: float,
    writes: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Find what usually goes wrong, and say what to change.

    With HOST:PORT it checks a broker, any Kafka, as a client on this machine would see it: the name, the port, what
    answers there, versions, log-in, whether the advertised addresses can be reached, offline partitions,
    disks, clocks. With --config it checks a configuration (the file, KAFKA_* variables and -o, as serve takes them)
    and this machine: directory, file system, disk, ports, listeners, open files. Nothing is changed; only --write
    creates a topic, and deletes it.

    Exit status: 0 nothing is wrong, 1 something is, 2 wrong usage. Warnings alone are 0, with --strict 1.

    \b
    Examples:
      leafcuttr doctor localhost:9092
      leafcuttr doctor localhost:9092 --write --json
      leafcuttr doctor kafka.example.org:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem
      leafcuttr doctor --config server.properties
    """
    if address is None and config is None and not overrides:
        raise click.UsageError("say HOST:PORT of a broker, or --config FILE, or both")
    found: list[tuple[str, list[CheckResult]]] = []
    if config is not None or overrides:
        found.append((str(config or "the default configuration"), _look_here(config, overrides)))
    if address is not None:
        found.append((address, _look_there(address, properties, timeout, writes)))
    counts = _count(one.finding for _, all_of in found for one in all_of)
    wrong = counts[DoctorSeverity.PROBLEM] + (counts[DoctorSeverity.WARNING] if strict else 0)
    if as_json:
        print_json(_as_json(found, counts, wrong))
    else:
        for title, all_of in found:
            _print(title, all_of)
        click.echo(_summary(counts))
    sys.exit(1 if wrong else 0)


def _look_here(config: Path | None, overrides: tuple[str, ...]) -> list[CheckResult]:
    from leafcuttr.cli.doctor.local.checks import CHECKS
    from leafcuttr.cli.doctor.local.site import Site

    return list(examine(CHECKS, Site(config, os.environ, overrides)))


def _look_there(address: str, properties: tuple[str, ...], timeout: float, writes: bool) -> list[CheckResult]:
    from leafcuttr.cli.doctor.remote.checks import CHECKS
    from leafcuttr.cli.doctor.remote.remote_broker import RemoteBroker

    host, port = _split(address)
    target = RemoteBroker(host, port, timeout, properties=pairs("-X", properties), writes=writes)
    _ = target.settings  # wrong ones are wrong usage, before anything is checked
    return list(examine(CHECKS, target))


def _split(address: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[::1]:9092`, or of a host alone, which means 9092."""
    text = address.partition("://")[2] or address
    if "," in address:
        raise click.UsageError(f"{address}: one broker at a time")
    if text.count(":") > 1 and not text.startswith("["):
        raise click.UsageError(f"{address}: an IPv6 address goes in brackets, [::1]:9092")
    host, _, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "9092")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.UsageError(f"{address}: expected HOST:PORT, for example localhost:9092")
    return host.strip("[]"), int(port)


def _count(findings: Iterable[DoctorFinding]) -> dict[DoctorSeverity, int]:
    counts = dict.fromkeys(DoctorSeverity, 0)
    for one in findings:
        counts[one.severity] += 1
    return counts


def _as_json(
    found: list[tuple[str, list[CheckResult]]], counts: dict[DoctorSeverity, int], wrong: int
) -> dict[str, Any]:
    return {
        "healthy": not wrong,
        "problems": counts[DoctorSeverity.PROBLEM],
        "warnings": counts[DoctorSeverity.WARNING],
        "examined": [
            {"subject": title, "findings": [one.as_json() for one in all_of]} for title, all_of in found
        ],
    }


def _print(title: str, found: list[CheckResult]) -> None:
    """One line for what is fine, and all details of the rest."""
    width = min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    click.echo(title)
    not_looked_at = [one.check for one in found if one.finding.unmet]
    for one in found:
        if one.finding.unmet:
            continue
        severity = one.finding.severity
        _print_line(severity, one.check, one.finding.seen, width)
        for label, texts in (("why", [one.finding.why]), ("change", one.finding.change)):
            for number, text in enumerate(text for text in texts if text):
                # Lines to change are not wrapped, so that they can be copied.
                lines = _wrapped(text, width) if label == "why" else [text]
                head = label if number == 0 else ""
                click.echo(f"{head:>{_MARGIN - 2}}  {lines[0]}")
                for line in lines[1:]:
                    click.echo(" " * _MARGIN + line)

    if not_looked_at:
        _print_line(
            DoctorSeverity.SKIPPED, "", f"skipped, because of that: {', '.join(not_looked_at)}", width
        )


def _print_line(severity: DoctorSeverity, check: str, text: str, width: int) -> None:
    mark = click.style(f"{severity.value:<8}", fg=_COLOURS[severity], bold=severity is DoctorSeverity.PROBLEM)
    first, *others = _wrapped(text, width)
    click.echo(f"  {mark} {check:<12} {first}")
    for line in others:
        click.echo(" " * _MARGIN + line)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width - _MARGIN, 30), break_long_words=False) or [""]


def _summary(counts: dict[DoctorSeverity, int]) -> str:
    if not counts[DoctorSeverity.PROBLEM] and not counts[DoctorSeverity.WARNING]:
        return "nothing is wrong"
    parts = [
        count(counts[one], one.value)
        for one in (DoctorSeverity.PROBLEM, DoctorSeverity.WARNING)
        if counts[one]
    ]
    return " and ".join(parts)
