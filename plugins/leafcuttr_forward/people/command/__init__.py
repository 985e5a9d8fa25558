"""`leafcuttr flows`: what flows between clusters, with its lag; pause, resume, reset.

asking      GET at the admin port of a broker, or at the address of metrics of a relay
showing     list, describe, lag
requesting  pause, resume, reset: records in the flow's topic at the target
translating translate
"""

import click

from leafcuttr_forward.people.command.requesting import pause, reset, resume
from leafcuttr_forward.people.command.showing import describe, lag, list_flows
from leafcuttr_forward.people.command.translating import translate


@click.group("flows")
def flows() -> None:
    """Look at flows between clusters, pause and reset them.

    What a flow does now comes from the admin port of the broker that runs it, or from the address of metrics of a relay
    or a mirror: --admin-server. What is requested of a flow is written to the target, where the flow reads it.

    Exit status: 0 if done; 1 if nothing answers, there is no such flow, or it is not paused; 2 for wrong usage.
    """


for _command in (list_flows, describe, lag, pause, resume, reset, translate):
    flows.add_command(_command)
