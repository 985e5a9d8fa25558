"""`leafcuttr mqtt clients`."""

from urllib.parse import quote

import click

from leafcuttr_mqtt.people.command.asking import change, looks, show_list, show_one
from leafcuttr_mqtt.people.command.times import ago


@click.group("clients", invoke_without_command=True, short_help="List the connected clients; disconnect one.")
@looks
@click.pass_context
def clients(context: click.Context) -> None:
    """List the clients that are connected.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients
      leafcuttr mqtt clients --json
    """
    if context.invoked_subcommand is None:
        columns = (
            "CLIENT",
            "ADDRESS",
            "PROTOCOL",
            "USER",
            "CONNECTED",
            "SUBSCRIPTIONS",
            "IN FLIGHT",
            "WAITING",
        )
        show_list(
            "/clients",
            columns,
            lambda row: (
                row["client_id"],
                row["address"],
                row["protocol"],
                row["user_name"],
                ago(row["connected_ms"]),
                row["subscriptions"],
                row["in_flight"],
                row["waiting"],
            ),
        )


@clients.command("show", short_help="Show one connected client.")
@looks
@click.argument("client_id")
def show_client(client_id: str) -> None:
    """Show a client that is connected, with its subscriptions.

    Exit status: 0 done, 1 no such client is connected, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients show sensor-7
    """
    show_one(f"/clients/{quote(client_id, safe='')}")


@clients.command("disconnect", short_help="End the connection of a client.")
@looks
@click.argument("client_id")
def disconnect(client_id: str) -> None:
    """End the connection of a client, by DISCONNECT with the reason "administrative action". Its will is published, and
    its session is kept. Most clients connect again at once.

    Exit status: 0 done, 1 no such client is connected, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients disconnect sensor-7
    """
    change(f"/clients/{quote(client_id, safe='')}", lambda _: f"disconnected {client_id}")
