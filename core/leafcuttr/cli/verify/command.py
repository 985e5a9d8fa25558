"""`leafcuttr verify`: check every file of a data directory. The checks are `leafcuttr.offline.verify`.

Exit status: 0 nothing is wrong, 1 problems were found, 2 wrong usage, or the directory is in use or unreadable.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.offline import fail, known_topics, progress_bar, stored_topics, unused
from leafcuttr.cli.common.output import json_option

if TYPE_CHECKING:
    from leafcuttr.offline.verify import Verified


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--deep", is_flag=True, help="Decompress and decode every record too.")
@click.option(
    "--online", is_flag=True, help="Check while a broker is running; what it is just writing is not reported."
)
@json_option
def command(directory: Path, deep: bool, online: bool, as_json: bool) -> None:
    """Check every file of a data directory, and change none.

    The broker must not be running on it (or say --online). Exit status 0: nothing is wrong. 1: problems were found.
    2: wrong usage, or the directory is in use or cannot be read. A note is no problem: the next start repairs it.

    \b
    Examples:
      leafcuttr verify ./leafcuttr-data
      leafcuttr verify --deep --json /var/lib/leafcuttr
    """
    try:
        if online:
            checked = _verify(directory, deep, online)
        else:
            with unused(directory):
                checked = _verify(directory, deep, online)
    except OSError as error:
        fail(f"cannot read {error.filename or directory}: {error.strerror}")
    if as_json:
        click.echo(json.dumps(_json(checked)))
    else:
        _print(checked)
    sys.exit(1 if checked.problems else 0)


def _verify(directory: Path, deep: bool, online: bool) -> "Verified":
    from leafcuttr.errors import BrokerError, StartError
    from leafcuttr.offline.findings import FileFinding, Severity
    from leafcuttr.offline.verify import verify_directory
    from leafcuttr.state.metadata import FILE_NAME

    unusable = None
    topics = None
    try:
        topics = known_topics(stored_topics(directory))
    except (StartError, BrokerError) as error:
        severity = Severity.NOTE if online else Severity.PROBLEM
        unusable = FileFinding(severity, directory / FILE_NAME, None, str(error))
    with progress_bar("verifying") as progress:
        checked = verify_directory(directory, deep=deep, online=online, topics=topics, progress=progress)
    if unusable is not None:
        checked.findings.insert(0, unusable)
    return checked


def _json(checked: "Verified") -> dict[str, Any]:
    fields = dataclasses.asdict(checked)
    for name in ("sure_below", "leader_epochs", "wrong_epochs"):  # repair works from these
        del fields[name]
    fields["directory"] = str(checked.directory)
    fields["clean"] = not checked.problems
    fields["findings"] = [
        {"severity": one.severity, "path": str(one.path), "position": one.position, "text": one.text}
        for one in checked.findings
    ]
    return fields


def _print(checked: "Verified") -> None:
    for finding in checked.findings:
        click.echo(str(finding))
    speed = checked.bytes / checked.seconds / 1e6 if checked.seconds else 0
    click.echo(
        f"{checked.partitions} partitions, {checked.segments} segments, {checked.batches} batches, "
        f"{checked.records} records, {checked.bytes / 1e6:.1f} MB in {checked.seconds:.1f} s ({speed:.0f} MB/s)"
    )
    if checked.problems:
        click.echo(f"{len(checked.problems)} problems found")
    else:
        click.echo("no problems found")
