"""A plugin whose validator and filter wait for its service: real clients try again by themselves and get through."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leafcuttr_sdk import ErrorCode, NotReadyError, Produced, Record
from leafcuttr_sdk.testing import RunningBroker, running_broker
from support import librdkafka
from support.logs import NOW
from support.waiting import until
from support.wire_client import WireClient

SOURCE = """
from weakref import WeakKeyDictionary

import trio

from leafcuttr_sdk import NotReady, Plugin, ProduceValidatorSpec, RecordFilterSpec, ServiceSpec

PLUGIN = Plugin(name="schemas", api_version=1, summary="Waits for schemas.")
SERVICES, THREADS = WeakKeyDictionary(), set()


def leafcuttr_register_services():
    yield ServiceSpec("schemas", Schemas)


def leafcuttr_register_record_filters():
    yield RecordFilterSpec("schemas", "waits for schemas", Part)


def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("schemas", "waits for schemas", Part)


class Schemas:
    def __init__(self, broker):
        self.waits_for = "the schemas of 2 topics"
        self.refused = 0
        SERVICES[broker] = self

    async def run(self, *, task_status=trio.TASK_STATUS_IGNORED):
        task_status.started()
        await trio.sleep_forever()


class Part:
    def __init__(self, context):
        self.service = SERVICES[context.broker]
        self.counter = context.broker.metrics.counter("leafcuttr_schemas_asked_total", "Asked.", "of")
        self.of = str(context.broker.topics.partition_count(context.topic))

    def judged(self, record, otherwise):
        self.counter.add(1, self.of)
        if self.service.waits_for:
            self.service.refused += 1
            return NotReady(self.service.waits_for)
        return otherwise

    def filter(self, record):
        return self.judged(record, record)

    def validate(self, record):
        return self.judged(record, None)
"""

Broker = tuple[RunningBroker, ModuleType]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Broker]:
    module = ModuleType("schemas")
    exec(SOURCE, vars(module))
    with running_broker(tmp_path, plugins=[module]) as broker:
        broker.create_topic("f", configs={"lc.filters": "schemas"})
        broker.create_topic("v", configs={"lc.validators": "schemas"})
        yield broker, module


def service(module: ModuleType) -> Any:
    (found,) = module.SERVICES.values()
    return found


def health(broker: RunningBroker) -> tuple[str, dict[str, str]]:
    """The status, and of each check that is not fine what it found."""
    with urllib.request.urlopen(f"{broker.admin_url}/health", timeout=60) as response:
        found = json.loads(response.read())
    return found["status"], {n: c["detail"] for n, c in found["checks"].items() if not c["ok"]}


def once_refused(module: ModuleType, times: int, then: Callable[[], None]) -> threading.Thread:
    """Have it ready once it has refused so many batches at least."""

    def wait() -> None:
        until(lambda: service(module).refused >= times, "the client to try again")
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def get_ready(module: ModuleType) -> None:
    service(module).waits_for = None


def values(broker: RunningBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.consume(topic)]


@pytest.mark.parametrize("topic", ["f", "v"])
def test_the_answer_and_what_health_says(running: Broker, topic: str) -> None:
    broker, module = running
    kind = "record filter" if topic == "f" else "produce validator"
    with WireClient(broker.bootstrap_servers) as wire:
        from leafcuttr.wire.records import Record as Stored
        from leafcuttr.wire.records import encode_batch

        batch = encode_batch([Stored(0, NOW, b"k", b"v")])
        assert health(broker) == ("degraded", {"service:schemas": "it waits for the schemas of 2 topics"})
        answer = wire.produce(topic, batch)
        assert ErrorCode(answer.error_code) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert answer.error_message == (
            f"The {kind} schemas of topic {topic} is not ready: it waits for the schemas of 2 topics"
        )
        assert answer.base_offset == -1
        assert health(broker)[1]["filters"] == (
            f"not ready: {kind} schemas of topic {topic} of plugin schemas waits for the schemas of 2 topics"
        )
        get_ready(module)
        assert wire.produce(topic, batch).base_offset == 0
    assert health(broker) == ("ok", {})
    with urllib.request.urlopen(f"{broker.admin_url}/metrics", timeout=60) as response:
        metrics = response.read().decode()
    labels = 'filter="schemas",topic="f"' if topic == "f" else 'topic="v",validator="schemas"'
    assert f"leafcuttr_{kind.split()[1]}_not_ready_total{{{labels}}} 1" in metrics
    assert 'leafcuttr_schemas_asked_total{of="0"} 2' in metrics  # it was made before the topic was there


@pytest.mark.parametrize("topic", ["f", "v"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_librdkafka_gets_through(running: Broker, topic: str, idempotent: bool) -> None:
    broker, module = running
    sent = [b"%d" % n for n in range(40)]
    waiting = once_refused(module, 5, lambda: get_ready(module))
    offsets = librdkafka.send(
        broker.bootstrap_servers,
        topic,
        sent,
        timestamp=NOW,
        enable_idempotence=idempotent,
        max_in_flight=5,
        batch_num_messages=4,  # several batches, of which the later ones come while the first is refused
        retry_backoff_ms=20,
        retry_backoff_max_ms=50,
    )
    waiting.join()
    assert sorted(offsets) == list(range(40))  # type: ignore[type-var]
    if idempotent:
        assert offsets == list(range(40))
        assert values(broker, topic) == sent
    else:
        assert sorted(values(broker, topic), key=lambda v: int(v or b"")) == sent


@pytest.mark.one_in(2)
@pytest.mark.parametrize("topic", ["f", "v"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_kafka_python_gets_through(running: Broker, topic: str, idempotent: bool) -> None:
    kafka = pytest.importorskip("kafka")
    broker, module = running
    waiting = once_refused(module, 3, lambda: get_ready(module))
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        enable_idempotence=idempotent,
        acks="all",
        retries=1000,
        retry_backoff_ms=20,
        batch_size=300,
        max_in_flight_requests_per_connection=1 if not idempotent else 5,
    )
    sent = [b"%d" % n for n in range(40)]
    futures = [producer.send(topic, value, partition=0) for value in sent]
    offsets = [future.get(60).offset for future in futures]
    producer.close()
    waiting.join()
    assert offsets == list(range(40))
    assert values(broker, topic) == sent


@pytest.mark.parametrize("idempotent", [False, True])
def test_aiokafka_gets_through(running: Broker, idempotent: bool) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    broker, module = running
    waiting = once_refused(module, 3, lambda: get_ready(module))

    async def produce() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, enable_idempotence=idempotent, retry_backoff_ms=20
        )
        await producer.start()
        try:
            sent = [await producer.send("v", b"%d" % n, partition=0) for n in range(20)]
            return [(await one).offset for one in sent]
        finally:
            await producer.stop()

    assert asyncio.run(produce()) == list(range(20))
    waiting.join()
    assert values(broker, "v") == [b"%d" % n for n in range(20)]


def test_a_transaction_goes_on(running: Broker) -> None:
    from confluent_kafka import Producer

    broker, module = running
    waiting = once_refused(module, 3, lambda: get_ready(module))
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "x",
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 50,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for n in range(10):
        producer.produce("v", b"%d" % n)
    producer.commit_transaction(60)
    waiting.join()
    assert [r.value for r in broker.consume("v", committed=True)] == [b"%d" % n for n in range(10)]


def test_metadata_is_not_asked_for_in_between(running: Broker) -> None:
    """Of KAFKA_STORAGE_ERROR, for example, librdkafka and Java's client ask for metadata each time."""
    broker, module = running

    def asked() -> int:
        with urllib.request.urlopen(f"{broker.admin_url}/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        name = 'kafka_network_requestmetrics_requests_total{request="Metadata"}'
        found = [line for line in lines if line.startswith(name)]
        assert found, [line for line in lines if "etadata" in line]
        return sum(int(float(line.rpartition(" ")[2])) for line in found)

    before: list[int] = []
    after: list[int] = []

    def ready() -> None:
        after.append(asked())
        get_ready(module)

    def warm() -> None:
        before.append(asked())

    first = once_refused(module, 1, warm)
    second = once_refused(module, 12, ready)
    offsets = librdkafka.send(
        broker.bootstrap_servers, "v", [b"0"], timestamp=NOW, retry_backoff_ms=20, retry_backoff_max_ms=50
    )
    first.join()
    second.join()
    assert offsets == [0]
    assert after[0] - before[0] <= 1


def test_producers_in_the_process(running: Broker) -> None:
    broker, module = running
    with pytest.raises(NotReadyError, match="it waits for the schemas of 2 topics") as caught:
        broker.produce("v", b"v")
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    answers = broker.call(lambda inside: inside.produce_batch("f", [Record(b"1"), Record(b"2")]))
    assert [type(answer) for answer in answers] == [NotReadyError] * 2
    get_ready(module)
    answers = broker.call(lambda inside: inside.produce_batch("f", [Record(b"1"), Record(b"2")]))
    assert [answer.offset for answer in answers if isinstance(answer, Produced)] == [0, 1]


def test_over_http(tmp_path: Path) -> None:
    pytest.importorskip("quart_trio")
    module = ModuleType("schemas")
    exec(SOURCE, vars(module))
    settings = {"lc.http.proxy.enable": True, "lc.http.proxy.port": 0}
    with running_broker(tmp_path, settings, [module]) as broker:
        broker.create_topic("v", configs={"lc.validators": "schemas"})
        (address,) = [where for name, where in broker.listeners.items() if "http" in name]

        def post() -> dict[str, Any]:
            body = b'{"records": [{"value": "x"}]}'
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://{address}/topics/v", body, headers)
            with urllib.request.urlopen(request, timeout=60) as response:
                (answer,) = json.loads(response.read())["offsets"]
            return dict(answer)

        refused = post()
        assert refused["error_code"] == 50003
        assert refused["error"].startswith(
            "NOT_ENOUGH_REPLICAS: The produce validator schemas of topic v is not ready"
        )
        get_ready(module)
        assert post()["offset"] == 0


@pytest.mark.parametrize(
    ("waits_for", "shown"),
    [
        ("the schemas", "it waits for the schemas"),
        ("one\ntwo", "it waits for one"),
        (3, "it waits for what its waits_for says, which is an int and no text"),
    ],
)
def test_a_service_says_what_it_waits_for(running: Broker, waits_for: Any, shown: str) -> None:
    broker, module = running
    service(module).waits_for = waits_for
    assert health(broker) == ("degraded", {"service:schemas": shown})
    for nothing in (None, ""):
        service(module).waits_for = nothing
        assert health(broker) == ("ok", {})


def test_what_it_waits_for_may_be_a_property_that_fails(running: Broker) -> None:
    broker, module = running

    def fails(_: object) -> str:
        raise LookupError("no table")

    del service(module).waits_for
    assert health(broker) == ("ok", {})  # it need not have it
    type(service(module)).waits_for = property(fails)
    try:
        ((name, detail),) = health(broker)[1].items()
    finally:
        del type(service(module)).waits_for
    assert name == "service:schemas"
    assert detail == "it waits for what its waits_for says, which failed: LookupError: no table"
