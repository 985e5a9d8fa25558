"""`leafcuttr serve`: run the broker until a signal ends it.

Exit status: 0 after a clean stop, 1 when the start fails (busy port, directory in use or unreadable, damaged
metadata), 2 for a bad setting or wrong usage, 3 after a stop that could not close the data directory (a full or
read-only disk), 143 or 130 where SIGTERM or SIGINT could not stop it cleanly (`leafcuttr.server.signals`). Every
failure is one line on standard error.
"""

import gc
import linecache
import logging
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from leafcuttr.runtime.standard_streams import open_closed_streams

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.table import Plugins
    from leafcuttr.server.signals import StopSignals
    from leafcuttr.state.plugged import Plugged

_NOT_CLEAN: Final = "stopped, but the data directory could not be closed; the next start recovers it"


@click.command()
@click.option(
    "--config",
    "-c",
    "config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A server.properties file.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one setting; may be repeated.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write pid and bound addresses here as JSON once the broker is ready; removed when it stops.",
)
def command(
    config: Path | None, overrides: tuple[str, ...], log_format: str, log_level: str, ready_file: Path | None
) -> None:
    """Start the broker on localhost:9092 with its data in ./leafcuttr-data.

    Settings are Kafka's. They come from the file, then from KAFKA_* variables of the environment, then from -o;
    later wins. SIGTERM and SIGINT stop the broker cleanly; if a plugin holds it for five seconds, they end it.

    \b
    Examples:
      leafcuttr serve
      leafcuttr serve -c server.properties -o log.retention.hours=24
      leafcuttr serve -o listeners=PLAINTEXT://0.0.0.0:9092 -o advertised.listeners=PLAINTEXT://edge1:9092

    Exit status: 0 after a clean stop, 1 when it cannot start (busy port, directory in use or unreadable), 2 for a bad
    setting or wrong usage, 3 when it stopped but could not close its data directory (a full or read-only disk): then
    the next start recovers it; 143 or 130 when SIGTERM or SIGINT ended it at once, because a plugin held it.
    """
    from leafcuttr.config.load import load_settings
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr.plugins.catalogue import Finder
    from leafcuttr.runtime.plugin_parts import interrupts_are_failures
    from leafcuttr.server.limits import raise_descriptor_limit
    from leafcuttr.server.logs import set_up_logging
    from leafcuttr.server.signals import StopSignals, end_soon

    signals = StopSignals()
    signals.install()
    set_up_logging("json" if log_format == "json" else "text", log_level)
    log = logging.getLogger("leafcuttr")
    find = Finder()
    try:
        with interrupts_are_failures():
            settings, warnings = load_settings(config, os.environ, list(overrides), find)
            for warning in warnings:
                log.warning("%s", warning)
            find.plugins.start(settings)
    except ConfigError as error:
        _end(2, str(error), log_format)
    except StartError as error:
        _end(1, str(error), log_format)
    import trio

    # trio's classes are made by attrs, which keeps the source of each method that it has written there.
    linecache.clearcache()
    raise_descriptor_limit()
    try:
        with interrupts_are_failures():
            status = trio.run(_serve_and_leave, settings, find.plugins, signals, ready_file, log_format)
    except BaseException:
        end_soon(1)
        raise
    if status:
        sys.exit(status)


def _end(status: int, message: str, log_format: str) -> NoReturn:
    """End the process with one line, in the form that the reader of standard error expects."""
    from leafcuttr.server.signals import end_soon

    _say(message, log_format)
    end_soon(status)
    sys.exit(status)


def _say(message: str, log_format: str) -> None:
    if log_format == "json":
        logging.getLogger("leafcuttr").critical("%s", message)
    else:
        open_closed_streams()
        click.echo(f"leafcuttr: {message}", err=True)


async def _serve_and_leave(
    settings: "Settings",
    plugins: "Plugins",
    signals: "StopSignals",
    ready_file: Path | None,
    log_format: str,
) -> int:
    """The exit status. Does not return where a service of a plugin has not ended: trio would wait for it. The data is
    closed by then, and nothing else keeps the process for long."""
    import trio

    from leafcuttr.errors import StartError
    from leafcuttr.runtime.apart import parts_in
    from leafcuttr.server.signals import end_soon
    from leafcuttr.state.plugged import Plugged

    plugged, status, line = Plugged(), 0, ""
    try:
        if not await _serve(settings, plugins, plugged, signals, ready_file):
            status, line = 3, _NOT_CLEAN
    except* StartError as group:
        status, line = 1, str(_first(group))
    if status:
        _say(line, log_format)
    if plugged.left_behind:
        logging.shutdown()
        open_closed_streams()
        sys.stdout.flush()
        os._exit(status)
    root = trio.lowlevel.current_root_task()
    end_soon(status, lambda: map(str, parts_in(root) if root else ()))
    return status


def _remove(ready_file: Path) -> None:
    with suppress(OSError):  # it may lie on a disk that has become read-only; the stop continues
        ready_file.unlink(missing_ok=True)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _serve(
    settings: "Settings",
    plugins: "Plugins",
    plugged: "Plugged",
    signals: "StopSignals",
    ready_file: Path | None,
) -> bool:
    """Whether the stop was clean."""
    import trio

    from leafcuttr.config.listeners import parse_listeners
    from leafcuttr.config.load import data_directory
    from leafcuttr.errors import StartError
    from leafcuttr.server.ready import ready_line, write_ready_file
    from leafcuttr.server.run import run_broker
    from leafcuttr.state.broker import Broker

    stop, clean = trio.Event(), False
    directory = data_directory(settings)

    async def serve(task_status: trio.TaskStatus[Broker]) -> None:
        nonlocal clean
        clean = await run_broker(
            settings,
            parse_listeners(settings),
            plugins=plugins,
            plugged=plugged,
            stop=stop,
            task_status=task_status,
        )
        nursery.cancel_scope.cancel()

    with signals.on_loop(stop.set, plugged.holder), ExitStack() as at_end:
        async with trio.open_nursery() as nursery:
            broker = await nursery.start(serve)
            if ready_file:
                try:
                    write_ready_file(ready_file, broker, str(directory))
                except OSError as error:
                    raise StartError(f"ready file {ready_file}: {error.strerror}") from error
                at_end.callback(_remove, ready_file.absolute())
            open_closed_streams()
            click.echo(ready_line(broker, str(directory) if directory.is_absolute() else f"./{directory}"))
            # What start-up has allocated stays; the collector need not visit it again. It is not called for the little
            # that does not: the first clients would wait for it.
            gc.freeze()
            # A broker makes hardly any cyclic garbage, while the elements of long requests are many and live long
            # enough to be visited: by default again and again, tens of milliseconds each time.
            gc.set_threshold(5000, 10, 100)
            # A worker thread that runs Python gives the loop its turn after this long, not after 5 ms.
            sys.setswitchinterval(0.0002)
    return clean
