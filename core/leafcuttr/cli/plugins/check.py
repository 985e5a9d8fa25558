"""`leafcuttr plugins check`: a plugin and all that it brings, against the contracts; in real brokers."""

import difflib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.output import count, json_option, print_json, printable
from leafcuttr.cli.common.pairs import pairs

if TYPE_CHECKING:
    from leafcuttr.plugins.origin import Candidate
    from leafcuttr_sdk.testing.report import Report

_GROUP = "leafcuttr.plugins"
_SOURCES = ("src", ".")
"""Where the packages of a project are."""


@click.command(short_help="Check a plugin against its contracts.")
@click.argument("target", metavar="NAME|PATH")
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the broker that it is checked in; may be repeated.",
)
@click.option(
    "--topic-config",
    "topic_configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the topic that filters and validators are made for; may be repeated.",
)
@json_option
def check(target: str, overrides: tuple[str, ...], topic_configs: tuple[str, ...], as_json: bool) -> None:
    """Check a plugin against the contracts of everything that it brings.

    NAME is that of a plugin that is installed, PATH a file with a plugin or the folder of a project with a
    pyproject.toml, which need not be installed. Filters, validators and formats get records as clients send them;
    services are run, stopped and run again in a real broker on free ports, whose data are thrown away; commands that
    need no words are called with --json, and with a broker that does not answer. Other plugins that are installed do
    not run; with -o lc.plugins.disabled= they do. The code of the plugin is run. Exit status: 0 nothing is wrong,
    1 something is wrong, 2 wrong usage.

    \b
    Examples:
      leafcuttr plugins check ./parcel-watch
      leafcuttr plugins check http --json
    """
    broker, topic = pairs("--override", overrides), pairs("--topic-config", topic_configs)
    done: list[Report] = []
    for candidate, path in _find(target):
        sys.path[:0] = path
        for report in _reports(candidate, path, broker, topic):
            done.append(report)
            if not as_json:
                _print(report)
    wrong = sum(len(report.problems) for report in done)
    if as_json:
        print_json([_plain(report) for report in done])
    else:
        checks = sum(len(report.checks) for report in done)
        click.echo(f"{count(checks, 'check')}, {count(wrong, 'problem')}")
    if wrong:
        sys.exit(1)


def _is_given(switch: str, broker: dict[str, str]) -> bool:
    """Whether the person has switched it on, of a family by any member."""
    return (
        any(name.startswith(switch.partition("<")[0]) for name in broker)
        if "<" in switch
        else switch in broker
    )


def _reports(
    candidate: "Candidate", path: list[str], broker: dict[str, str], topic: dict[str, str]
) -> "Iterator[Report]":
    """One after the other, as they are made. Raises click.UsageError for a setting that is not right."""
    from leafcuttr.cli.plugins.checked import CheckedPlugin, report_of_failure
    from leafcuttr.errors import ConfigError, InvalidConfig, PluginError
    from leafcuttr.plugins.importing import imported

    try:
        module, plugin = imported(candidate)
    except PluginError as error:
        yield report_of_failure(candidate.name, str(error))
        return
    switch = plugin.enabled_by
    missing = switch is not None and not _is_given(switch, broker)
    if switch is not None and not switch.endswith(">"):
        broker = {switch: "true", **broker}
    wanted = f"{plugin.name} is on where {switch} is set: say to what, as -o {switch}=VALUE"
    try:
        target = CheckedPlugin(module, candidate.name, broker, topic, path)
    except (ConfigError, InvalidConfig) as error:
        said = str(error)
        raise click.UsageError(wanted if missing and said.startswith(f"{switch}=true ") else said) from None
    if missing and target.switch_is_text:
        raise click.UsageError(wanted)
    yield from target.reports()


def _find(target: str) -> "Iterator[tuple[Candidate, list[str]]]":
    """The plugins to check, and the folders of modules that are not installed."""
    from leafcuttr.plugins.entry_points import candidates
    from leafcuttr.plugins.folder import name_of
    from leafcuttr.plugins.origin import Candidate, PluginOrigin

    installed = {one.name: one for one in candidates()}
    path = Path(target)
    if target in installed:
        yield installed[target], []
    elif path.is_dir():
        sources = [str(folder.resolve()) for name in _SOURCES if (folder := path / name).is_dir()]
        for name, module in _entry_points(path).items():
            yield Candidate(name, module, PluginOrigin(str(path.resolve()))), sources
    elif path.is_file():
        if path.suffix != ".py":
            raise click.UsageError(
                f"{target} is no Python file; a plugin is NAME.py, or a project with a pyproject.toml"
            )
        yield Candidate(name_of(path), None, PluginOrigin(str(path.resolve()))), []
    else:
        near = difflib.get_close_matches(target, installed, 1)
        hint = f"did you mean {near[0]}?" if near else f"installed are {', '.join(installed) or 'none'}"
        raise click.UsageError(f"{target} is neither an installed plugin nor a file or a folder: {hint}")


def _entry_points(project: Path) -> dict[str, str]:
    """Those of our group in the pyproject.toml. Raises click.UsageError where there are none."""
    file = project / "pyproject.toml"
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}; a folder has to be that of a project") from None
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None
    entry_points: dict[str, str] = found.get("project", {}).get("entry-points", {}).get(_GROUP, {})
    if not entry_points:
        raise click.UsageError(
            f'{file} has no plugins: they are named below [project.entry-points."{_GROUP}"]'
        )
    return entry_points


def _print(report: "Report") -> None:
    wrong = count(len(report.problems), "problem") if report.problems else "ok"
    click.echo(printable(f"{report.kind} {report.subject}: {wrong}"))
    for check in report.checks:
        for problem in check.problems:
            click.echo(printable(f"  {check.name}: {problem}"))


def _plain(report: "Report") -> dict[str, Any]:
    return {
        "kind": report.kind,
        "name": report.subject,
        "ok": report.fine,
        "checks": [
            {
                "name": check.name,
                "promise": check.promise,
                "ok": not check.problems,
                "problems": list(check.problems),
            }
            for check in report.checks
        ],
    }
