"""`leafcuttr perf`: how fast a broker is, by one librdkafka client, in the words of Kafka's own two scripts."""

import click

from leafcuttr.cli.perf.consume import consume
from leafcuttr.cli.perf.produce import produce


@click.group()
def command() -> None:
    """Measure a broker as kafka-producer-perf-test and kafka-consumer-perf-test do, with their options.

    Exit status: 0 done, 1 records failed, too few came or no broker answers, 2 wrong usage, 130 after Ctrl-C (what was
    measured so far is printed).
    """


command.add_command(produce)
command.add_command(consume)
