"""A broker inside another program: in a trio loop, in a thread of its own, twice, and what it leaves alone."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, Producer

import leafcuttr
from leafcuttr.errors import ConfigError, StartError
from leafcuttr_sdk import Broker, BrokerError, TopicPartition
from support.broker_process import clean_environ


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {
        "listeners": "PLAINTEXT://localhost:0",
        "log.dirs": str(tmp_path / "data"),
        "lc.metrics.port": 0,
        "group.initial.rebalance.delay.ms": 0,
    }


def produce(servers: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def consume(servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            found.append(message.value())
    consumer.close()
    return found


async def test_in_a_trio_program(settings: dict[str, Any]) -> None:
    async with leafcuttr.open_broker(settings) as broker:
        whole: Broker = broker  # as the type checker sees it
        await whole.topics.create("greetings")
        await trio.to_thread.run_sync(produce, broker.bootstrap_servers, "greetings", b"from a client")
        await broker.produce("greetings", b"from the program")
        fetched = await broker.fetch({TopicPartition("greetings", 0): 0}, wait_s=30)
        assert [record.value for record in fetched.records] == [b"from a client", b"from the program"]
        found = await trio.to_thread.run_sync(consume, broker.bootstrap_servers, "greetings", 2)
        assert found == [b"from a client", b"from the program"]
        assert broker.listeners == {"PLAINTEXT": broker.bootstrap_servers}
        assert broker.metrics_address is not None
        assert broker.data_directory == Path(settings["log.dirs"])
    # Closed as it should be, so that the next start has nothing to recover.
    assert (Path(settings["log.dirs"]) / ".kafka_cleanshutdown").exists()


async def test_what_the_program_raises_is_not_wrapped(settings: dict[str, Any]) -> None:
    class OwnError(Exception):
        pass

    with pytest.raises(OwnError):
        async with leafcuttr.open_broker(settings):
            raise OwnError
    with trio.CancelScope() as scope:
        async with leafcuttr.open_broker(settings):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_two_in_one_program(settings: dict[str, Any], tmp_path: Path) -> None:
    async with (
        leafcuttr.open_broker(settings) as one,
        leafcuttr.open_broker({**settings, "log.dirs": str(tmp_path / "other")}) as other,
    ):
        await one.topics.create("here")
        assert (one.topics.names(), other.topics.names()) == (["here"], [])
        assert one.bootstrap_servers != other.bootstrap_servers
        with pytest.raises(StartError, match="is in use"):
            async with leafcuttr.open_broker(settings):
                raise AssertionError


async def test_what_is_wrong_is_one_line(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^num\.partitions=many \(settings\): "):
        async with leafcuttr.open_broker({**settings, "num.partitions": "many"}):
            raise AssertionError
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = {**settings, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        with pytest.raises(StartError, match=rf"port {port}"):
            async with leafcuttr.open_broker(given):
                raise AssertionError
        with pytest.raises(StartError, match=rf"port {port}"), leafcuttr.run_broker(given):
            raise AssertionError


def test_in_a_thread_of_its_own(settings: dict[str, Any]) -> None:
    async def create(broker: Broker, name: str) -> str:
        return (await broker.topics.create(name)).name

    async def refuse(_: Broker) -> None:
        raise LookupError("no")

    with leafcuttr.run_broker(settings) as broker:
        assert broker.call(create, "plain") == "plain"
        produce(broker.bootstrap_servers, "plain", b"x")
        assert consume(broker.bootstrap_servers, "plain", 1) == [b"x"]
        with pytest.raises(LookupError, match="no"):
            broker.call(refuse)
        with pytest.raises(BrokerError):
            broker.call(create, "plain")
        assert set(broker.listeners) == {"PLAINTEXT"}
    assert not [thread for thread in threading.enumerate() if thread.name == "leafcuttr-broker"]
    with pytest.raises(trio.RunFinishedError):
        broker.call(create, "late")


def test_beside_asyncio(settings: dict[str, Any]) -> None:
    async def program() -> list[str]:
        async def names(broker: Broker) -> list[str]:
            await broker.topics.create("loops")
            return broker.topics.names()

        with leafcuttr.run_broker(settings) as broker:
            return await asyncio.to_thread(broker.call, names)

    assert asyncio.run(program()) == ["loops"]


def test_an_error_of_the_program_stops_the_broker_and_stays_itself(settings: dict[str, Any]) -> None:
    with pytest.raises(ZeroDivisionError), leafcuttr.run_broker(settings) as broker:
        raise ZeroDivisionError
    with pytest.raises(OSError):
        socket.create_connection(("localhost", int(broker.bootstrap_servers.rpartition(":")[2])), 1)


def test_what_is_the_processs_is_left_alone(settings: dict[str, Any]) -> None:
    def state() -> object:
        logger = logging.getLogger("leafcuttr")
        return (
            [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)],
            (gc.get_threshold(), gc.get_freeze_count(), sys.getswitchinterval()),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            (list(logger.handlers), logger.level, logger.propagate),
        )

    before = state()
    with leafcuttr.run_broker(settings):
        assert state() == before
    assert state() == before


def test_a_service_that_does_not_end_keeps_its_thread_and_not_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "mule.py").write_text(
        textwrap.dedent("""
            import trio
            from leafcuttr_sdk import Plugin, ServiceSpec

            PLUGIN = Plugin("mule", 1, "Stays.")

            class Mule:
                async def run(self, *, task_status):
                    task_status.started()
                    with trio.CancelScope(shield=True):
                        await trio.sleep_forever()

            def leafcuttr_register_services():
                return [ServiceSpec("mule", lambda broker: Mule())]
        """)
    )
    program = textwrap.dedent(f"""
        import leafcuttr
        settings = {{
            "listeners": "PLAINTEXT://localhost:0",
            "log.dirs": {str(tmp_path / "data")!r},
            "lc.metrics.enable": False,
        }}
        with leafcuttr.run_broker({{**settings, "lc.plugins.path": {str(folder)!r}}}):
            pass
        with leafcuttr.run_broker(settings):
            print("again")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("again\n", 0)
    assert (
        done.stderr
        == "the service mule of plugin mule has not ended 5 s after it was told to: it is left behind\n"
    )


def test_importing_the_package_does_no_work_and_plugins_run_in_it_too(tmp_path: Path) -> None:
    """In a process of its own, with a plugin in a folder: its service runs, and the variables of the environment, which
    are for `leafcuttr serve`, count nothing."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "hello.py").write_text(
        textwrap.dedent("""
            import trio
            from leafcuttr_sdk import Plugin, ServiceSpec

            PLUGIN = Plugin("hello", 1, "Says hello.")

            class Hello:
                def __init__(self, broker):
                    self.broker = broker

                async def run(self, *, task_status):
                    await self.broker.topics.create("hello")
                    task_status.started()
                    await trio.sleep_forever()

            def leafcuttr_register_services():
                return [ServiceSpec("hello", Hello)]
        """)
    )
    program = textwrap.dedent(f"""
        import sys
        import leafcuttr
        assert "trio" not in sys.modules
        with leafcuttr.run_broker({{
            "listeners": "PLAINTEXT://localhost:0",
            "log.dirs": {str(tmp_path / "data")!r},
            "lc.metrics.enable": False,
            "lc.plugins.path": {str(folder)!r},
        }}) as broker:
            async def names(view):
                return view.topics.names()
            print(broker.call(names))
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean_environ({"KAFKA_NUM_PARTITIONS": "many"}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("['hello']\n", "", 0)


@pytest.mark.long
def test_a_start_is_quick(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Once the modules are imported, on an empty directory, and again on one that was closed."""
    times: list[float] = []
    for number in range(10):
        given = {**settings, "log.dirs": str(tmp_path / str(number // 2))}
        began = time.monotonic()
        with leafcuttr.run_broker(given):
            times.append(time.monotonic() - began)
    print(f"the median of ten starts: {sorted(times)[5] * 1000:.0f} ms")
    assert min(times) < 0.15
