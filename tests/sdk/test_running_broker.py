"""The broker that the fixtures give: what it does for plain, asyncio and trio tests, and that it is a real one."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import trio

from leafcuttr.errors import ConfigError
from leafcuttr_sdk import Broker, Plugin, Record, RecordFilterSpec, Setting, Type
from leafcuttr_sdk.errors import TopicAlreadyExists, UnknownTopicOrPartition
from leafcuttr_sdk.testing import RunningBroker, running_broker
from support import librdkafka


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("shared")) as broker:
        yield broker


def test_real_clients_talk_to_it(shared: RunningBroker) -> None:
    shared.create_topic("real", partitions=2)
    assert librdkafka.send(shared.bootstrap_servers, "real", [b"one"], timestamp=1, partition=1) == [0]
    (record,) = shared.consume("real", 1)
    assert (record.value, record.partition, record.timestamp) == (b"one", 1, 1)
    produced = shared.produce("real", "two", "key", headers=(("h", b"1"),), partition=1)
    assert (produced.partition, produced.offset) == (1, 1)
    message = librdkafka.read(shared.bootstrap_servers, "real", 2, partition=1)[1]
    assert (message.value(), message.key(), message.headers()) == (b"two", b"key", [("h", b"1")])


def test_call_gives_the_view_with_a_producer(shared: RunningBroker) -> None:
    async def send(broker: Broker) -> list[int]:
        async with broker.producer() as producer:
            receipts = [producer.send("sent", Record(b"%d" % number)) for number in range(3)]
        return [receipt.result().offset for receipt in receipts]

    assert shared.call(send) == [0, 1, 2]
    assert [record.value for record in shared.consume("sent")] == [b"0", b"1", b"2"]


def test_it_says_where_it_is(shared: RunningBroker) -> None:
    assert shared.bootstrap_servers == f"{shared.host}:{shared.port}"
    assert shared.listeners["PLAINTEXT"] == shared.bootstrap_servers
    assert shared.host == "127.0.0.1"
    assert shared.port > 0
    assert (shared.data_dir / "meta.properties").is_file()
    with urllib.request.urlopen(f"{shared.admin_url}/health", timeout=60) as answer:
        assert json.load(answer)
    assert shared.admin_url == f"http://127.0.0.1:{shared.admin_port}"


def test_consume_gives_what_is_there_or_waits(shared: RunningBroker) -> None:
    assert shared.consume("later") == []
    waiting: list[bytes | None] = []
    reader = threading.Thread(target=lambda: waiting.extend(r.value for r in shared.consume("later", 3)))
    reader.start()
    for value in ("a", "b", "c", "d"):
        shared.produce("later", value)
    reader.join(60)
    assert waiting == [b"a", b"b", b"c"]
    assert [record.value for record in shared.consume("later")] == [b"a", b"b", b"c", b"d"]
    shared.produce("later", None, "k")
    assert shared.consume("later")[-1].value is None


def test_consume_says_what_came(shared: RunningBroker) -> None:
    shared.produce("few", "only")
    with pytest.raises(TimeoutError, match=r"1 of 2 records came to few within 2 s: .*b'only'"):
        shared.consume("few", 2, timeout_s=2)
    with pytest.raises(TimeoutError, match="0 of 1 records came to never"):
        shared.consume("never", 1, timeout_s=0.05)


def test_call_runs_on_the_brokers_loop(shared: RunningBroker) -> None:
    async def names(broker: Broker) -> tuple[list[str], str]:
        await broker.topics.create("called")
        return broker.topics.names(), threading.current_thread().name

    found, thread = shared.call(names)
    assert "called" in found
    assert thread != threading.current_thread().name
    with pytest.raises(TopicAlreadyExists):
        shared.create_topic("called")
    with pytest.raises(UnknownTopicOrPartition):
        shared.call(lambda broker: broker.topics.delete("nobody"))
    with pytest.raises(TimeoutError, match=r"not done within 0\.05 s"):
        shared.call(lambda broker: trio.sleep_forever(), timeout_s=0.05)


def test_from_asyncio(shared: RunningBroker) -> None:
    async def main() -> bytes | None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(bootstrap_servers=shared.bootstrap_servers)
        await producer.start()
        try:
            await producer.send_and_wait("asyncio", b"hello")
        finally:
            await producer.stop()
        return shared.consume("asyncio", 1)[0].value

    assert asyncio.run(main()) == b"hello"


async def test_from_trio(shared: RunningBroker) -> None:
    assert shared.produce("trio", "hello").offset == 0
    assert shared.consume("trio", 1)[0].value == b"hello"
    assert await trio.to_thread.run_sync(lambda: len(shared.consume("trio"))) == 1
    with pytest.raises(TimeoutError):
        shared.consume("trio", 2, timeout_s=0.01)


def test_restart_keeps_data_and_ports_and_takes_settings(tmp_path: Path) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0", "num.partitions": 2}
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    with running_broker(tmp_path, {**settings, **protocols}) as broker:
        broker.produce("kept", "before", partition=1)
        listeners, admin = dict(broker.listeners), broker.admin_port
        broker.restart({"num.partitions": 3})
        assert dict(broker.listeners) == listeners
        assert broker.admin_port == admin
        assert [record.value for record in broker.consume("kept", 1)] == [b"before"]
        broker.produce("new", "after")
        assert broker.call(_count("new")) == 3

        broker.stop()
        broker.stop()
        with pytest.raises(RuntimeError, match="the broker is stopped"):
            broker.produce("kept", "while it is stopped")
        broker.start()
        with pytest.raises(RuntimeError, match="the broker is running"):
            broker.start()
        assert len(broker.consume("kept")) == 1


def _count(topic: str):  # type: ignore[no-untyped-def]
    async def count(broker: Broker) -> int:
        return broker.topics.partition_count(topic)

    return count


def test_a_setting_that_is_wrong_is_told(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with (
        pytest.raises(ConfigError, match=r"num\.partitions"),
        running_broker(tmp_path, {"num.partitions": "x"}),
    ):
        pass
    assert set(threading.enumerate()) <= before


def test_a_broker_without_metrics(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"lc.metrics.enable": False}) as broker:
        with pytest.raises(LookupError, match=r"lc\.metrics\.enable is false"):
            _ = broker.admin_port
        broker.restart()


def test_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    plugin = ModuleType("shouting")

    def settings() -> Iterable[Setting]:
        yield Setting("lc.plugin.shouting.end", Type.STRING, "!", "What to add.")

    class Shout:
        def __init__(self, context) -> None:  # type: ignore[no-untyped-def]
            self.end = context.settings.text("lc.plugin.shouting.end").encode()

        def filter(self, record):  # type: ignore[no-untyped-def]
            return record._replace(value=record.value.upper() + self.end)

    vars(plugin)["PLUGIN"] = Plugin("shouting", 1, "for tests")
    vars(plugin)["leafcuttr_register_settings"] = settings
    vars(plugin)["leafcuttr_register_record_filters"] = lambda: [RecordFilterSpec("shout", "loud", Shout)]
    with running_broker(tmp_path, {"lc.plugin.shouting.end": "?"}, [plugin]) as broker:
        broker.create_topic("loud", configs={"lc.filters": "shout"})
        broker.produce("loud", "hey")
        assert [record.value for record in broker.consume("loud", 1)] == [b"HEY?"]


def test_transactions_in_it_are_those_of_a_broker(shared: RunningBroker) -> None:
    async def write(broker: Broker) -> None:
        async with broker.transaction("tested") as producer:
            async with producer.begin() as transaction:
                await transaction.produce_batch("txn", [Record(b"kept")])
            async with producer.begin() as transaction:
                await transaction.produce_batch("txn", [Record(b"aborted")])
                await transaction.abort()

    shared.call(write)
    assert [record.value for record in shared.consume("txn", committed=True)] == [b"kept"]
    assert [record.value for record in shared.consume("txn")] == [b"kept", b"aborted"]
