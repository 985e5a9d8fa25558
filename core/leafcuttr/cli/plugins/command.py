"""`leafcuttr plugins`: which plugins are installed, what they bring, whether one keeps its contracts; a new one.

No broker is needed. Exit status of all of them: 0 done, 1 something is wrong, 2 wrong usage.
"""

import click

from leafcuttr.cli.plugins.check import check
from leafcuttr.cli.plugins.describe import describe
from leafcuttr.cli.plugins.list_plugins import list_plugins
from leafcuttr.cli.plugins.new import new


@click.group()
def command() -> None:
    """List, describe and check plugins; create a new one.

    A plugin is a module that an installed distribution names as an entry point of the group leafcuttr.plugins, or a
    file in the folder of lc.plugins.path. Exit status: 0 done, 1 something is wrong, 2 wrong usage.
    """


for _command in (list_plugins, describe, check, new):
    command.add_command(_command)
