"""`leafcuttr spark dlq list` and `replay`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_spark.commands.common import load, set_option

if TYPE_CHECKING:
    from leafcuttr_sdk.blocking_peers import BlockingPeer
    from leafcuttr_spark.operating.letters import Letter

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN: Final = 60
"""Characters of a key or value."""


@click.group("dlq")
def dlq() -> None:
    """Look at the dead letters of a pipeline, and send them back.

    They are the records that could not be decoded, at which a function failed, or that came late, with their bytes as
    they came. Neither needs Spark.
    """


def _chosen(function: F) -> F:
    for option in (
        click.option("--step", help="Only those of this step or source."),
        click.option("--reason", metavar="TEXT", help="Only those whose reason contains this."),
        click.option("--topic", metavar="NAME", help="Only those whose record came from this topic."),
    ):
        function = option(function)
    return function


def _choice(step: str | None, reason: str | None, topic: str | None) -> "Callable[[Letter], bool]":
    def chosen(letter: "Letter") -> bool:
        return (
            (
                step is None
                or step == letter.step
                or step in letter.step.replace("(", " ").replace(")", " ").split()
            )
            and (reason is None or reason in letter.reason)
            and (topic is None or topic == letter.topic)
        )

    return chosen


@dlq.command("list")
@set_option
@_chosen
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many are shown.")
@json_option
@click.argument("file", type=click.Path())
def list_letters(
    file: str, variables: dict[str, str], step: str | None, reason: str | None, topic: str | None, limit: int
) -> None:
    """Show the dead letters of a pipeline, oldest first in each partition.

    \b
    Examples:
      leafcuttr spark dlq list orders.yaml
      leafcuttr spark dlq list orders.yaml --step large --json

    Exit status: 0 if they were shown; 1 if the cluster does not answer, or the pipeline has none; 2 for wrong usage.
    """
    from leafcuttr_spark.operating.letters import read_letters

    context = command_context()
    chosen = _choice(step, reason, topic)
    with _letters(file, variables) as (peer, name, _):
        found = list(islice(filter(chosen, read_letters(peer, name)), limit))
    if context.as_json:
        context.print_json([_row(letter) for letter in found])
        return
    context.print_table(
        ("letter", "record", "step", "reason", "key", "value"),
        [
            [
                f"{letter.partition.partition}:{letter.offset}",
                ":".join(letter.about.get(part, "?") for part in ("topic", "partition", "offset")),
                letter.step,
                letter.reason,
                _text(letter.key),
                _text(letter.value),
            ]
            for letter in found
        ],
    )


@dlq.command("replay")
@set_option
@_chosen
@click.option("--to", metavar="TOPIC", help="To this topic, not to the one that each record came from.")
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@json_option
@click.argument("file", type=click.Path())
def replay_letters(
    file: str,
    variables: dict[str, str],
    step: str | None,
    reason: str | None,
    topic: str | None,
    to: str | None,
    dry_run: bool,
) -> None:
    """Send dead letters back: the records as they came, to the topics that they came from.

    Each is sent once, whatever happens meanwhile: what was sent, and what was left out by an option, is kept as the
    offsets of the group NAME-dlq-replay; `leafcuttr groups reset-offsets` goes back.

    \b
    Examples:
      leafcuttr spark dlq replay orders.yaml --dry-run
      leafcuttr spark dlq replay orders.yaml --reason "not JSON" --to orders-mended

    Exit status: 0 if all were sent; 1 if the cluster does not answer, or refuses; 2 for wrong usage.
    """
    from leafcuttr_spark.operating.letters import read_letters, send_back

    context = command_context()
    chosen = _choice(step, reason, topic)
    with _letters(file, variables) as (peer, name, pipeline):
        group = f"{pipeline}-dlq-replay"
        letters = read_letters(peer, name, group)
        if dry_run:
            count = sum(map(chosen, letters))
        else:
            count = send_back(peer, letters, group, to, chosen)
    if context.as_json:
        context.print_json({"records": count, "sent": not dry_run})
    else:
        what = "to send back" if dry_run else "sent back"
        context.print_line(f"{count} record{'' if count == 1 else 's'} {what}")


@contextmanager
def _letters(file: str, variables: dict[str, str]) -> "Iterator[tuple[BlockingPeer, str, str]]":
    """The cluster and the topic of a pipeline's dead letters, and its name. What fails ends the command."""
    from leafcuttr_sdk.blocking_peers import open_peer

    context = command_context()
    pipeline = load(file, variables, with_registry=False).pipeline
    if pipeline.dead_letters is None:
        context.fail(f"{pipeline.name} has no dead letters: its file does not name a topic for them")
    letters = pipeline.dead_letters
    try:
        with open_peer(pipeline.clusters[letters.cluster]) as peer:
            yield peer, letters.topic, pipeline.name
    except (PluginError, BrokerError) as error:
        context.fail(pipeline.secrets.hide(str(error)))


def _row(letter: "Letter") -> dict[str, Any]:
    """`partition` and `offset`, as texts, are those of the record."""
    return {
        "letter": f"{letter.partition.partition}:{letter.offset}",
        "at_ms": letter.at_ms,
        **letter.about,
        "key": _text(letter.key),
        "value": _text(letter.value),
    }


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = data[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
