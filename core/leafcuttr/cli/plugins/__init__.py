"""`leafcuttr plugins`: which plugins are installed, and what each of them brings. One module per kind of work.

No broker is asked. Exit status of all of them: 0 done, 1 something is wrong, 2 wrong usage.
"""

import click

from leafcuttr.cli.plugins.describe import describe
from leafcuttr.cli.plugins.list_plugins import list_plugins


@click.group()
def command() -> None:
    """List and describe the plugins that are installed here.

    A plugin is a module that an installed distribution names as an entry point of the group leafcuttr.plugins, or a
    file in the folder of lc.plugins.path. Exit status: 0 done, 1 something is wrong, 2 wrong usage.
    """


for _command in (list_plugins, describe):
    command.add_command(_command)
