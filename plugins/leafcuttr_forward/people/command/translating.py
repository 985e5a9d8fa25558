"""`leafcuttr flows translate`."""

from typing import Any, Final

import click
import trio

from leafcuttr_forward.mirror.ends import parse_end, properties_of
from leafcuttr_forward.people.command.asking import all_flows, complete_flows, one_flow, shows
from leafcuttr_forward.people.translation import Translated, translate_group
from leafcuttr_sdk.cli import command_context, complete_groups
from leafcuttr_sdk.errors import BrokerError, PluginError

_THIS_BROKER: Final = "this broker"
_COLUMNS: Final = ("TOPIC", "PARTITION", "OFFSET", "TARGET", "PARTITION", "OFFSET", "HOW")


@click.command("translate")
@shows
@click.argument("group", shell_complete=complete_groups)
@click.option(
    "--flow",
    metavar="NAME",
    shell_complete=complete_flows,
    help="The flow that copies what the group reads.  [default: the only one]",
)
@click.option(
    "--source-config",
    type=click.Path(),
    metavar="FILE",
    help="Properties of a client of the source, as Java's clients have them: TLS, SASL.",
)
@click.option("--target-config", type=click.Path(), metavar="FILE", help="The same for the target.")
def translate(group: str, flow: str | None, source_config: str | None, target_config: str | None) -> None:
    """Show where a consumer group of the source would go on at the target.

    The record that the group would read next is looked for at the target. Where it comes more than once, its first
    place is shown: a consumer that moves there may see records again, and misses none.

    \b
    Examples:
      leafcuttr flows translate billing --admin-server localhost:7081
    """
    context = command_context()
    found = one_flow(flow or _only_flow())
    ends = _properties(found["source"], source_config), _properties(found["target"], target_config)

    async def main() -> list[Translated]:
        async with context.peer(ends[0]) as source, context.peer(ends[1]) as target:
            return await translate_group(source, target, group, found)

    try:
        rows = trio.run(main)
    except BrokerError as error:
        raise PluginError(str(error) or type(error).__name__) from None
    if not rows:
        raise PluginError(f"the group {group} has committed no offset of what {found['flow']} copies")
    if context.as_json:
        context.print_json([row.json() for row in rows])
    else:
        context.print_table(_COLUMNS, [_cells(row) for row in rows])


def _properties(end: str, config: str | None) -> dict[str, str]:
    """Of a client of one end of a flow, which is named by its addresses; the broker that runs it is the one that
    --bootstrap-server names."""
    if end == _THIS_BROKER:
        return {name: str(value) for name, value in command_context().client_settings().items()}
    try:
        return properties_of(parse_end(end), config)
    except ValueError:
        raise PluginError(f"{end!r} is no address of a cluster") from None


def _cells(row: Translated) -> tuple[object, ...]:
    return *row.source, row.offset, *row.target, row.target_offset, row.how


def _only_flow() -> str:
    names: list[Any] = [row["flow"] for row in all_flows()]
    if len(names) != 1:
        known = f": {', '.join(names)}" if names else ""
        raise click.UsageError(f"say by --flow which of {len(names)} flows is meant{known}")
    return str(names[0])
