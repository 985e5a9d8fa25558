"""`leafcuttr topics`: what kafka-topics, kafka-get-offsets and kafka-delete-records do. One module per kind of work.

Exit status of all of them: 0 done, 1 refused or no broker answers, 2 wrong usage.
"""

import click

from leafcuttr.cli.topics.change import alter, create, delete
from leafcuttr.cli.topics.delete_records import delete_records
from leafcuttr.cli.topics.offsets import offsets
from leafcuttr.cli.topics.show import describe, list_topics


@click.group()
def command() -> None:
    """List, create, describe, alter and delete topics; show offsets, delete records.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


for _command in (list_topics, describe, create, alter, delete, offsets, delete_records):
    command.add_command(_command)
