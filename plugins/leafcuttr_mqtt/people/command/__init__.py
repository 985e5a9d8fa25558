"""`leafcuttr mqtt`: what is connected and kept, by the admin port; publish and subscribe, by MQTT.

asking     the commands that ask the admin port: their options, tables and errors
speaking   the commands that speak MQTT: their options, and the client
times      spans of time for people
others     a command each, or a group of commands
"""

import click

from leafcuttr_mqtt.people.command.clients import clients
from leafcuttr_mqtt.people.command.mappings import mappings
from leafcuttr_mqtt.people.command.publish import publish
from leafcuttr_mqtt.people.command.retained import retained
from leafcuttr_mqtt.people.command.sessions import sessions
from leafcuttr_mqtt.people.command.subscribe import subscribe


@click.group("mqtt")
def mqtt() -> None:
    """Look at the MQTT broker, publish and subscribe.

    Clients, sessions, retained messages and mappings come from the admin port of the broker. What changes something
    (disconnect, delete, clear) has to run on the machine of the broker.
    """


for _command in (clients, sessions, retained, mappings, publish, subscribe):
    mqtt.add_command(_command)
