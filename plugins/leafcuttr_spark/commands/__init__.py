"""`leafcuttr spark`: pipelines on Spark, written, checked and run.

    files         a new file of a template: init
    checks        what is wrong with files, without Spark: check
    plans         the graph of a file as text: plan
    run           a pipeline runs: run
    runs          how a run goes, and its end: status, stop
    replays       a pipeline begins anew: replay
    states        what a step keeps: state
    dead_letters  what could not be processed: dlq
    packages      what executors need: package
    common        options and errors that several have; `common_runs` the files of runs

Nothing of Spark is imported before a command needs it.
"""

import click

from leafcuttr_spark.commands.checks import check
from leafcuttr_spark.commands.dead_letters import dlq
from leafcuttr_spark.commands.files import init
from leafcuttr_spark.commands.packages import package
from leafcuttr_spark.commands.plans import plan
from leafcuttr_spark.commands.replays import replay
from leafcuttr_spark.commands.run.command import run
from leafcuttr_spark.commands.runs import status, stop
from leafcuttr_spark.commands.states import state


@click.group("spark", short_help="Write, check and run pipelines on Spark.")
def spark() -> None:
    """Write, check and run pipelines on Apache Spark: topics in, topics out, exactly once.

    A pipeline is a file of YAML. `init` writes one to begin with; only `run`, `replay` and `state` need Spark.

    \b
    Examples:
      leafcuttr spark init orders.yaml
      leafcuttr spark check orders.yaml
      leafcuttr spark run orders.yaml

    Exit status: 0 if done; 1 if a file is wrong, or what it needs is not there; 2 for wrong usage.
    """


for _command in (init, check, plan, run, status, stop, replay, state, dlq, package):
    spark.add_command(_command)
