"""`leafcuttr perf produce`: send at the given rate, and time the acknowledgement of every record.

Latency is from the moment a record is queued to its acknowledgement, as librdkafka takes it: none is left out.
"""

import signal
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from leafcuttr.cli.common.librdkafka.client import client, fail, topics
from leafcuttr.cli.common.records.sending import TOPIC_MADE_MS
from leafcuttr.cli.common.target import TIMEOUT_S
from leafcuttr.cli.perf.figures import ClientFigures, figure_options
from leafcuttr.cli.perf.latency import Latencies
from leafcuttr.cli.perf.options import ManyWords, connection_options, settings_of
from leafcuttr.cli.perf.sources import RecordSource, source_of

_MB: Final = 1024 * 1024
_LOOK_EVERY: Final = 256
_COMMIT_MS: Final = 3000
_MOST_BYTES: Final = 1_000_000_000  # librdkafka's message.max.bytes can be no more


@click.command(cls=ManyWords, short_help="Measure how fast records are acknowledged.")
@connection_options("producer")
@click.option("--topic", "-t", required=True, help="The topic; the broker may create it.")
@click.option("--num-records", "-n", required=True, type=click.IntRange(1), help="How many records to send.")
@click.option(
    "--record-size", type=click.IntRange(1, _MOST_BYTES), metavar="BYTES", help="Of each; random letters."
)
@click.option(
    "--payload-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take records from this file instead, in random order.",
)
@click.option(
    "--payload-delimiter", default="\\n", show_default=True, help="What separates records in that file."
)
@click.option("--payload-monotonic", is_flag=True, help="Send the numbers 0, 1, 2 and so on instead.")
@click.option(
    "--format",
    "value_format",
    metavar="NAME",
    help="Send records that this format of a plugin makes instead, keys and headers included.",
)
@click.option(
    "--format-option",
    "format_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of that format; may be repeated.",
)
@click.option(
    "--schema-evolution-interval",
    type=click.IntRange(1),
    metavar="N",
    help="Send records with a schema, and register a new version of it after every N. The format is avro unless "
    "--format names another one; the registry is at port 8081 of the broker's host unless an option says so.",
)
@click.option(
    "--distinct",
    type=click.IntRange(1),
    metavar="N",
    help="How many records the format makes; they are sent in turn.  [default: 4096, or 16 MiB of them]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="What is random comes from this number: the same seed makes the same records.",
)
@click.option(
    "--throughput",
    type=float,
    default=-1,
    show_default=True,
    metavar="N",
    help="At most so many records a second; -1 for no limit.",
)
@click.option("--transactional-id", metavar="ID", help="Send in transactions.")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(1),
    metavar="MS",
    help=f"Commit each after so long.  [default with an id: {_COMMIT_MS}]",
)
@click.option(
    "--warmup-records",
    type=click.IntRange(0),
    default=0,
    help="Print a second line without the first so many records.",
)
@figure_options
def produce(**given: Any) -> None:
    """Send records at the given rate; print how many a second were acknowledged, and how long each took.

    Its options and its lines are those of kafka-producer-perf-test. Settings of the client are those of Java's
    (linger.ms, batch.size, acks, compression.type, buffer.memory...) or, with -X, librdkafka's own. One client, one
    process: beside the broker on two shared cores of an x86-64 server it sent 262,000 to 292,000 records of 100 bytes a
    second, with a latency taken for every one. Where that is too few, run it more than once.

    Records of a size, of a file or of a format are made before the clock starts, and sent again and again: making them
    costs nothing of what is measured. With --format the size in the output is that of the values.

    \b
    Examples:
      leafcuttr perf produce --topic perfTest --num-records 1000000 --throughput -1 --record-size 1000 \\
        --producer-props bootstrap.servers=localhost:9092
      leafcuttr perf produce -t perf -n 100000 --record-size 100 --throughput 5000 --producer-props acks=1 linger.ms=0
      leafcuttr perf produce -t perfTest -n 1000000 --record-size 100 --json -b localhost:9092
      leafcuttr perf produce -t perfTest -n 1000000 --record-size 1000 --schema-evolution-interval 100000
      leafcuttr perf produce -t readings -n 100000 --format reading --format-option sensors=50 --seed 7

    Exit status: 0 every record was acknowledged, 1 one was not or no broker answers, 2 wrong usage, 130 after Ctrl-C.
    """
    from confluent_kafka import KafkaException, Producer

    _check(given)
    own = ClientFigures(given["with_metrics"])
    usual: dict[str, Any] = {
        # As Java's producer: acknowledged by all, nothing twice, 32 MiB under way, keys where Java's clients put them.
        "acks": "all",
        "queue.buffering.max.kbytes": 32 * 1024,
        "queue.buffering.max.messages": 500_000,
        "linger.ms": 5,
        "topic.metadata.propagation.max.ms": TOPIC_MADE_MS,
        "partitioner": "murmur2_random",
    }
    address, settings = settings_of(given, **usual, **own.settings)
    if settings["acks"] in ("all", "-1") and "enable.idempotence" not in settings:
        settings["enable.idempotence"] = True
    lasts_ms = given["transaction_duration_ms"]
    name = given["transactional_id"] or settings.get("transactional.id")
    if lasts_ms is not None or name is not None:
        settings["transactional.id"] = name or f"performance-producer-{uuid.uuid4()}"
        lasts_ms = lasts_ms or _COMMIT_MS
    source = source_of(given, address)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    producer = client(Producer, settings)
    topics(producer, address)
    load = _Load(
        producer,
        given["topic"],
        given["as_json"],
        given["reporting_interval"] / 1000,
        given["warmup_records"],
    )
    status = 0
    try:
        load.run(source, given["num_records"], given["throughput"], lasts_ms)
    except KafkaException as error:
        fail(error, address)
    except KeyboardInterrupt:
        status = 130
    if not load.all.count and load.failure is not None:
        fail(load.failure, address)
    own.print_with(load, given["as_json"])
    if load.failure is not None:
        click.echo(f"leafcuttr: {load.failed:,} records failed; the first: {load.failure.str()}", err=True)
        status = status or 1
    sys.exit(status)


def _check(given: dict[str, Any]) -> None:
    """Raises click.UsageError."""
    ways = ("record_size", "payload_file", "value_format")
    if given["schema_evolution_interval"] is not None:
        # The format is avro where none is named, and makes records of the size.
        if given["payload_monotonic"] or given["payload_file"] is not None:
            raise click.UsageError("--schema-evolution-interval is for --record-size and --format")
    elif sum([given["payload_monotonic"], *(given[way] is not None for way in ways)]) != 1:
        raise click.UsageError(
            "expected one of --record-size, --payload-file, --payload-monotonic and --format"
        )
    elif given["value_format"] is None and (given["format_settings"] or given["distinct"] is not None):
        raise click.UsageError("--format-option and --distinct are for --format")
    if not given["throughput"] > 0 and given["throughput"] != -1:  # NaN is no number either
        raise click.UsageError("--throughput: expected a number above 0, or -1 for no limit")


class _Window:
    """What was acknowledged since the last line."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.count = self.size = 0
        self.total = self.longest = 0.0


class _Load:
    """Sends the records and counts their results."""

    def __init__(self, producer: Any, topic: str, quiet: bool, every_s: float, warmup: int) -> None:
        self.all = Latencies()
        self.steady: Latencies | None = Latencies() if warmup else None
        self.failed = 0
        self.failure: Any = None
        self._producer = producer
        self._topic = topic
        self._quiet = quiet
        self._every_s = every_s
        self._warmup = warmup
        self._size = self._steady_size = 0
        self._began = self._steady_began = self._ended = time.monotonic()
        self._window = _Window(self._began)

    def run(self, source: RecordSource, count: int, throughput: float, lasts_ms: int | None) -> None:
        """Send them all and wait for the acknowledgement of each. Raises KafkaException."""
        producer = self._producer
        queue = source(producer.produce, self._topic, self._delivered)
        if lasts_ms is not None:
            producer.init_transactions(TIMEOUT_S * 2)
            producer.begin_transaction()
        self._began = self._steady_began = self._ended = time.monotonic()
        self._window = _Window(self._began)
        commit_at = self._began + (lasts_ms or 0) / 1000
        try:
            for number in range(count):
                while True:
                    try:
                        queue(number)
                        break
                    except BufferError:
                        producer.poll(0.01)
                        self._look()
                if throughput > 0:
                    self._wait_until(self._began + (number + 1) / throughput)
                elif number % _LOOK_EVERY == 0:
                    producer.poll(0)
                    self._look()
                if lasts_ms is not None and time.monotonic() >= commit_at:
                    self._flush()
                    producer.commit_transaction()
                    producer.begin_transaction()
                    commit_at = time.monotonic() + lasts_ms / 1000
            self._flush()
            if lasts_ms is not None:
                producer.commit_transaction()
        finally:
            self._ended = time.monotonic()

    def _wait_until(self, moment: float) -> None:
        while (left := moment - time.monotonic()) > 0.0005:
            self._producer.poll(min(left, 0.1))
            self._look()
        self._producer.poll(0)

    def _flush(self) -> None:
        while self._producer.flush(0.2):
            self._look()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed += 1
            self.failure = self.failure or error
            return
        ms, size = message.latency() * 1000, len(message)
        self.all.add(ms)
        self._size += size
        if self.steady is not None:
            if self.all.count > self._warmup:
                self.steady.add(ms)
                self._steady_size += size
            else:
                self._steady_began = time.monotonic()
        window = self._window
        window.count += 1
        window.size += size
        window.total += ms
        if ms > window.longest:
            window.longest = ms

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._window.began < self._every_s:
            return
        window, self._window = self._window, _Window(now)
        if self._quiet:
            return
        seconds = now - window.began
        click.echo(
            f"{window.count} records sent, {window.count / seconds:.1f} records/sec "
            f"({window.size / seconds / _MB:.2f} MB/sec), {window.total / max(window.count, 1):.1f} ms avg latency, "
            f"{window.longest:.1f} ms max latency."
        )

    def _parts(self) -> Iterator[tuple[str, Latencies, int, float]]:
        yield "", self.all, self._size, max(self._ended - self._began, 1e-6)
        if self.steady is not None:
            yield " steady state", self.steady, self._steady_size, max(self._ended - self._steady_began, 1e-6)

    def say(self) -> None:
        """The last lines."""
        for kind, latencies, size, seconds in self._parts():
            p50, p95, p99, p999 = latencies.percentiles(0.5, 0.95, 0.99, 0.999)
            click.echo(
                f"{latencies.count}{kind} records sent, {latencies.count / seconds:.1f} records/sec "
                f"({size / seconds / _MB:.2f} MB/sec), {latencies.average:.2f} ms avg latency, "
                f"{latencies.longest:.2f} ms max latency, {p50:.0f} ms 50th, {p95:.0f} ms 95th, "
                f"{p99:.0f} ms 99th, {p999:.0f} ms 99.9th."
            )

    def figures(self) -> dict[str, Any]:
        """For JSON: `mb` is 1024 * 1024 bytes, as in Kafka's tools."""
        found: list[dict[str, Any]] = [
            {
                "records": latencies.count,
                "bytes": size,
                "seconds": round(seconds, 3),
                "records_per_s": round(latencies.count / seconds, 1),
                "mb_per_s": round(size / seconds / _MB, 2),
                **latencies.figures(),
            }
            for _, latencies, size, seconds in self._parts()
        ]
        return found[0] | {"failed": self.failed} | ({"steady": found[1]} if len(found) > 1 else {})
