"""`leafcuttr demo`: the whole product in ten seconds, checked with librdkafka.

A broker in a temporary directory, a topic, 200,000 records cut from a text that ships with Python, sent through
librdkafka and read back by a consumer group; every byte is compared. Exit status 0 only if all is equal.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

_RECORDS = 200_000
_PARTITIONS = 3
_TOPIC = "demo"
_PATIENCE_S = 30.0


@click.command()
@click.option(
    "--records", default=_RECORDS, show_default=True, type=click.IntRange(1), help="How many to send."
)
@click.option("--keep", is_flag=True, help="Leave the broker serving until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def command(records: int, keep: bool, as_json: bool) -> None:
    """Start a broker, send records through it, read them back and compare every byte.

    \b
    Examples:
      leafcuttr demo
      leafcuttr demo --keep

    Exit status: 0 only if every byte that came back is the one that was sent, else 1; 2 wrong usage.
    """
    say = (lambda _: None) if as_json else click.echo
    with tempfile.TemporaryDirectory(prefix="leafcuttr-demo-") as folder, _broker(Path(folder)) as broker:
        say(f"broker     started, process {broker.pid}, {broker.address}, data in {folder}")
        figures = _run(broker, records, say)
        if as_json:
            click.echo(json.dumps(figures | ({"address": broker.address} if keep else {})))
        else:
            click.echo(_summary(figures))
            click.echo(_how_to_go_on(broker.address if keep else "localhost:9092", keep))
        if keep:
            _wait(broker)
        if not figures["equal"]:
            sys.exit(1)


@dataclass(frozen=True)
class _Broker:
    process: subprocess.Popen[bytes]
    address: str
    began: float

    @property
    def pid(self) -> int:
        return self.process.pid

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def _broker(folder: Path) -> Iterator[_Broker]:
    ready = folder / "ready.json"
    options = [
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"log.dirs={folder / 'data'}",
        "lc.metrics.enable=false",
        "group.initial.rebalance.delay.ms=0",  # there is one member only
    ]
    # The demo's broker is a plain one, whatever this shell's KAFKA_ variables say.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "leafcuttr", "serve", "--ready-file", str(ready)]
        + [word for option in options for word in ("-o", option)],
        stdout=subprocess.DEVNULL,
        env=environ,
    )
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise click.ClickException(f"the broker ended with status {process.returncode}")
            if time.monotonic() - began > _PATIENCE_S:
                raise click.ClickException(f"the broker is not ready after {_PATIENCE_S:.0f} s")
            time.sleep(0.002)
        address = next(iter(json.loads(ready.read_text())["listeners"].values()))
        yield _Broker(process, address, began)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def _records(count: int) -> Iterator[bytes]:
    """Cut `count` pieces of 60 to 140 bytes from Python's own help texts, over and over."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics)).encode()
    at = 0
    for number in range(count):
        size = 60 + number * 7919 % 81
        piece = text[at : at + size]
        at = (at + size) % (len(text) - 140)
        yield b"%d %s" % (number, piece)


def _run(broker: _Broker, count: int, say: Any) -> dict[str, Any]:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result(_PATIENCE_S)
    say(f"topic      {_TOPIC!r} created, {_PARTITIONS} partitions")

    failed: list[str] = []
    producer = Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 5, "queue.buffering.max.messages": 500_000}
    )

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(str(error))

    producer.produce(_TOPIC, b"first", partition=0, on_delivery=delivered)
    producer.flush(_PATIENCE_S)
    first_ack_ms = (time.monotonic() - broker.began) * 1000
    values = list(_records(count))
    size = sum(map(len, values))
    began = time.monotonic()
    for number, value in enumerate(values):
        producer.produce(_TOPIC, value, partition=number % _PARTITIONS, on_delivery=delivered)
        if not number % 1000:
            producer.poll(0)
    left = producer.flush(_PATIENCE_S)
    sent_s = time.monotonic() - began
    say(f"sent       {count:,} records, {size / 1e6:.1f} MB, {left + len(failed)} not acknowledged")

    began = time.monotonic()
    equal, received = _read_back(broker.address, values)
    read_s = time.monotonic() - began
    say(
        f"read back  {received:,} records by a consumer group, "
        + ("every byte equal" if equal else "NOT equal")
    )
    return {
        "records": count,
        "bytes": size,
        "equal": equal and not failed and not left,
        "first_ack_ms": round(first_ack_ms, 1),
        "produce_records_per_s": round(count / sent_s),
        "produce_mb_per_s": round(size / sent_s / 1e6, 1),
        "consume_records_per_s": round(count / read_s),
        "consume_mb_per_s": round(size / read_s / 1e6, 1),
        "resident_mb": round(broker.resident_mb(), 1),
    }


def _read_back(address: str, values: list[bytes]) -> tuple[bool, int]:
    """Read until every record has come or nothing comes any more; whether all were equal, and how many."""
    from confluent_kafka import Consumer

    consumer: Any = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "demo",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([_TOPIC])
    expected = [values[partition::_PARTITIONS] for partition in range(_PARTITIONS)]
    expected[0] = [b"first", *expected[0]]
    total, received, equal = len(values) + 1, 0, True
    until = time.monotonic() + _PATIENCE_S
    while received < total and time.monotonic() < until:
        for message in consumer.consume(10_000, 0.5):
            if message.error():
                raise click.ClickException(str(message.error()))
            partition, offset = message.partition(), message.offset()
            wanted = expected[partition]
            equal = equal and offset < len(wanted) and wanted[offset] == message.value()
            received += 1
    consumer.commit(asynchronous=False)
    consumer.close()
    return equal and received == total, received - 1


def _summary(figures: dict[str, Any]) -> str:
    return (
        f"measured   {figures['produce_records_per_s']:,} records/s ({figures['produce_mb_per_s']} MB/s) in, "
        f"{figures['consume_records_per_s']:,} records/s ({figures['consume_mb_per_s']} MB/s) out, from Python\n"
        f"           {figures['first_ack_ms']:.0f} ms from start to the first acknowledgement, "
        f"{figures['resident_mb']} MB resident"
    )


def _how_to_go_on(address: str, keep: bool) -> str:
    start = "" if keep else "  leafcuttr serve                                  # the broker, for good\n"
    return (
        f"go on\n{start}"
        f"  echo hello | kcat -P -b {address} -t greetings\n"
        f"  kcat -C -b {address} -t greetings -e\n"
        f"  python -c \"from confluent_kafka import Producer; p = Producer({{'bootstrap.servers': '{address}'}}); "
        "p.produce('greetings', 'hello'); p.flush()\""
    )


def _wait(broker: _Broker) -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, ended)
    click.echo(f"serving on {broker.address} until Ctrl-C")
    with contextlib.suppress(KeyboardInterrupt):
        broker.process.wait()
