"""`leafcuttr mqtt retained`."""

from urllib.parse import urlencode

import click

from leafcuttr_mqtt.people.command.asking import change, looks, show_list, valid_filter
from leafcuttr_mqtt.people.command.times import ago


@click.group("retained", invoke_without_command=True, short_help="List the retained messages; clear some.")
@looks
@click.option("--filter", "topic_filter", metavar="FILTER", help="Topics that this filter matches.")
@click.pass_context
def retained(context: click.Context, topic_filter: str | None) -> None:
    """List the topics that have a retained message, without the messages: `leafcuttr mqtt subscribe` shows these.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt retained --filter 'devices/#'
    """
    if context.invoked_subcommand is None:
        path = "/retained"
        if topic_filter is not None:
            path += f"?{urlencode({'filter': valid_filter(topic_filter)})}"
        show_list(
            path,
            ("TOPIC", "BYTES", "QOS", "PUBLISHED", "BY"),
            lambda row: (
                row["topic"],
                row["bytes"],
                row["qos"],
                ago(row["published_ms"]),
                row["client_id"] or None,
            ),
        )


@retained.command("clear", short_help="Delete retained messages.")
@looks
@click.argument("topic_filter", metavar="FILTER")
def clear(topic_filter: str) -> None:
    """Delete the retained messages of the topics that FILTER matches.

    Exit status: 0 done, also if there were none, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt retained clear 'devices/old/#'
    """
    path = f"/retained?{urlencode({'filter': valid_filter(topic_filter)})}"
    change(path, lambda told: f"cleared {told['cleared']} retained message{'s' * (told['cleared'] != 1)}")
