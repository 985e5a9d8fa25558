"""Real clients read what plugins produce, and the other way round."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr_sdk import Broker, Produced, Record, StoredRecord, TopicPartition
from leafcuttr_sdk.records import Headers
from plugins.facade.conftest import PLUGIN
from support.live_broker import LiveBroker, live_broker

PARTITIONS = 7


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("live")) as live:
        yield live


@pytest.fixture(scope="module")
def view(live: LiveBroker) -> Broker:
    return live.call(make_broker_view, live.broker, PLUGIN)


async def _everything(view: Broker, topic: str) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    positions = {TopicPartition(topic, number): 0 for number in range(view.topics.partition_count(topic))}
    while (fetched := await view.fetch(positions)).records:
        found += fetched.records
        positions = fetched.positions
    return found


def test_librdkafka_reads_what_a_plugin_produced(live: LiveBroker, view: Broker) -> None:
    from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_CREATE_TIME, Consumer
    from confluent_kafka import TopicPartition as Place

    records = [
        Record(None if n % 10 == 3 else b"%d" % n, b"k%d" % n, (("n", b"%d" % n), ("none", None)), 1000 + n)
        for n in range(500)
    ]
    live.run(view.topics.create, "out")
    answers = live.run(view.produce_batch, "out", records)
    consumer = Consumer({"bootstrap.servers": live.address, "group.id": "g", "check.crcs": True})
    consumer.assign([Place("out", 0, OFFSET_BEGINNING)])
    messages = []
    while len(messages) < 500:
        message = consumer.poll(30)
        assert message is not None and not message.error(), message
        messages.append(message)
    consumer.close()
    for record, answer, message in zip(records, answers, messages, strict=True):
        assert answer == Produced("out", 0, message.offset(), record.timestamp)
        assert (message.key(), message.value()) == (record.key, record.value)
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, record.timestamp)
        assert tuple(message.headers()) == record.headers


def test_kafka_python_reads_what_a_producer_sent(live: LiveBroker, view: Broker) -> None:
    """Topics that exist and one that is created, keys and headers, refused records among them."""
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Place

    records = [
        Record(b"%d" % n, b"k%d" % (n % 9), (("n", b"%d" % n), ("u", b"\xff")), 1000 + n) for n in range(900)
    ]

    async def send() -> list[Produced]:
        await view.topics.create("sent", partitions=PARTITIONS)
        async with view.producer() as producer:
            receipts = []
            for number, record in enumerate(records):
                receipts.append(producer.send("sent" if number % 3 else "sent-too", record))
                if not number % 100:
                    producer.send("sent", record, partition=PARTITIONS)
                    await receipts[-1]
            return [await receipt for receipt in receipts]

    answers = live.run(send)
    consumer = KafkaConsumer(bootstrap_servers=live.address, check_crcs=True, consumer_timeout_ms=60_000)
    places = [Place("sent", number) for number in range(PARTITIONS)] + [Place("sent-too", 0)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    found = {}
    for message in consumer:
        found[message.topic, message.partition, message.offset] = message
        if len(found) == len(records):
            break
    assert sum(consumer.end_offsets(places).values()) == len(records) == len(found)
    consumer.close()
    for record, answer in zip(records, answers, strict=True):
        message = found[answer.topic, answer.partition, answer.offset]
        assert (message.key, message.value, message.timestamp) == (record.key, record.value, record.timestamp)
        assert tuple(message.headers) == record.headers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_plugin_reads_what_librdkafka_produced(live: LiveBroker, view: Broker, codec: str) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": live.address,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 20,
            "partitioner": "murmur2_random",
        }
    )
    topic = f"in-{codec}"
    live.run(view.topics.create, topic)
    live.run(view.topics.add_partitions, topic, PARTITIONS)
    keys = [b"%d" % n for n in range(300)] + [b"", b"k" * 1000]
    for key in keys:
        producer.produce(topic, b"value of " + key, key, headers=[("h", b"1")], timestamp=77)
    assert producer.flush(60) == 0
    stored = {record.key: record for record in live.run(_everything, view, topic)}
    assert set(stored) == set(keys)
    for key, record in stored.items():
        assert (record.value, record.headers, record.timestamp) == (
            b"value of " + (key or b""),
            (("h", b"1"),),
            77,
        )
    # A plugin's record with the same key lands beside it: librdkafka's murmur2 is Java's.
    answers = live.run(view.produce_batch, topic, [Record(b"again", key) for key in keys if key])
    for key, answer in zip([key for key in keys if key], answers, strict=True):
        assert isinstance(answer, Produced) and answer.partition == stored[key].partition


@pytest.mark.one_in(2)
@pytest.mark.parametrize("alike", ["equal", "of equal sizes", "of equal names", "of all kinds"])
def test_headers_are_those_that_clients_wrote_and_read(live: LiveBroker, view: Broker, alike: str) -> None:
    """librdkafka and kafka-python, and a plugin in fetches and in polls."""
    from confluent_kafka import Producer
    from kafka import KafkaConsumer
    from kafka.structs import TopicPartition as Place

    def headers_of(n: int) -> Headers:
        match alike:
            case "equal":
                return (("source", b"north"), ("unit", b"C"), ("trace", b"0" * 70))
            case "of equal sizes":
                return (("source", b"%05d" % n), ("unit", b"%d" % (n % 10)), ("trace", b"%070d" % n))
            case "of equal names":
                return (("source", b"s" * (n % 70)), ("unit", b"u" * (n % 11)), ("trace", b"%x" % n**9))
            case _:
                some = (("é", b"%d" % n), ("none", None), ("empty", b""), ("long", bytes(n * 3)))
                return some[n % 5 :] + some[: n % 3]

    topic = "headers-" + alike.replace(" ", "-")
    live.run(view.topics.create, topic)
    producer = Producer({"bootstrap.servers": live.address, "linger.ms": 5, "batch.num.messages": 70})
    due = [(b"k%d" % (n % 13), b"v" * (n % 7), headers_of(n)) for n in range(1000)]
    for key, value, headers in due:
        producer.produce(topic, value, key, headers=list(headers), timestamp=77)
    assert producer.flush(60) == 0

    theirs = KafkaConsumer(bootstrap_servers=live.address, auto_offset_reset="earliest")
    theirs.assign([Place(topic, 0)])
    read = list[Any]()
    while len(read) < len(due) and (found := theirs.poll(timeout_ms=30_000)):
        read += found[Place(topic, 0)]
    theirs.close()
    assert [(one.key, one.value, tuple(one.headers)) for one in read] == due

    async def polled() -> list[StoredRecord]:
        found: list[StoredRecord] = []
        async with view.consumer("g-" + topic, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            while some := await consumer.poll(wait_s=0, max_records=300):
                found += some
        return found

    fetched = live.run(_everything, view, topic)
    assert [(one.key, one.value, one.headers) for one in fetched] == due
    assert live.run(_everything, view, topic) == live.run(polled) == fetched


def test_clients_cannot_write_to_a_plugins_own_topic(live: LiveBroker, view: Broker) -> None:
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka.admin import AdminClient

    async def create() -> None:
        await view.topics.create("own", internal=True)
        await view.produce("own", b"mine")

    live.run(create)
    failures = []
    producer = Producer({"bootstrap.servers": live.address, "message.timeout.ms": 30_000})
    producer.produce("own", b"theirs", on_delivery=lambda error, _: failures.append(error))
    producer.flush(60)
    assert [error.code() for error in failures] == [KafkaError.TOPIC_EXCEPTION]
    described = AdminClient({"bootstrap.servers": live.address}).describe_topics
    from confluent_kafka import TopicCollection

    (future,) = described(TopicCollection(["own"])).values()
    assert future.result(30).is_internal
    assert [record.value for record in live.run(_everything, view, "own")] == [b"mine"]


def test_clients_get_the_error_of_rights_where_a_topic_belongs_to_a_plugin(
    live: LiveBroker, view: Broker
) -> None:
    import asyncio

    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import TopicAuthorizationFailedError
    from confluent_kafka import KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewPartitions

    async def create() -> None:
        await view.topics.create("owned", internal=True, owned=True)
        await view.topics.create("free", internal=False)
        await view.produce("owned", b"mine")

    live.run(create)
    answers = {}
    producer = Producer({"bootstrap.servers": live.address, "message.timeout.ms": 30_000})
    for topic in ("owned", "free"):
        producer.produce(
            topic,
            b"theirs",
            timestamp=77,
            on_delivery=lambda error, message: answers.update({message.topic(): error}),
        )
    producer.flush(60)
    assert answers["owned"].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED and answers["free"] is None
    transactional = Producer({"bootstrap.servers": live.address, "transactional.id": "a client's"})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce("owned", b"theirs")
    with pytest.raises(KafkaException) as raised:
        transactional.commit_transaction(30)
    assert raised.value.args[0].txn_requires_abort()

    async def from_asyncio() -> None:
        async with AIOKafkaProducer(bootstrap_servers=live.address) as producer:
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.send_and_wait("owned", b"theirs")

    asyncio.run(from_asyncio())
    assert [record.value for record in live.run(_everything, view, "owned")] == [b"mine"]
    # What is not writing is for every client, as with other topics: the plugin may be gone.
    admin = AdminClient({"bootstrap.servers": live.address})
    (future,) = admin.create_partitions([NewPartitions("owned", 2)]).values()
    future.result(30)
    (future,) = admin.delete_topics(["owned"]).values()
    future.result(30)
    assert live.call(view.topics.get, "owned") is None


def test_nothing_but_the_facade_is_imported(tmp_path: Path) -> None:
    """It comes with every start that has a plugin: no client library, no web framework."""
    import subprocess
    import sys

    program = "import sys, leafcuttr.plugins.facade.view; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"confluent_kafka", "click", "rich", "asyncio", "prometheus_client", "pluggy"} & set(out)
