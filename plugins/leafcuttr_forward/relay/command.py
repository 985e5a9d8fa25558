"""`leafcuttr relay`."""

import logging
from functools import partial
from typing import Any, Final

import click

from leafcuttr_forward.relay.files import read_files
from leafcuttr_forward.relay.foreground import carry_out, logger_for
from leafcuttr_forward.relay.keys import MODES
from leafcuttr_forward.relay.options import how_much, how_to_copy
from leafcuttr_forward.relay.plan import RelayFaultsError, RelayPlan
from leafcuttr_forward.relay.planning import make_plan
from leafcuttr_forward.relay.spec import STARTS, RelayOptions, relay_run
from leafcuttr_sdk.cli import command_context, json_option

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


def _words(values: tuple[str, ...]) -> tuple[str, ...]:
    """Each of them may have several with commas, as in kaf-relay."""
    return tuple(word for value in values for word in value.split(",") if word)


@click.command("relay")
@click.option(
    "--config",
    "configs",
    multiple=True,
    default=("config.toml",),
    type=click.Path(),
    metavar="FILE",
    help="A file of kaf-relay; may be repeated: they are merged in their order, a later one wins.  "
    "[default: config.toml]",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="Read one source, or switch between identical ones.  [default: single]",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="SOURCE:TARGET[:PARTITION]",
    help="A topic to relay, beside those of the files; may be repeated.",
)
@click.option(
    "--stop-at-end",
    is_flag=True,
    default=None,
    help="End where the source's topics ended when the relay began.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME",
    help="Switch a filter of the files on; or a Python file, module:function, or the name of a record filter. "
    "May be repeated.",
)
@how_to_copy()
@click.option(
    "--name",
    metavar="NAME",
    help="Names the position and the group of the relay. Two with one name never run at the same time.  "
    "[default: relay-SOURCE, of the first source]",
)
@click.option(
    "--start",
    type=click.Choice(STARTS),
    default=STARTS[0],
    show_default=True,
    help="Where a partition begins that has no position: behind what kaf-relay has copied to the target, or at the "
    "first or behind the last record of the source.",
)
@how_much("relay")
@json_option
def relay(
    configs: tuple[str, ...],
    mode: str | None,
    topics: tuple[str, ...],
    stop_at_end: bool | None,
    filters: tuple[str, ...],
    at_least_once: bool,
    dry_run: bool,
    name: str | None,
    start: str,
    buffer_bytes: int,
    throttle: float | None,
    dead_letter_topic: str | None,
) -> None:
    """Copy topics to another cluster, as the files of kaf-relay say.

    Records keep their key, value, headers, timestamp, partition and order, and come once. A relay that is started
    again goes on where it was; at a target that kaf-relay has filled it goes on where that has stopped. In mode
    failover it reads one of several identical sources, and another one once that does not answer, or lags behind.

    \b
    Examples:
      leafcuttr relay --config relay.toml
      leafcuttr relay --config common.toml --config hub.toml --mode failover
      leafcuttr relay --topic orders:orders_copy --stop-at-end
      leafcuttr relay --dry-run

    It runs until SIGINT or SIGTERM, or with --stop-at-end until all is copied. Exit status: 0 then; 1 if the files are
    wrong, a cluster refuses, no source answers as often as max_retries says, or max_failovers switches were made; 2 for
    wrong usage.
    """
    plan = _plan(configs, mode, stop_at_end, topics, filters)
    logger = logger_for(_LEVELS[plan.log_level])
    for note in plan.notes:
        logger.warning("%s", note)
    options = RelayOptions(name, at_least_once, start, buffer_bytes, throttle, dead_letter_topic)
    carry_out(partial(_run_plan, plan, options), plan.filters, logger, dry=dry_run)


def _run_plan(plan: RelayPlan, options: RelayOptions, filters: tuple[str, ...]) -> Any:
    return relay_run(plan, options, filters)


def _plan(
    configs: tuple[str, ...],
    mode: str | None,
    stop_at_end: bool | None,
    topics: tuple[str, ...],
    filters: tuple[str, ...],
) -> RelayPlan:
    try:
        return make_plan(
            read_files(_words(configs)),
            mode=mode,
            stop_at_end=stop_at_end,
            topics=_words(topics),
            filters=_words(filters),
        )
    except RelayFaultsError as error:
        *others, last = error.faults
        for fault in others:
            click.echo(f"leafcuttr: {fault}", err=True)
        command_context().fail(last)
