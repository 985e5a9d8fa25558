"""Options that `relay` and `mirror` have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from leafcuttr_forward.names import check_topic
from leafcuttr_forward.relay.spec import BUFFER_BYTES

F = TypeVar("F", bound=Callable[..., Any])


def how_to_copy() -> Callable[[F], F]:
    """`--at-least-once` and `--dry-run`."""
    return _together(
        click.option(
            "--at-least-once",
            is_flag=True,
            help="Without transactions: after a crash the last records come twice.",
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Say what would be copied, and from which offsets on; copy nothing.",
        ),
    )


def how_much(what: str) -> Callable[[F], F]:
    """`--buffer`, `--throttle` and `--dead-letter-topic`. `what` is the noun of the command."""
    return _together(
        click.option(
            "--buffer",
            "buffer_bytes",
            type=click.IntRange(1 << 20),
            default=BUFFER_BYTES,
            show_default=True,
            metavar="BYTES",
            help="What may be read and not yet be at the target.",
        ),
        click.option(
            "--throttle",
            type=click.FloatRange(1),
            metavar="BYTES",
            help="Copy at most so many bytes in a second.",
        ),
        click.option(
            "--dead-letter-topic",
            callback=_topic,
            metavar="TOPIC",
            help=f"Where records go, at the target, that it refuses. Without it the {what} ends at such a record.",
        ),
    )


def _topic(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            check_topic(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
