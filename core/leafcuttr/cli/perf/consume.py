"""`leafcuttr perf consume`: read records and throw them away, as fast as they come."""

import signal
import sys
import time
import uuid
from datetime import datetime
from typing import Any, Final

import click

from leafcuttr.cli.common.librdkafka.client import client, fail, topics
from leafcuttr.cli.perf.figures import ClientFigures, figure_options
from leafcuttr.cli.perf.options import ManyWords, connection_options, settings_of

_MB: Final = 1024 * 1024
_BATCH: Final = 2000
_COLUMNS: Final = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
_MORE_COLUMNS: Final = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


@click.command(cls=ManyWords, short_help="Measure how fast a group reads records.")
@connection_options("consumer")
@click.option("--topic", "-t", metavar="TOPIC", help="What to read.")
@click.option("--include", metavar="REGEX", help="Read all topics whose whole name matches, instead.")
@click.option(
    "--messages",
    "--num-records",
    "-n",
    "most",
    required=True,
    type=click.IntRange(1),
    help="How many to read.",
)
@click.option(
    "--timeout",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="Stop after so long without a record.",
)
@click.option("--group", "-g", metavar="NAME", help="The group to join.  [default: a new one]")
@click.option("--from-latest", is_flag=True, help="Begin at the end if the group has no committed offsets.")
@click.option(
    "--fetch-size",
    type=click.IntRange(1),
    metavar="BYTES",
    help="The most to read of a partition in a request.",
)
@click.option(
    "--socket-buffer-size", type=click.IntRange(0), metavar="BYTES", help="The socket's receive buffer."
)
@click.option("--show-detailed-stats", is_flag=True, help="Print a line every interval.")
@click.option("--hide-header", is_flag=True, help="Do not print the names of the columns.")
@click.option(
    "--date-format",
    default="yyyy-MM-dd HH:mm:ss:SSS",
    show_default=True,
    metavar="FORMAT",
    help="As Java writes one.",
)
@click.option(
    "--threads",
    "--num-fetch-threads",
    "threads",
    type=int,
    hidden=True,
    help="Ignored, as Kafka's tool does.",
)
@figure_options
def consume(**given: Any) -> None:
    """Read records as a member of a group and print how many came a second.

    Its options and its lines are those of kafka-consumer-perf-test: columns with commas between; MB are 1024 * 1024
    bytes of keys and values. librdkafka hands over its batches, and nothing is done with a record but to take its size:
    beside the broker on two shared cores of an x86-64 server that was 658,000 to 833,000 records of 100 bytes a second.

    \b
    Examples:
      leafcuttr perf consume --topic perfTest --messages 1000000 --timeout 100000 \\
        --bootstrap-server localhost:9092 --show-detailed-stats
      leafcuttr perf consume -t perfTest -n 1000000 --json
      leafcuttr perf consume -t perfTest -n 1000000 --consumer-props fetch.max.bytes=10485760 check.crcs=true

    Exit status: 0 as many came, 1 fewer did within the timeout or no broker answers, 2 wrong usage, 130 after Ctrl-C.
    """
    from confluent_kafka import Consumer, KafkaException

    if (given["topic"] is None) == (given["include"] is None):
        raise click.UsageError("expected --topic or --include")
    own = ClientFigures(given["with_metrics"])
    usual: dict[str, Any] = {
        "group.id": given["group"] or f"perf-consumer-{uuid.uuid4().hex[:8]}",
        "auto.offset.reset": "latest" if given["from_latest"] else "earliest",
        # When its queue is full the client looks again after this long, a second by default.
        "fetch.queue.backoff.ms": 5,
    }
    if given["fetch_size"] is not None:
        usual["fetch.message.max.bytes"] = given["fetch_size"]
    if given["socket_buffer_size"] is not None:
        usual["socket.receive.buffer.bytes"] = given["socket_buffer_size"]
    address, settings = settings_of(given, **usual, **own.settings)
    if given["group"] is not None:
        settings["group.id"] = given["group"]
    consumer = client(Consumer, settings)
    found = topics(consumer, address)
    if given["topic"] is not None and given["topic"] not in found:
        consumer.close()
        fail(f"there is no topic {given['topic']}", address)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    meter = _Meter(given)
    status = 0
    try:
        meter.run(consumer, given["topic"] or f"^({given['include']})$")
    except KafkaException as error:
        fail(error, address)
    except KeyboardInterrupt:
        status = 130
    finally:
        consumer.close()
    own.print_with(meter, given["as_json"])
    if not status and meter.records < given["most"]:
        click.echo(
            f"leafcuttr: {meter.records:,} of {given['most']:,} records came, then none for {given['timeout']:,} ms "
            "(--timeout)",
            err=True,
        )
        status = 1
    sys.exit(status)


class _Meter:
    """Reads and counts records."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.records = self._size = 0
        self._given = given
        self._began_at = self._ended_at = datetime.now()
        self._began = self._ended = self._shown = time.monotonic()
        self._shown_records = self._shown_size = 0
        self._joining: float | None = None
        self._rebalanced_s = self._shown_rebalanced_s = 0.0

    def run(self, consumer: Any, topic: str) -> None:
        """Until enough came, or nothing comes any more. Raises KafkaException."""
        from confluent_kafka import KafkaException

        given = self._given
        most, patience, every = given["most"], given["timeout"] / 1000, given["reporting_interval"] / 1000
        detailed = given["show_detailed_stats"] and not given["as_json"]
        if detailed and not given["hide_header"]:
            click.echo(f"time, threadId, {_COLUMNS}, {_MORE_COLUMNS}")
        self._began_at, self._began = datetime.now(), time.monotonic()
        self._shown = self._joining = last = self._began
        consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while self.records < most:
                first = consumer.poll(min(0.1, patience))
                now = time.monotonic()
                if first is None:
                    if now - last >= patience:
                        return
                else:
                    last = now
                    batch = [first, *consumer.consume(min(_BATCH, most - self.records) - 1, 0)]
                    for message in batch:
                        if message.error() is not None:
                            raise KafkaException(message.error())
                    self.records += len(batch)
                    self._size += sum(map(len, batch)) + sum(len(one.key() or b"") for one in batch)
                if detailed and now - self._shown >= every:
                    self._show(now)
        finally:
            self._ended_at, self._ended = datetime.now(), time.monotonic()
            # The last records came at `last`: waiting in vain is not reading.
            if self.records < most and self.records:
                self._ended = last

    def _assigned(self, *_: Any) -> None:
        if self._joining is not None:
            self._rebalanced_s += time.monotonic() - self._joining
            self._joining = None

    def _revoked(self, *_: Any) -> None:
        self._joining = time.monotonic()

    def _show(self, now: float) -> None:
        rebalanced = self._rebalanced_s - self._shown_rebalanced_s
        figures = _columns(
            self._size,
            self.records,
            self._size - self._shown_size,
            self.records - self._shown_records,
            now - self._shown,
            rebalanced,
        )
        click.echo(f"{self._date(datetime.now())}, 0, {figures}")
        self._shown, self._shown_records, self._shown_size = now, self.records, self._size
        self._shown_rebalanced_s = self._rebalanced_s

    def say(self) -> None:
        """The last line, with the names of its columns before it."""
        if not self._given["hide_header"]:
            click.echo(f"start.time, end.time, {_COLUMNS}, {_MORE_COLUMNS}")
        figures = _columns(
            self._size,
            self.records,
            self._size,
            self.records,
            self._ended - self._began,
            self._rebalanced_s,
        )
        click.echo(f"{self._date(self._began_at)}, {self._date(self._ended_at)}, {figures}")

    def figures(self) -> dict[str, Any]:
        """For JSON: `mb` is 1024 * 1024 bytes; `fetch_` is without the time that the group took to form."""
        seconds = max(self._ended - self._began, 1e-6)
        fetching = max(seconds - self._rebalanced_s, 1e-6)
        return {
            "records": self.records,
            "bytes": self._size,
            "seconds": round(seconds, 3),
            "records_per_s": round(self.records / seconds, 1),
            "mb_per_s": round(self._size / seconds / _MB, 2),
            "rebalance_ms": round(self._rebalanced_s * 1000),
            "fetch_records_per_s": round(self.records / fetching, 1),
            "fetch_mb_per_s": round(self._size / fetching / _MB, 2),
        }

    def _date(self, moment: datetime) -> str:
        text = self._given["date_format"].replace("SSS", f"{moment.microsecond // 1000:03d}")
        for java, python in (
            ("yyyy", "%Y"),
            ("MM", "%m"),
            ("dd", "%d"),
            ("HH", "%H"),
            ("mm", "%M"),
            ("ss", "%S"),
        ):
            text = text.replace(java, python)
        return moment.strftime(text)


def _columns(
    all_bytes: int, all_records: int, size: int, records: int, seconds: float, rebalanced: float
) -> str:
    seconds = max(seconds, 1e-6)
    fetching = max(seconds - rebalanced, 1e-6)
    return (
        f"{all_bytes / _MB:.4f}, {size / _MB / seconds:.4f}, {all_records}, {records / seconds:.4f}, "
        f"{rebalanced * 1000:.0f}, {fetching * 1000:.0f}, {size / _MB / fetching:.4f}, {records / fetching:.4f}"
    )
