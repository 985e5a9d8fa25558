"""`leafcuttr groups`: what kafka-consumer-groups does. One module per kind of work.

Exit status of all of them: 0 done, 1 refused or no broker answers, 2 wrong usage.
"""

import click

from leafcuttr.cli.groups.delete import delete, delete_offsets
from leafcuttr.cli.groups.reset import reset_offsets
from leafcuttr.cli.groups.show import describe, list_groups


@click.group()
def command() -> None:
    """List, describe and delete consumer groups; reset and delete their offsets.

    Exit status: 0 done, 1 no such group, refused, or no broker answers, 2 wrong usage.
    """


for _command in (list_groups, describe, delete, delete_offsets, reset_offsets):
    command.add_command(_command)
