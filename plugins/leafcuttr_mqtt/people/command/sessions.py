"""`leafcuttr mqtt sessions`."""

from urllib.parse import quote

import click

from leafcuttr_mqtt.people.command.asking import change, looks, show_list, show_one
from leafcuttr_mqtt.people.command.times import ago, span


@click.group("sessions", invoke_without_command=True, short_help="List sessions; delete one.")
@looks
@click.pass_context
def sessions(context: click.Context) -> None:
    """List the sessions, those whose clients are away among them.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions
      leafcuttr mqtt sessions --json
    """
    if context.invoked_subcommand is None:
        columns = (
            "CLIENT",
            "AWAY",
            "EXPIRES AFTER",
            "SUBSCRIPTIONS",
            "IN FLIGHT",
            "WAITING",
            "BYTES",
            "OLDEST",
        )
        show_list(
            "/sessions",
            columns,
            lambda row: (
                row["client_id"],
                None if row["connected"] else ago(row["disconnected_ms"]),
                "never" if row["expiry_s"] is None else span(row["expiry_s"]),
                row["subscriptions"],
                row["in_flight"],
                row["waiting"],
                row["waiting_bytes"],
                ago(row["oldest_ms"]),
            ),
        )


@sessions.command("show", short_help="Show one session.")
@looks
@click.argument("client_id")
def show_session(client_id: str) -> None:
    """Show the session of a client, with its subscriptions.

    Exit status: 0 done, 1 there is no such session, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions show dashboard
    """
    show_one(f"/sessions/{quote(client_id, safe='')}")


@sessions.command("delete", short_help="End the session of a client.")
@looks
@click.argument("client_id")
def delete_session(client_id: str) -> None:
    """End the session of a client: its subscriptions, and the messages that wait for it, are gone. If it is connected,
    its connection is ended first.

    Exit status: 0 done, 1 there is no such session, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions delete dashboard
    """
    change(f"/sessions/{quote(client_id, safe='')}", lambda _: f"deleted the session of {client_id}")
