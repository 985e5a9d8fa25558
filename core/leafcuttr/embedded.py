"""A broker inside another program: in its trio loop (`open_broker`), or in a thread of its own (`run_broker`).

What is the process's business stays as it was: signals, logging, the garbage collector, the limit of open files.
Several brokers may run in one process, each with a data directory of its own.
"""

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from leafcuttr.config.catalog import ALIASES, Section
from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.load import settings_of
from leafcuttr.config.settings import Given
from leafcuttr.plugins.activation import parts_for
from leafcuttr.plugins.catalogue import Finder
from leafcuttr.plugins.facade.opening import secured
from leafcuttr.plugins.facade.view import BrokerView
from leafcuttr.plugins.settings_views import PluginSettings
from leafcuttr.server.run import run_broker as run_until_stopped
from leafcuttr.state.broker import Broker as Core

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.table import Plugins

logger = logging.getLogger(__name__)

T = TypeVar("T")
Values = Mapping[str, str | int | float | bool]
"""Settings by Kafka's names."""

NAME: Final = "embedded"
"""What the program is in the place of a plugin's name: of its logger and its metrics."""
_END_S: Final = 2.0


class EmbeddedBroker(BrokerView):
    """What plugins are given (`leafcuttr_sdk.Broker`), with all settings of the broker, and where the broker is. It
    belongs to the loop's thread."""

    def __init__(self, core: Core) -> None:
        catalog = core.settings.catalog
        every = Section(NAME, (*catalog.broker.values(), *catalog.families.values()))
        parts = parts_for(core, NAME, PluginSettings(core.settings, every))
        super().__init__(core, NAME, **parts, secure=secured(core, NAME))

    @property
    def bootstrap_servers(self) -> str:
        """What a Kafka client takes: `host:port` of each listener, separated by commas."""
        return ",".join(each.advertised for each in self._core.listeners)

    @property
    def listeners(self) -> Mapping[str, str]:
        """`host:port` of each listener by its name, those of plugins by the prefix of their settings."""
        return _listeners(self._core)

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of metrics and health, if they are answered."""
        return self._core.admin.advertised if self._core.admin else None

    @property
    def data_directory(self) -> Path:
        return self._core.logs.directory


@asynccontextmanager
async def open_broker(
    settings: Values | None = None, *, plugins: Sequence[ModuleType] = ()
) -> AsyncIterator[EmbeddedBroker]:
    """Run a broker in this trio program for as long as the context lasts; it is ready once the context is entered.

    `settings` are those of `server.properties`; neither files nor variables of the environment are read. Without any
    it is the broker of `leafcuttr serve`: `localhost:9092`, data in `./leafcuttr-data`, metrics on port 9404. Port 0
    takes a free one: `listeners=PLAINTEXT://localhost:0`, `lc.metrics.port=0`. `plugins` are modules of plugins beside
    those that are installed, and in the place of one of the same name.

    Raises ConfigError for a setting that is not right, StartError where an address or the directory cannot be had, both
    with one line. At the end requests at hand are answered, services stopped and the data directory closed. Cancelled:
    the same, without the time for requests.
    """
    found, table = _prepared(settings or {}, plugins)
    stop, raised = trio.Event(), None
    try:
        async with trio.open_nursery() as nursery:
            core = await nursery.start(
                partial(run_until_stopped, found, parse_listeners(found), plugins=table, stop=stop)
            )
            try:
                yield EmbeddedBroker(core)
            except Exception as error:
                # The broker stops as it should, and what the program raised is not wrapped in a group.
                raised = error
            stop.set()
    except BaseExceptionGroup as group:
        raise _only(group) from None
    if raised is not None:
        raise raised


class BrokerThread:
    """A broker in a thread of its own, from outside of it. All of it may be used by any thread."""

    def __init__(self, broker: EmbeddedBroker, token: trio.lowlevel.TrioToken) -> None:
        self._broker = broker
        self._token = token

    @property
    def bootstrap_servers(self) -> str:
        """What a Kafka client takes: `host:port` of each listener, separated by commas."""
        return self._broker.bootstrap_servers

    @property
    def listeners(self) -> Mapping[str, str]:
        """`host:port` of each listener by its name, those of plugins by the prefix of their settings."""
        return self._broker.listeners

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of metrics and health, if they are answered."""
        return self._broker.metrics_address

    @property
    def data_directory(self) -> Path:
        return self._broker.data_directory

    def call(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run `await function(broker, *arguments)` on the broker's loop, and return what it returns, or raise what it
        raises; `broker` is an `EmbeddedBroker`. Waits for it: in an asyncio program, by `asyncio.to_thread`. Raises
        trio.RunFinishedError once the broker has stopped."""
        return trio.from_thread.run(partial(function, self._broker, *arguments), trio_token=self._token)


@contextmanager
def run_broker(
    settings: Values | None = None, *, plugins: Sequence[ModuleType] = ()
) -> Iterator[BrokerThread]:
    """Run a broker in a thread of its own for as long as the context lasts; for any program that is not trio's.

    Settings, plugins and errors are those of `open_broker`.
    """
    ready: Future[BrokerThread] = Future()
    ended: Future[None] = Future()
    stop: Future[Callable[[], None]] = Future()

    async def serve() -> None:
        # Told here and not by the end of the thread: a service that cannot be ended keeps it.
        try:
            with trio.CancelScope() as starting:
                token, stopped = trio.lowlevel.current_trio_token(), trio.Event()
                stop.set_result(lambda: token.run_sync_soon(stopped.set if ready.done() else starting.cancel))
                async with open_broker(settings, plugins=plugins) as broker:
                    ready.set_result(BrokerThread(broker, token))
                    await stopped.wait()
        except BaseException as error:
            (ended if ready.done() else ready).set_exception(error)
        finally:
            if not ended.done():
                ended.set_result(None)

    thread = threading.Thread(target=trio.run, args=(serve,), name="leafcuttr-broker", daemon=True)
    thread.start()
    try:
        yield ready.result()
    finally:
        with suppress(trio.RunFinishedError):
            stop.result()()
        ended.result()
        thread.join(_END_S)


def _prepared(values: Values, modules: Sequence[ModuleType]) -> "tuple[Settings, Plugins]":
    finder = Finder(modules)
    given = [(ALIASES.get(name, name), Given(_text(value), "settings")) for name, value in values.items()]
    settings, warnings = settings_of(given, finder)
    for warning in warnings:
        logger.warning("%s", warning)
    finder.plugins.start(settings)
    return settings, finder.plugins


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listeners(core: Core) -> dict[str, str]:
    return {
        **{each.name: each.advertised for each in core.listeners},
        **{name: each.advertised for name, each in core.plugged.listeners.items()},
    }


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error in it, if it is one."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
