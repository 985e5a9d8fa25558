"""Commands that ask the admin port of the broker."""

import json
import urllib.error
from collections.abc import Callable
from typing import Any, TypeVar

import click

from leafcuttr_mqtt.people.command.times import ago
from leafcuttr_mqtt.topics.names import why_no_filter
from leafcuttr_sdk.cli import admin_server_option, bootstrap_server_options, command_context, json_option
from leafcuttr_sdk.errors import PluginError

F = TypeVar("F", bound=Callable[..., Any])
Row = dict[str, Any]


def looks(function: F) -> F:
    """The options of a command that asks the admin port."""
    return bootstrap_server_options(admin_server_option(json_option(function)))


def ask(path: str, method: str = "GET") -> Any:
    """What the admin port answers. Raises PluginError with a line for a person."""
    context = command_context()
    try:
        with context.open_admin(f"/plugins/mqtt{path}", method=method) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise PluginError(_told(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise PluginError(f"no admin port answers at {context.admin_address}: {reason}") from None


def _told(error: urllib.error.HTTPError) -> str:
    try:
        told = json.load(error)
        code, message = told["error"], told["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"the admin port answers {error.code} {error.reason}"
    if code == "not_found":
        return "the broker has no MQTT (lc.mqtt.broker.enable)"
    return str(message)


def show_list(path: str, columns: tuple[str, ...], cells: Callable[[Row], tuple[object, ...]]) -> None:
    context = command_context()
    found: list[Row] = ask(path)
    if context.as_json:
        context.print_json(found)
    else:
        context.print_table(columns, [cells(row) for row in found])


def show_one(path: str) -> None:
    context = command_context()
    found: Row = ask(path)
    if context.as_json:
        context.print_json(found)
        return
    subscriptions: list[Row] = found.pop("subscriptions")
    for name, value in found.items():
        if name.endswith("_ms"):
            value = ago(value)
            name = name.removesuffix("_ms")
        context.print_line(f"{name.replace('_', ' ')}: {'-' if value is None else value}")
    context.print_line("")
    context.print_table(
        ("FILTER", "QOS", "NO LOCAL", "RETAIN AS PUBLISHED", "IDENTIFIER"),
        [
            (
                row["filter"],
                row["qos"],
                "yes" if row["no_local"] else "no",
                "yes" if row["retain_as_published"] else "no",
                row["identifier"],
            )
            for row in subscriptions
        ],
    )


def change(path: str, line: Callable[[Row], str]) -> None:
    context = command_context()
    told: Row = ask(path, "DELETE")
    if context.as_json:
        context.print_json(told)
    else:
        context.print_line(line(told))


def valid_filter(text: str) -> str:
    if wrong := why_no_filter(text):
        raise click.UsageError(f"{text!r} is no topic filter: {wrong}")
    return text
