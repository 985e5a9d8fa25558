"""`leafcuttr flows pause`, `resume` and `reset`: records in the topic of flows at the target, which the process that
runs the flow reads, wherever it runs."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
import trio

from leafcuttr_forward.flows import control
from leafcuttr_forward.people.command.asking import complete_flows
from leafcuttr_sdk.cli import bootstrap_server_options, command_context, json_option
from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer

F = TypeVar("F", bound=Callable[..., Any])


def _requests(function: F) -> F:
    return bootstrap_server_options(json_option(function))


@click.command("pause")
@_requests
@click.argument("flow", shell_complete=complete_flows)
def pause(flow: str) -> None:
    """Let a flow copy no more until `resume`, also after a restart.

    --bootstrap-server is the target of the flow.

    \b
    Examples:
      leafcuttr flows pause relay-edge -b hub.example.com:9092
    """
    _at_target(lambda target: control.pause(target, flow, _now_ms()))
    _told(flow, "paused")


@click.command("resume")
@_requests
@click.argument("flow", shell_complete=complete_flows)
def resume(flow: str) -> None:
    """Let a paused flow go on. --bootstrap-server is the target of the flow.

    \b
    Examples:
      leafcuttr flows resume relay-edge -b hub.example.com:9092
    """
    _at_target(lambda target: control.resume(target, flow, _now_ms()))
    _told(flow, "resumed")


@click.command("reset")
@_requests
@click.argument("flow", shell_complete=complete_flows)
@click.option("--to-earliest", is_flag=True, help="To the first record of each partition.")
@click.option("--to-latest", is_flag=True, help="Behind the last record of each partition.")
@click.option(
    "--to-datetime",
    metavar="MOMENT",
    help="To the first record that is not older, e.g. 2026-11-20T10:00:00 (UTC).",
)
@click.option(
    "--to-offset",
    "offsets",
    multiple=True,
    metavar="TOPIC:PARTITION:OFFSET",
    help="This partition of the source to this offset; may be repeated.",
)
def reset(
    flow: str, to_earliest: bool, to_latest: bool, to_datetime: str | None, offsets: tuple[str, ...]
) -> None:
    """Let a paused flow begin again elsewhere, once it is resumed. --bootstrap-server is the target of the flow.

    What lies between is copied again, or left out.

    \b
    Examples:
      leafcuttr flows pause relay-edge -b hub.example.com:9092
      leafcuttr flows reset relay-edge -b hub.example.com:9092 --to-offset orders:0:1200
      leafcuttr flows resume relay-edge -b hub.example.com:9092
    """
    if sum((to_earliest, to_latest, to_datetime is not None, bool(offsets))) != 1:
        raise click.UsageError("say one of --to-earliest, --to-latest, --to-datetime and --to-offset")
    to: control.ResetTo
    if to_datetime is not None:
        to = _moment_ms(to_datetime)
    elif offsets:
        to = dict(map(_offset, offsets))
    else:
        to = "earliest" if to_earliest else "latest"

    async def carry_out(target: "Peer") -> None:
        if not await control.is_paused(target, flow):
            raise PluginError(f"the flow {flow} is not paused: run leafcuttr flows pause {flow} first")
        await control.reset(target, flow, to, _now_ms())

    _at_target(carry_out)
    _told(flow, "reset")


def _at_target(act: "Callable[[Peer], Awaitable[None]]") -> None:
    context = command_context()
    properties = {name: str(value) for name, value in context.client_settings().items()}

    async def main() -> None:
        async with context.peer(properties) as target:
            with trio.fail_after(context.timeout_s):
                await act(target)

    try:
        trio.run(main)
    except trio.TooSlowError:
        raise PluginError(
            f"{context.bootstrap_server} does not answer within {context.timeout_s:g} s"
        ) from None
    except BrokerError as error:
        raise PluginError(str(error) or type(error).__name__) from None


def _told(flow: str, what: str) -> None:
    context = command_context()
    if context.as_json:
        context.print_json({"flow": flow, "requested": what})
    else:
        context.print_line(
            f"{flow} is to be {what}: the process that runs it will read so at {context.bootstrap_server}"
        )


def _offset(text: str) -> tuple[TopicPartition, int]:
    topic, *numbers = text.rsplit(":", 2)
    if len(numbers) != 2 or not topic or not all(each.isascii() and each.isdecimal() for each in numbers):
        raise click.BadParameter(f"{text}: write TOPIC:PARTITION:OFFSET", param_hint="--to-offset")
    return TopicPartition(topic, int(numbers[0])), int(numbers[1])


def _moment_ms(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text}: write a moment as 2026-11-20T10:00:00", param_hint="--to-datetime"
        ) from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
