"""A real broker for tests: sockets on free ports, data in a folder, a thread of its own.

All of it may be called from any test, be it plain, of asyncio or of trio, and waits until it is done. What waits is
bounded: a broker that does not answer fails the test.
"""

import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

from leafcuttr_sdk.broker import EARLIEST
from leafcuttr_sdk.records import Headers, Produced, StoredRecord
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.installed import settings_for
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr import BrokerThread
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.topics import TopicInfo

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""How long a call may take unless it is told otherwise, so that no test depends on the machine's speed."""
DEFAULTS: Final[Mapping[str, Value]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "lc.metrics.host": "127.0.0.1",
    "lc.metrics.port": 0,
    "group.initial.rebalance.delay.ms": 0,
}
"""What is other than in `leafcuttr serve`, beside the folder of the data."""


class RunningBroker:
    """A broker that runs. Its ports stay the same when it is restarted."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, Value] | None = None,
        plugins: Sequence[ModuleType | str] = (),
    ) -> None:
        self.data_dir: Final = data_dir
        """Where it keeps its data. They stay when it is stopped."""
        self._settings: dict[str, Value] = {**DEFAULTS, "log.dirs": str(data_dir), **(settings or {})}
        self._plugins = plugins
        self._running = ExitStack()
        self._thread: BrokerThread | None = None

    # Where it is

    @property
    def bootstrap_servers(self) -> str:
        """What a Kafka client takes."""
        return self._broker.bootstrap_servers

    @property
    def host(self) -> str:
        """Of its first listener."""
        return self.bootstrap_servers.partition(",")[0].rpartition(":")[0]

    @property
    def port(self) -> int:
        """Of its first listener."""
        return int(self.bootstrap_servers.partition(",")[0].rpartition(":")[2])

    @property
    def listeners(self) -> Mapping[str, str]:
        """`host:port` by name; those of plugins by the prefix of their settings."""
        return self._broker.listeners

    @property
    def admin_port(self) -> int:
        """Where `/metrics`, `/health` and the paths of plugins are answered. Raises LookupError if they are not."""
        return int(self._admin_address.rpartition(":")[2])

    @property
    def admin_url(self) -> str:
        """`http://host:port`, or `https://` where it has TLS, without a path."""
        scheme = "https" if self._settings.get("lc.metrics.ssl.keystore.location") else "http"
        return f"{scheme}://{self._admin_address}"

    # What it does

    def call(self, function: "Callable[[Broker], Awaitable[T]]", *, timeout_s: float = PATIENCE_S) -> T:
        """Run an async function on the broker's own loop, with the broker as plugins see it:
        `broker.call(lambda b: b.topics.delete("t"))`. Raises what it raises, TimeoutError after `timeout_s`."""
        broker = self._broker

        async def bounded(inside: "Broker") -> T:
            import trio

            with trio.move_on_after(timeout_s):
                return await function(inside)
            raise TimeoutError(f"not done within {timeout_s:g} s")

        def run() -> T:
            return broker.call(bounded)

        # trio refuses to let a task wait for another loop, also where a test may well do so.
        return watch.in_thread(run) if _in_trio() else run()

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> "TopicInfo":
        """Raises BrokerError, as for clients."""
        return self.call(lambda broker: broker.topics.create(name, partitions=partitions, configs=configs))

    def produce(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Produced:
        """Append one record, through filters and validators as from a client; a topic that does not exist is created.
        Text is written as UTF-8. Raises BrokerError."""
        return self.call(
            lambda broker: broker.produce(
                topic,
                value.encode() if isinstance(value, str) else value,
                key.encode() if isinstance(key, str) else key,
                headers=headers,
                timestamp=timestamp,
                partition=partition,
            )
        )

    def consume(
        self, topic: str, count: int | None = None, *, timeout_s: float = 30.0, committed: bool = False
    ) -> list[StoredRecord]:
        """The first `count` records of a topic, of all its partitions; waits for them, and for the topic too. Without
        a `count` those that are there. Raises TimeoutError, with what there is."""
        if count is None:
            return self.call(lambda broker: _all_records(broker, topic, committed))
        found: list[StoredRecord] = []
        try:
            self.call(
                lambda broker: _first_records(broker, topic, count, found, committed), timeout_s=timeout_s
            )
        except TimeoutError:
            raise TimeoutError(
                f"{len(found)} of {count} records came to {topic} within {timeout_s:g} s: {found}"
            ) from None
        return found

    # Its life

    def start(self) -> None:
        """Returns once it serves. Raises ConfigError, StartError: a setting or a plugin is not right; LookupError: a
        plugin is not installed."""
        if self._thread is not None:
            raise RuntimeError("the broker is running")
        from leafcuttr import run_broker

        settings = {**settings_for(self._plugins, self._settings), **self._settings}
        given = {name: text_of(value) for name, value in settings.items() if value is not None}
        modules = [one for one in self._plugins if not isinstance(one, str)]
        self._thread = self._running.enter_context(run_broker(given, plugins=modules))
        self._keep_ports(settings)

    def stop(self) -> None:
        """As SIGTERM does: open requests are answered, services end, the data is closed. It may be called twice."""
        try:
            self._running.close()
        finally:
            self._thread = None

    def restart(self, settings: Mapping[str, Value] | None = None) -> None:
        """Stop it, and start it again with the same data and ports, and with these `settings` too; None takes one
        away."""
        self.stop()
        self._settings.update(settings or {})
        self.start()

    @property
    def _broker(self) -> "BrokerThread":
        if self._thread is None:
            raise RuntimeError("the broker is stopped")
        return self._thread

    @property
    def _admin_address(self) -> str:
        address = self._broker.metrics_address
        if address is None:
            raise LookupError("the broker answers no metrics: lc.metrics.enable is false")
        return address

    def _keep_ports(self, settings: Mapping[str, Value]) -> None:
        """So that clients find it after a restart."""
        bound = dict(self.listeners)
        listeners: list[str] = []
        for listener in str(self._settings["listeners"]).split(","):
            name, _, address = listener.strip().partition("://")
            host, _, port = address.rpartition(":")
            if port == "0" and name in bound:
                port = bound[name].rpartition(":")[2]
            listeners.append(f"{name}://{host}:{port}")
        self._settings["listeners"] = ",".join(listeners)
        for prefix, address in bound.items():
            if str(settings.get(f"{prefix}.port")) == "0":
                self._settings[f"{prefix}.port"] = address.rpartition(":")[2]
        if str(self._settings["lc.metrics.port"]) == "0" and self._broker.metrics_address is not None:
            self._settings["lc.metrics.port"] = self.admin_port


@contextmanager
def running_broker(
    data_dir: Path,
    settings: Mapping[str, Value] | None = None,
    plugins: Sequence[ModuleType | str] = (),
) -> Generator[RunningBroker]:
    """A broker for as long as the context lasts, for tests without pytest: what the fixture gives.

    `settings` by the names of `server.properties`, over `DEFAULTS`. `plugins` are those that run in it: modules, which
    need not be installed, or names of installed ones. Of the installed plugins that are on by default no other runs,
    but for those that `settings` has a setting of; with `lc.plugins.disabled` in `settings` all run but those. The
    listeners of plugins take free ports where `settings` gives none.
    """
    broker = RunningBroker(data_dir, settings, plugins)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


async def _first_records(
    broker: "Broker", topic: str, count: int, found: list[StoredRecord], committed: bool
) -> None:
    """Into `found`, as they come."""
    import trio

    changed = trio.Event()
    positions: dict[TopicPartition, int] = {}

    def on_change(name: str) -> None:
        if name == topic:
            changed.set()

    unsubscribe = broker.topics.on_change(on_change)
    try:
        while len(found) < count:
            changed = trio.Event()
            known = [TopicPartition(topic, number) for number in range(broker.topics.partition_count(topic))]
            new = {partition: EARLIEST for partition in known if partition not in positions}
            positions.update(await broker.offsets(new) if new else {})
            if not positions:
                await changed.wait()
                continue
            fetched = await broker.fetch(
                positions, max_records=count - len(found), wait_s=1.0, committed=committed
            )
            found += fetched.records
            positions = fetched.positions
    finally:
        unsubscribe()


async def _all_records(broker: "Broker", topic: str, committed: bool) -> list[StoredRecord]:
    partitions = [TopicPartition(topic, number) for number in range(broker.topics.partition_count(topic))]
    positions = await broker.offsets(dict.fromkeys(partitions, EARLIEST))
    found: list[StoredRecord] = []
    while True:
        fetched = await broker.fetch(positions, committed=committed)
        if not fetched.records and fetched.positions == positions:
            return found
        found += fetched.records
        positions = fetched.positions


def _in_trio() -> bool:
    """Whether a trio task is what calls."""
    if "trio" not in sys.modules:
        return False
    from trio.lowlevel import current_task

    try:
        current_task()
    except RuntimeError:
        return False
    return True


def text_of(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
