"""Commands that a plugin adds to `leafcuttr`, and what `leafcuttr` gives them: the options of its own commands, and a
`CommandContext`, which connects, prints and fails as these do.

    @click.command()
    @bootstrap_server_options
    @json_option
    @click.argument("topic", shell_complete=complete_topics)
    def command(topic: str) -> None:
        context = command_context()
        consumer = context.client(Consumer, {"group.id": "lag"})

The values of these options are not passed to the function: the context has them. click is imported when a command is
made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TypeVar, cast

from leafcuttr_sdk._described import described

if TYPE_CHECKING:
    from http.client import HTTPResponse

    import click

    from leafcuttr_sdk.filters import FilterChain
    from leafcuttr_sdk.peers import Peer

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")

HOST: Final = "leafcuttr_sdk.cli.host"
"""Key of `click.Context.meta`: the context of the command, which `leafcuttr` puts there."""


@described
class CliCommand(NamedTuple):
    """One command: what `leafcuttr_register_cli_commands` returns. It is there once the plugin is installed, whether or
    not a broker has it enabled."""

    name: str
    summary: str
    """A line for `leafcuttr --help`, in lower case and without a full stop."""
    load: "Callable[[], click.Command]"
    """Makes the command when it is called, and imports what it needs."""


class CommandContext(Protocol):
    """What a command of a plugin has from `leafcuttr`; `command_context` returns it.

    Everything here acts as it does in LeafCuttr's own commands. What belongs to an option raises RuntimeError in a
    command that does not have the option.
    """

    @property
    def bootstrap_server(self) -> str:
        """`--bootstrap-server`: `HOST:PORT`, or several of them with commas. Needs `bootstrap_server_options`."""
        ...

    @property
    def timeout_s(self) -> float:
        """`--timeout`: seconds that one answer of a broker may take. Needs `bootstrap_server_options`."""
        ...

    def client_settings(self, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Settings for a client of librdkafka: `bootstrap.servers`, the command's `usual` ones, then those of
        `--client-config` and of `-X`; later ones win. Needs `bootstrap_server_options`."""
        ...

    def client(self, kind: Callable[[dict[str, Any]], C], usual: Mapping[str, Any] | None = None) -> C:
        """A client of a class of confluent_kafka with `client_settings`, which has reached a broker:
        `client(Producer)`. The command ends with status 2 if a setting is unknown, and with status 1 if no broker
        answers within `--timeout`, at most 5 seconds. Needs `bootstrap_server_options`."""
        ...

    @property
    def admin_address(self) -> str:
        """`host:port` of the admin port, where `/metrics`, `/health` and `/plugins/NAME/...` are answered, with
        `https://` before it where it has TLS.

        It is what `--admin-server` or LEAFCUTTR_ADMIN_SERVER says, else what the settings of the broker with the lowest
        id say; the command ends with status 1 where these name none. Needs `admin_server_option`, and to read the
        settings `bootstrap_server_options`; without these, `--admin-server` has to be given."""
        ...

    def open_admin(self, path: str, *, method: str = "GET") -> "HTTPResponse":
        """The answer of the admin port to a request for a path, as `/plugins/NAME/...`, to be closed. The request has
        what `--admin-auth` says, or else, where a port of this machine wants a name and a password, those of the client
        settings. Over TLS these settings say whom to trust, and which certificate to show (`ssl.*`). The command ends
        with one line where that is not enough. Raises urllib.error.HTTPError for other
        answers from 400 on, OSError where none comes within `--timeout`. Needs what `admin_address` needs."""
        ...

    def record_filters(
        self, names: Sequence[str], topic: str, settings: Mapping[str, str] | None = None
    ) -> "FilterChain":
        """As `Broker.record_filters`, without a broker: filters of the plugins that `settings` switch on, as texts by
        the names of `server.properties`; `KAFKA_*` variables count too, and `settings` before them. Their context's
        `broker` has the topic of that name with one partition, and no `schemas`. The command ends with one line, and
        status 2 for a setting that is not right, 1 for a filter that is not there or cannot be made."""
        ...

    def peer(self, properties: Mapping[str, str]) -> "AbstractAsyncContextManager[Peer]":
        """As `Broker.peer`, without a broker: a cluster over the network, for as long as the context lasts, on the
        command's own loop of trio. Raises, when it is entered, PluginError with one line that names the property."""
        ...

    @property
    def as_json(self) -> bool:
        """`--json`. Needs `json_option`."""
        ...

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table on standard output: drawn on a terminal, plain aligned text elsewhere; `-` for None."""
        ...

    def print_json(self, value: object) -> None:
        """The value as JSON, on one line of standard output."""
        ...

    def print_line(self, text: str) -> None:
        """A line on standard output. What would move the cursor of a terminal is escaped, as in `print_table`: names
        of topics and bytes of records come from any client."""
        ...

    def progress(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """A bar on standard error for the time of a `with`, and nothing where that is no terminal. Call what it gives
        with how many more of the `total` are done."""
        ...

    def fail(self, line: str, status: int = 1) -> NoReturn:
        """End the command: `leafcuttr: LINE` on standard error, and this exit status. 1: refused, or cannot be done;
        for wrong usage, status 2, raise click.UsageError."""
        ...


class _Host(CommandContext, Protocol):
    """What the functions below need beside."""

    def complete(self, context: "click.Context", what: str, incomplete: str) -> list[str]: ...


def command_context() -> CommandContext:
    """The context of the command that runs, in the thread that runs it. Raises RuntimeError in one that was not started
    by `leafcuttr`: in tests, `leafcuttr_sdk.testing.run_command` starts it."""
    import click

    found = click.get_current_context().meta.get(HOST)
    if found is None:
        raise RuntimeError(
            "the command was not started by leafcuttr: in a test call leafcuttr_sdk.testing.run_command"
        )
    return cast(CommandContext, found)


# Options


def bootstrap_server_options(function: F) -> F:
    """`--bootstrap-server` (`-b`, LEAFCUTTR_BOOTSTRAP_SERVER), `-X KEY=VALUE`, `--client-config` (`-F`) and
    `--timeout`."""
    from leafcuttr_sdk import _cli_options

    return _cli_options.keep(function, "address", "properties", "client_config", "timeout")


def json_option(function: F) -> F:
    """`--json`: the command prints JSON for programs, and nothing else on standard output."""
    from leafcuttr_sdk import _cli_options

    return _cli_options.keep(function, "as_json")


def admin_server_option(function: F) -> F:
    """`--admin-server` (LEAFCUTTR_ADMIN_SERVER) and `--admin-auth` (LEAFCUTTR_ADMIN_AUTH)."""
    from leafcuttr_sdk import _cli_options

    return _cli_options.keep(function, "admin_server", "admin_auth")


# Completion


def complete_topics(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """Names of topics for the shell, from the broker that the line names; for `shell_complete` of an argument or an
    option. Nothing if it does not answer within a second, or needs TLS or SASL."""
    return _complete(ctx, "topics", incomplete)


def complete_groups(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for consumer groups."""
    return _complete(ctx, "groups", incomplete)


def _complete(ctx: "click.Context", what: str, incomplete: str) -> list[str]:
    host = cast("_Host | None", ctx.meta.get(HOST))
    return [] if host is None else host.complete(ctx, what, incomplete)
