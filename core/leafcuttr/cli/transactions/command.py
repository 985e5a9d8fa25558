"""`leafcuttr transactions`: what kafka-transactions does, through our own client: librdkafka has none of these APIs.

Exit status of all of them: 0 done, 1 refused or no broker answers, 2 wrong usage.
"""

import click

from leafcuttr.cli.transactions.end import abort, force_terminate
from leafcuttr.cli.transactions.hanging import find_hanging
from leafcuttr.cli.transactions.show import describe, describe_producers, list_transactions


@click.group()
def command() -> None:
    """List and describe transactions and producers; find transactions that hang, and end them.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


for _command in (list_transactions, describe, describe_producers, find_hanging, abort, force_terminate):
    command.add_command(_command)
