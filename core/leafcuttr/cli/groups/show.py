"""`groups list` and `groups describe`: what is printed. Groups are looked up in `find`."""

from typing import Any

import click

from leafcuttr.cli.common.completion import complete_groups
from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import count, json_option, print_json, print_table, printable
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.groups import find


@click.command("list", short_help="Print the groups and their states.")
@target_options
@json_option
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only groups in this state; may be repeated."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["classic", "consumer"]),
    help="Only groups of this protocol; may be repeated.",
)
def list_groups(target: Target, as_json: bool, states: tuple[str, ...], types: tuple[str, ...]) -> None:
    """Print every consumer group, its state and its protocol.

    \b
    Examples:
      leafcuttr groups list
      leafcuttr groups list --state empty --json
    """
    wanted = {state.lower().replace("_", " ") for state in states}
    rows = [
        (name, find.word(group.state), find.word(group.type))
        for name, group in find.all_groups(Admin(target)).items()
        if (not wanted or find.word(group.state) in wanted) and (not types or find.word(group.type) in types)
    ]
    if as_json:
        print_json([{"group": name, "state": state, "type": kind} for name, state, kind in rows])
    else:
        print_table(("GROUP", "STATE", "TYPE"), rows)


@click.command(short_help="Print lag and members.")
@target_options
@json_option
@click.argument("groups", nargs=-1, shell_complete=complete_groups)
@click.option("--all-groups", is_flag=True, help="Every group.")
@click.option("--members", "show", flag_value="members", help="Show the members and what each reads.")
@click.option("--state", "show", flag_value="state", help="Show one line a group, with its lag in total.")
def describe(
    target: Target, as_json: bool, groups: tuple[str, ...], all_groups: bool, show: str | None
) -> None:
    """Print how far groups have read, and their members. JSON has all of it.

    \b
    Examples:
      leafcuttr groups describe billing
      leafcuttr groups describe billing --members
      leafcuttr groups describe --all-groups --state
    """
    if bool(groups) == all_groups:
        raise click.UsageError("expected the names of groups, or --all-groups")
    admin = Admin(target)
    names = list(find.all_groups(admin)) if all_groups else list(dict.fromkeys(groups))
    found = find.describe(admin, names)
    there = [about for about in found if about["state"] != find.DEAD or all_groups]
    if as_json:
        print_json(there)
    elif show == "state":
        _print_states(there)
    else:
        for at, about in enumerate(there):
            if at:
                click.echo()
            _print_one(about, show == "members")
    missing = [about["group"] for about in found if about not in there]
    if missing:
        raise Failure(printable(f"there is no group {', '.join(missing)}"))


def _print_states(found: list[dict[str, Any]]) -> None:
    print_table(
        ("GROUP", "STATE", "TYPE", "ASSIGNOR", "COORDINATOR", "MEMBERS", "LAG"),
        [
            (
                about["group"],
                about["state"],
                about["type"],
                about["assignor"],
                about["coordinator"] and about["coordinator"]["id"],
                len(about["members"]),
                about["lag"],
            )
            for about in found
        ],
    )


def _print_one(about: dict[str, Any], members: bool) -> None:
    words = [about["state"], count(len(about["members"]), "member")]
    if about["assignor"]:
        words.append(f"assignor {about['assignor']}")
    click.echo(printable(f"{about['group']}: {', '.join(words)}"))
    if members:
        print_table(
            ("MEMBER", "CLIENT", "HOST", "INSTANCE", "PARTITIONS"),
            [
                (
                    each["member"],
                    each["client"],
                    each["host"],
                    each["instance"],
                    _assigned(each["partitions"]),
                )
                for each in about["members"]
            ],
        )
    else:
        print_table(
            ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"),
            [
                [row[name] for name in ("topic", "partition", "committed", "end", "lag", "client", "host")]
                for row in about["offsets"]
            ],
        )


def _assigned(partitions: list[tuple[str, int]]) -> str | None:
    """`orders:0,1 logs:2`: as the command line takes partitions."""
    topics: dict[str, list[str]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or None
