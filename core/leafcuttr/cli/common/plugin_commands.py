"""How commands of plugins run: what `leafcuttr_sdk.cli` promises them, made of what our own commands share, and what
they leave unhandled as one line.

`load()` of a command is called in `installed`. The options are declared in the SDK, and ours are the same.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from leafcuttr.cli.common.client_properties import all_properties
from leafcuttr.cli.common.completion import DEFAULT_ADDRESS, groups_at, topics_at
from leafcuttr.cli.common.failures import Failure, is_of_output, show_traceback
from leafcuttr.cli.common.options.target import check_utf8
from leafcuttr.cli.common.output import print_json, print_table, printable, progress
from leafcuttr.cli.common.target import TIMEOUT_S, Target
from leafcuttr.runtime.described import first_of, is_of, words_of
from leafcuttr.runtime.plugin_parts import Part, PartError
from leafcuttr_sdk import _cli_options as shared
from leafcuttr_sdk.cli import HOST, CommandContext
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from leafcuttr.plugins.filters_alone import FiltersAlone
    from leafcuttr_sdk.filters import FilterChain
    from leafcuttr_sdk.peers import Peer

C = TypeVar("C")


def prepare(context: click.Context) -> None:
    """Before the command of a plugin is called, or completed, below this context."""
    context.meta[HOST] = HostedCommand(context.meta)


class HostedCommand(CommandContext):
    """What the contract says. What was given for the options is in `meta` once they are parsed."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta
        self._filters: dict[tuple[tuple[str, str], ...], FiltersAlone] = {}

    @property
    def bootstrap_server(self) -> str:
        address = str(self._given("address", "bootstrap_server_options"))
        check_utf8({"address": address})
        return address

    @property
    def timeout_s(self) -> float:
        return float(self._given("timeout", "bootstrap_server_options"))

    def client_settings(self, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
        from leafcuttr.cli.common.librdkafka.client import client_settings

        target = self._target
        return client_settings(target.address, target.properties, **(usual or {}))

    def client(self, kind: Callable[[dict[str, Any]], C], usual: Mapping[str, Any] | None = None) -> C:
        from leafcuttr.cli.common.librdkafka.client import REACH_S, client, topics

        made: C = client(kind, self.client_settings(usual))
        topics(made, self.bootstrap_server, min(REACH_S, self.timeout_s))
        return made

    @property
    def admin_address(self) -> str:
        given = self._given("admin_server", "admin_server_option")
        if given is not None:
            return str(given)
        if "address" not in self._all_given:
            raise click.UsageError("say by --admin-server HOST:PORT where the admin port of a broker is")
        from leafcuttr.cli.common.librdkafka.admin_port import admin_address

        return admin_address(self._target)

    def open_admin(self, path: str, *, method: str = "GET") -> "HTTPResponse":
        from leafcuttr.cli.common.admin_client import log_in_of, log_in_of_client, open_admin, tls_of_client

        file = self._given("admin_auth", "admin_server_option")
        address, has_clients = self.admin_address, "properties" in self._all_given
        given = None if file is None else log_in_of(file)
        properties = self._target.properties if has_clients else ()
        of_client = log_in_of_client(properties, address) if given is None else None
        timeout_s = self.timeout_s if has_clients else TIMEOUT_S
        tls = tls_of_client(properties, address)
        return open_admin(address, path, method, timeout_s, given, of_client, tls)

    def record_filters(
        self, names: Sequence[str], topic: str, settings: Mapping[str, str] | None = None
    ) -> "FilterChain":
        from leafcuttr.errors import ConfigError, StartError
        from leafcuttr.plugins.filters_alone import FiltersAlone

        given = settings or {}
        key = tuple(given.items())
        try:
            # A relay makes filters for each topic: plugins are found once.
            found = self._filters.get(key) or FiltersAlone(given, os.environ)
            self._filters[key] = found
            return found.chain(names, topic)
        except (ConfigError, StartError) as error:
            raise Failure(str(error), status=2) from None
        except PluginError as error:
            raise Failure(str(error)) from None

    def peer(self, properties: Mapping[str, str]) -> "AbstractAsyncContextManager[Peer]":
        from leafcuttr.client.peer import open_remote_peer
        from leafcuttr.runtime.clock import SystemClock

        return open_remote_peer(properties, clock=SystemClock(), logger=logging.getLogger(__name__))

    @property
    def as_json(self) -> bool:
        return bool(self._given("as_json", "json_option"))

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        print_table(columns, rows)

    def print_json(self, value: object) -> None:
        print_json(value)

    def print_line(self, text: str) -> None:
        click.echo(printable(text))

    def progress(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        return progress(what, total)

    def fail(self, line: str, status: int = 1) -> NoReturn:
        raise Failure(printable(line), status=status)

    def complete(self, context: click.Context, what: str, incomplete: str) -> list[str]:
        """Names for the shell. A command without the option may have an address of its own, which is not known."""
        address = str(self._all_given.get("address") or DEFAULT_ADDRESS)
        properties, file = self._all_given.get("properties") or (), self._all_given.get("client_config")
        return {"topics": topics_at, "groups": groups_at}[what](address, incomplete, properties, file)

    @property
    def given_address(self) -> str | None:
        """That of the brokers, if the command has the option."""
        address = self._all_given.get("address")
        return None if address is None else str(address)

    @property
    def _target(self) -> Target:
        given = self._given("properties", "bootstrap_server_options")
        properties = all_properties(given, self._all_given["client_config"])
        check_utf8({"properties": properties})
        return Target(self.bootstrap_server, properties, self.timeout_s)

    @property
    def _all_given(self) -> dict[str, Any]:
        found: dict[str, Any] = self._meta.get(shared.GIVEN, {})
        return found

    def _given(self, name: str, option: str) -> Any:
        try:
            return self._all_given[name]
        except KeyError:
            raise RuntimeError(f"the command is not decorated with {option} of leafcuttr_sdk") from None


def end_of(part: Part, context: click.Context, error: BaseException) -> BaseException:
    """What ends the command of a plugin that raised this: itself, if click or the interpreter handles it, else a
    Failure of one line."""
    if type(error) is click.ClickException:  # click would write `Error: ` before it
        return Failure(error.message)
    if isinstance(error, click.ClickException | click.Abort | click.exceptions.Exit | SystemExit):
        return error
    if isinstance(error, OSError) and is_of_output(error):
        return error
    show_traceback(error)
    first = first_of(error)
    if isinstance(first, click.ClickException):  # of a task in a nursery
        return first
    if is_of(first, PluginError):
        return Failure(words_of(first))
    return _of_librdkafka(first, context) or Failure(str(PartError.of(part, error)))


def _of_librdkafka(error: BaseException, context: click.Context) -> Failure | None:
    """What our own commands say of an error of librdkafka; None for others."""
    host = context.meta.get(HOST)
    library = sys.modules.get("confluent_kafka")
    if library is None or not is_of(error, library.KafkaException) or not isinstance(host, HostedCommand):
        return None
    from leafcuttr.cli.common.librdkafka.client import failure_of

    return None if host.given_address is None else failure_of(error, host.given_address)


class OneCommand(click.Group):
    """`leafcuttr` with this command of a plugin and no other, for the testing kit."""

    def __init__(self, part: Part, name: str, command: click.Command) -> None:
        super().__init__("leafcuttr", commands={name: command})
        self._part = part

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        prepare(ctx)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            end = end_of(self._part, ctx, error)
            if end is error:
                raise
            raise end from None
