"""Which brokers a command talks to: the options that say so, as one value.

No connection is made here. `produce` and `consume` take the options one by one (`client`), the commands of the
operator take a `Target`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from leafcuttr.cli.client import TIMEOUT_S, broker_option, property_option

Command = Callable[..., None]


@dataclass(frozen=True)
class Target:
    """Where to ask, with which settings of librdkafka, and how many seconds an answer may take."""

    address: str
    properties: tuple[str, ...] = ()
    timeout: float = TIMEOUT_S


def target_options(function: Command) -> Command:
    """`--bootstrap-server`, `-X` and `--timeout` as the argument `target`, for commands that use librdkafka."""

    @functools.wraps(function)
    def with_target(*, address: str, properties: tuple[str, ...], timeout: float, **rest: Any) -> None:
        function(target=Target(address, properties, timeout), **rest)

    return broker_option(property_option(_timeout_option(with_target)))


def plain_target_options(function: Command) -> Command:
    """The same without `-X`, for commands that use `wire_client`: no TLS, no SASL."""

    @functools.wraps(function)
    def with_target(*, address: str, timeout: float, **rest: Any) -> None:
        function(target=Target(address, timeout=timeout), **rest)

    return broker_option(_timeout_option(with_target))


def _timeout_option(function: Command) -> Command:
    return click.option(
        "--timeout",
        type=click.FloatRange(0.1, 3600),
        default=TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long one answer may take.",
    )(function)
