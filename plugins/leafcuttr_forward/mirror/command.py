"""`leafcuttr mirror`."""

import logging
import re
from functools import partial

import click

from leafcuttr_forward.flows.spec import Start
from leafcuttr_forward.mirror.ends import MirrorEnd, parse_end, properties_of
from leafcuttr_forward.mirror.spec import MirrorOptions, mirror_run
from leafcuttr_forward.relay.foreground import carry_out, logger_for
from leafcuttr_forward.relay.options import how_much, how_to_copy
from leafcuttr_forward.relay.plan import FilterPlan, parse_address
from leafcuttr_sdk.cli import json_option


def _end(context: click.Context, parameter: click.Parameter, value: str) -> MirrorEnd:
    try:
        return parse_end(value)
    except ValueError as error:
        raise click.BadParameter(f"{value}: {error}") from None


def _address(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str | None, int] | None:
    if value is None:
        return None
    try:
        host, port = parse_address(value)
    except ValueError as error:
        raise click.BadParameter(f"{value}: {error}, or :PORT") from None
    return host or None, port


def _patterns(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        try:
            re.compile(each)
        except re.error as error:
            raise click.BadParameter(f"{each} is no regular expression: {error}") from None
    return value


@click.command("mirror")
@click.argument("source", callback=_end, metavar="SOURCE")
@click.argument("target", callback=_end, metavar="TARGET")
@click.option(
    "--source-config",
    type=click.Path(),
    metavar="FILE",
    help="Properties of a client of the source, as Java's clients have them: TLS, SASL.",
)
@click.option("--target-config", type=click.Path(), metavar="FILE", help="The same for the target.")
@click.option(
    "--topics",
    multiple=True,
    callback=_patterns,
    metavar="REGEX",
    help="Of a whole cluster only topics whose whole name fits; may be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    callback=_patterns,
    metavar="REGEX",
    help="And none whose whole name fits this one; may be repeated.",
)
@click.option(
    "--stop-at-end", is_flag=True, help="End where the source's topics ended when the mirror began."
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME",
    help="A Python file, module:function, or the name of a record filter; may be repeated.",
)
@how_to_copy()
@click.option(
    "--name",
    metavar="NAME",
    help="Names the position and the group of the mirror.  [default: of the source and the topics]",
)
@click.option(
    "--start",
    type=click.Choice([each.value for each in Start]),
    default=Start.EARLIEST.value,
    show_default=True,
    help="Where a partition begins that has no position.",
)
@click.option(
    "--sync-settings",
    is_flag=True,
    help="Give topics of the target the settings of those of the source, now and when they change.",
)
@click.option(
    "--metrics",
    "metrics_address",
    callback=_address,
    metavar="HOST:PORT",
    help="Where /metrics and the status are answered.  [default: nowhere]",
)
@how_much("mirror")
@json_option
def mirror(
    source: MirrorEnd,
    target: MirrorEnd,
    source_config: str | None,
    target_config: str | None,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    stop_at_end: bool,
    filters: tuple[str, ...],
    at_least_once: bool,
    dry_run: bool,
    name: str | None,
    start: str,
    sync_settings: bool,
    metrics_address: tuple[str | None, int] | None,
    buffer_bytes: int,
    throttle: float | None,
    dead_letter_topic: str | None,
) -> None:
    """Copy a cluster to another one, or a topic to another one, also within a cluster.

    SOURCE and TARGET are HOST:PORT, several of a cluster with commas, and /TOPIC behind them for one topic. Without a
    topic all topics are copied, to topics of the same name. What was produced to the target is committed at the source
    after that, as the group leafcuttr-NAME.

    \b
    Examples:
      leafcuttr mirror edge.example.com:9092 hub.example.com:9092
      leafcuttr mirror edge.example.com:9092/orders hub.example.com:9092/edge.orders
      leafcuttr mirror localhost:9092/orders localhost:9092/orders-copy --stop-at-end
      leafcuttr mirror edge.example.com:9092 hub.example.com:9093 --target-config hub.properties

    It runs until SIGINT or SIGTERM, or with --stop-at-end until all is copied. Exit status: 0 then; 1 if a cluster
    refuses, or a record cannot be copied; 2 for wrong usage.
    """
    options = MirrorOptions(
        topics,
        exclude,
        name,
        at_least_once,
        start,
        stop_at_end,
        sync_settings,
        buffer_bytes,
        throttle,
        dead_letter_topic,
        metrics_address,
    )
    properties = properties_of(source, source_config), properties_of(target, target_config)
    plans = [FilterPlan(each, each, "", True) for each in filters]
    carry_out(
        partial(mirror_run, source, target, properties, options), plans, logger_for(logging.INFO), dry=dry_run
    )
