"""The options that commands share, declared once: those of plugins get them from `leafcuttr_sdk.cli`, LeafCuttr's own
commands from here. It needs click, so it is imported where a command is made.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_S: Final = 15.0
GIVEN: Final = "leafcuttr_sdk.cli.given"
"""Key of `click.Context.meta`: what was given for the options of a plugin's command, by the names below."""
PREFIX: Final = "leafcuttr_"
"""A command of a plugin may have an argument `address` of its own: click keeps one value for a name."""


def bootstrap_server(name: str, **more: Any) -> Callable[[F], F]:
    """With the short form that kcat has."""
    return click.option(
        "--bootstrap-server",
        "-b",
        name,
        default="localhost:9092",
        show_default=True,
        envvar="LEAFCUTTR_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster.",
        **more,
    )


def properties(name: str, **more: Any) -> Callable[[F], F]:
    return click.option(
        "-X",
        name,
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of a client, by the name that Java or librdkafka has for it; may be repeated.",
        **more,
    )


def client_config(name: str, *, as_in_kafka: bool = True, **more: Any) -> Callable[[F], F]:
    """Also by the name that Kafka's tools have, but for commands that have an option of this name."""
    return click.option(
        "--client-config",
        *(("--command-config",) if as_in_kafka else ()),
        "-F",
        name,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A file of such settings, one a line; as Java has it, if it ends in .properties. Put passwords there.",
        **more,
    )


def timeout(name: str, **more: Any) -> Callable[[F], F]:
    return click.option(
        "--timeout",
        name,
        type=click.FloatRange(0.1, 3600),
        default=TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long one answer may take.",
        **more,
    )


def as_json(name: str, **more: Any) -> Callable[[F], F]:
    return click.option("--json", name, is_flag=True, help="Print JSON for programs.", **more)


def admin_server(name: str, **more: Any) -> Callable[[F], F]:
    return click.option(
        "--admin-server",
        name,
        envvar="LEAFCUTTR_ADMIN_SERVER",
        metavar="[https://]HOST:PORT",
        help="The admin port of a broker, where metrics, health and paths of plugins are; with https:// over TLS, by "
        "ssl.* of the client settings.  "
        "[default: what the broker's settings say]",
        **more,
    )


def admin_auth(name: str, **more: Any) -> Callable[[F], F]:
    return click.option(
        "--admin-auth",
        name,
        envvar="LEAFCUTTR_ADMIN_AUTH",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A file with NAME:PASSWORD or Bearer TOKEN, for an admin port that needs a log-in.  "
        "[default: the log-in of the client settings, for a port of this machine]",
        **more,
    )


ALL: Final = {
    "address": bootstrap_server,
    "properties": properties,
    "client_config": client_config,
    "timeout": timeout,
    "as_json": as_json,
    "admin_server": admin_server,
    "admin_auth": admin_auth,
}
"""By the names under which they are kept."""
NAMES: Final = {"address": "--bootstrap-server", "as_json": "--json", "admin_server": "--admin-server"}
"""How a person who reads a message knows them."""


def keep(function: F, *names: str) -> F:
    """Add options whose values are not passed to the command, but kept in the context."""
    for name in reversed(names):
        function = ALL[name](f"{PREFIX}{name}", expose_value=False, callback=_keep)(function)
    return function


def is_kept(parameter: click.Parameter) -> bool:
    """Whether it was added by `keep`."""
    return parameter.callback is _keep


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    given: dict[str, Any] = context.meta.setdefault(GIVEN, {})
    name = str(parameter.name).removeprefix(PREFIX)
    # A group and a command in it may both have the option: what a person typed for the group is not lost to the
    # command's default, nor to a variable of the environment, which holds for both.
    typed = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    if typed or name not in given:
        given[name] = value
    return value
