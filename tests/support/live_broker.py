"""A whole broker in this process, in three forms with the same settings; README.md beside this file says which to use.

`live_broker`: with sockets, on a thread of its own and with a clock that the test moves. Real clients can talk to it,
and the test can let a day pass or start a round of retention. `serve_here`: with sockets, on the test's own event loop.
`opening`: without sockets. `broker_process` is the other way: a process of its own, which can be killed.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.log.log import Log
from leafcuttr.runtime.writers import AT_ONCE
from leafcuttr.server.run import run_broker
from leafcuttr.server.transport import MakeTransport, PlainTransport
from leafcuttr.state.broker import Broker, open_broker
from leafcuttr.wire.batch import BatchHeader, parse
from leafcuttr_sdk import Clock, TopicPartition
from support.logs import CalmDisk, HandClock

T = TypeVar("T")


class LiveBroker:
    """What a test does with a running broker. `clock` is what the broker takes for the time of day."""

    def __init__(self, broker: Broker, clock: HandClock, token: trio.lowlevel.TrioToken) -> None:
        self.broker = broker
        self.clock = clock
        self._token = token

    @property
    def address(self) -> str:
        listener = self.broker.listeners[0]
        return f"{listener.host}:{listener.port}"

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a plain function between two steps of the broker's event loop."""
        return trio.from_thread.run_sync(function, *arguments, trio_token=self._token)

    def run(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run an async function on the broker's event loop."""
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    @contextmanager
    def writers_held(self) -> Iterator[None]:
        """No worker begins to write, until the end."""
        limit = self.broker.runtime.writers.limit
        self.call(limit, 0)
        try:
            yield
        finally:
            self.call(limit, AT_ONCE)

    def pass_time(self, ms: int) -> None:
        """Let the clock go on, then do what the background loops do: checkpoint, retention, deletion."""
        self.clock.ms += ms
        logs = self.broker.logs
        for step in (logs.soft_checkpoint, logs.apply_retention, logs.remove_deleted):
            self.run(step)

    def log(self, topic: str, partition: int = 0) -> Log:
        """The log of a partition; touch it through `call` only."""
        return self.broker.logs.logs[TopicPartition(topic, partition)]

    def folder(self, topic: str, partition: int = 0) -> Path:
        return self.broker.logs.directory / f"{topic}-{partition}"

    def files(self, topic: str, suffix: str = ".log", partition: int = 0) -> list[Path]:
        """The files of a partition that end so, by base offset."""
        return sorted(self.folder(topic, partition).glob(f"*{suffix}"))

    def stored(self, topic: str, partition: int = 0) -> list[BatchHeader]:
        """The headers of all batches as they lie on the disk."""
        return [header for path in self.files(topic, partition=partition) for header in batches_of(path)]


def batches_of(path: Path) -> list[BatchHeader]:
    """The headers of all batches of one .log file."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        header = parse(data, at)
        if not header.length:  # preallocated
            break
        found.append(header)
        at += header.size
    return found


_FOR_TESTS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A test that a slow machine holds up would find its topics, the coordinators' among them, compacted meanwhile.
    "log.cleaner.backoff.ms": str(24 * 3600 * 1000),
}
_OLDER_NAMES = {"log.dirs": "log.dir", "node.id": "broker.id"}


def without_sockets(directory: Path, settings: Mapping[str, str] | None = None) -> Settings:
    """Those of a broker of tests with its data in `directory`; `settings` win, by their older names too."""
    given = dict(settings or {})
    own = {"log.dirs": str(directory), **_FOR_TESTS}
    kept = {name: value for name, value in own.items() if _OLDER_NAMES.get(name) not in given}
    return Settings({**kept, **given})


def with_sockets(directory: Path, settings: Mapping[str, str] | None = None) -> Settings:
    """As `without_sockets`, on a free port of 127.0.0.1 and without a listener for metrics."""
    own = {"listeners": "PLAINTEXT://127.0.0.1:0", "lc.metrics.enable": "false"}
    return without_sockets(directory, {**own, **(settings or {})})


def close(broker: Broker) -> None:
    """The clean stop of a broker without sockets."""
    broker.logs.close()
    broker.metadata.close()


@contextmanager
def opening(directory: Path, clock: Clock) -> Iterator[Callable[..., Broker]]:
    """`open(settings)` opens a broker without sockets; calling it again closes the one before, cleanly: a restart. The
    last one is closed at the end."""
    opened: list[Broker] = []

    def end() -> None:
        while opened:
            close(opened.pop())

    def start(settings: Mapping[str, str] | None = None) -> Broker:
        end()
        opened.append(open_broker(without_sockets(directory, settings), clock, pressure=CalmDisk()))
        return opened[-1]

    yield start
    end()


async def serve_here(
    nursery: trio.Nursery,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *,
    make_transport: MakeTransport = PlainTransport,
    stop: trio.Event | None = None,
    ended: trio.Event | None = None,
) -> Broker:
    """Serve in the nursery, over transports that `make_transport` makes; the broker once it is ready. `stop` ends it,
    and `ended` is set when it has."""
    given = with_sockets(directory, settings)

    async def run(task_status: trio.TaskStatus[Broker]) -> None:
        await run_broker(
            given,
            parse_listeners(given),
            pressure=CalmDisk(),
            make_transport=make_transport,
            stop=stop,
            task_status=task_status,
        )
        if ended is not None:
            ended.set()

    broker: Broker = await nursery.start(run)
    return broker


@contextmanager
def live_broker(
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    make_transport: MakeTransport = PlainTransport,
) -> Iterator[LiveBroker]:
    """A broker on a free port of 127.0.0.1, stopped cleanly at the end."""
    hand = HandClock()
    given = with_sockets(directory, settings)
    stop = trio.Event()
    ready = threading.Event()
    started: list[LiveBroker] = []
    failed: list[BaseException] = []

    begin = partial(
        run_broker,
        given,
        parse_listeners(given),
        clock=clock or hand,
        pressure=CalmDisk(),
        make_transport=make_transport,
        stop=stop,
    )

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            broker = await nursery.start(begin)
            started.append(LiveBroker(broker, hand, trio.lowlevel.current_trio_token()))
            ready.set()

    def main() -> None:
        try:
            trio.run(serve)
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=main, name="broker")
    thread.start()
    ready.wait()
    try:
        if failed:
            raise failed[0]
        yield started[0]
        if not failed:
            started[0].call(stop.set)
    finally:
        if started and not failed and not stop.is_set():
            started[0].call(stop.set)
        thread.join()
    if failed:
        raise failed[0]
