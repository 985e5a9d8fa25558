"""`leafcuttr configs`: what kafka-configs does. Settings of a file or of this broker's start are `leafcuttr config`.

Exit status of all of them: 0 done, 1 refused or no broker answers, 2 wrong usage.
"""

import click

from leafcuttr.cli.configs.alter import alter
from leafcuttr.cli.configs.describe import describe


@click.group()
def command() -> None:
    """Describe and change the settings of topics, brokers and groups in a running cluster, and the quotas of clients.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


for _command in (describe, alter):
    command.add_command(_command)
