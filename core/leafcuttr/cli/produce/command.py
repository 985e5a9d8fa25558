"""`leafcuttr produce`: lines, JSON lines or whole files become records.

This is the command: its options, and one record after the other from the input. What a JSON line may say is in
`json_records`, what happens to a record once it is queued in `sending`.

Exit status: 0 every record is acknowledged, 1 one is not, 2 wrong usage or input, 130 Ctrl-C.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from leafcuttr.cli.common.completion import complete_topics
from leafcuttr.cli.common.librdkafka.client import client, client_settings, topics
from leafcuttr.cli.common.meter import METER_EVERY, record_meter
from leafcuttr.cli.common.options.positions import parse_time
from leafcuttr.cli.common.options.target import broker_option, property_option
from leafcuttr.cli.common.output import count
from leafcuttr.cli.common.records.formats import format_options, opened
from leafcuttr.cli.common.records.input_lines import TooLongError, lines, unescaped, whole
from leafcuttr.cli.common.records.json_lines import Codecs, HeaderList, OutRecord, read_line
from leafcuttr.cli.common.target import TIMEOUT_S
from leafcuttr_sdk.formats import FormatError

if TYPE_CHECKING:
    from leafcuttr.cli.common.records.sending import Sender

_MEMBERS = ("key", "headers", "partition", "timestamp")


class _InputError(Exception):
    """What is wrong in the input, and where."""


class _Shape(NamedTuple):
    """What the options say of every record."""

    kind: str
    separator: bytes | None
    null: bytes | None
    ignored: frozenset[str]
    every: OutRecord


@click.command()
@broker_option
@property_option
@click.argument("topic", shell_complete=complete_topics)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option(
    "--json", "as_json", is_flag=True, help="Each line is a JSON object, as `consume --json` prints."
)
@click.option("--whole", is_flag=True, help="Each file (or all of standard input) is one record.")
@click.option(
    "--key-separator",
    "-K",
    metavar="TEXT",
    help="Split each line into key and value at the first such text; \\t is a tab.",
)
@click.option("--key", "every_key", metavar="TEXT", help="The key of records without one.")
@click.option("--null", metavar="TEXT", help="A key or value of this text is null: a tombstone.")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="KEY=VALUE", help="Add a header to each record."
)
@click.option(
    "--partition", "-p", type=click.IntRange(0, 2**31 - 1), help="Send everything to this partition."
)
@click.option(
    "--timestamp", metavar="TIME", help="The timestamp of records without one, as for `consume --from`."
)
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice(_MEMBERS),
    help="Ignore this member of JSON records: with `--ignore partition` keys choose it again. May be repeated.",
)
@format_options
@click.option(
    "--compression",
    "-z",
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
)
@click.option(
    "--acks",
    "-a",
    default="all",
    show_default=True,
    type=click.Choice(["all", "1", "0"]),
    help="What counts as acknowledged: by all replicas in sync, by the leader, sent.",
)
@click.option(
    "--idempotence/--no-idempotence",
    default=None,
    help="Whether a repeated request stores nothing twice and keeps the order.  [default: with acks=all]",
)
@click.option(
    "--transactional-id",
    "-t",
    metavar="ID",
    help="Send all in a transaction: readers see all of it or nothing.",
)
@click.option(
    "--transaction-size",
    metavar="N",
    type=click.IntRange(1),
    help="Commit after each N records, not only at the end.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not say how many records were sent.")
@click.option("--json-summary", is_flag=True, help="Print the counts as one JSON object on standard output.")
def command(topic: str, files: tuple[str, ...], quiet: bool, json_summary: bool, **given: Any) -> None:
    """Send each line of the input as a record; ends when every one is acknowledged.

    Standard input is read if no file is named (`-` names it among files). The input is read no faster than the broker
    takes it. Keys choose partitions as Java's clients do. With `--json` a line is an object with `value` and, where
    wanted, `key`, `headers` ({"name": "text"} or a list of {"name", "value"}), `partition`, `timestamp` (epoch
    milliseconds or ISO 8601); null is null, bytes can stand in `value_base64` and `key_base64`. What
    `consume --json` prints is such input.

    \b
    Examples:
      echo hello | leafcuttr produce greetings
      leafcuttr produce events events.log -z zstd
      echo 'alice:42' | leafcuttr produce scores -K :
      echo '{"key": "alice", "value": {"score": 42}}' | leafcuttr produce scores --json --format json
      leafcuttr produce photos --whole --key front.jpg front.jpg
      leafcuttr consume orders --json | leafcuttr produce copy --json --ignore partition -t copying

    Exit status: 0 every record is acknowledged, 1 one is not or no broker answers, 2 wrong usage or input (what came
    before is sent), 130 after Ctrl-C (what came before is sent). A transaction that is open then is aborted.
    """
    from confluent_kafka import Producer

    from leafcuttr.cli.common.records.sending import LONGEST_BYTES, FailedError, Sender

    shape = _shape(given)
    settings = _settings(given)
    limit = _limit(settings, LONGEST_BYTES)
    transactional = given["transactional_id"] is not None
    with opened(given["value_format"], given["key_format"], given["format_settings"]) as (of_keys, of_values):
        producer = client(Producer, settings)
        topics(producer, given["address"])
        sender = Sender(
            producer, topic, transactional=transactional, transaction_size=given["transaction_size"]
        )
        codecs = Codecs(topic, of_keys, of_values)
        began = time.monotonic()
        status, problem = 0, ""
        try:
            sender.begin()
            with record_meter("sent", _sizes(files)) as meter:
                for source, number, record in _records(files, shape, codecs, limit, sender, meter.read):
                    sender.send(record, source, number)
                    if not sender.sent % METER_EVERY:
                        meter.count(sender.sent)
                sender.finish()
        except _InputError as error:
            status, problem = 2, str(error)
        except FailedError as error:
            status, problem = 1, str(error)
        except OSError as error:
            status, problem = 2, f"cannot read {error.filename or 'the input'}: {error.strerror}"
        except KeyboardInterrupt:
            status, problem = 130, "interrupted"
        if status:
            sender.give_up()
    _say(sender, status, problem, transactional, quiet, json_summary, time.monotonic() - began)
    sys.exit(status)


def _shape(given: dict[str, Any]) -> _Shape:
    kind = "json" if given["as_json"] else "whole" if given["whole"] else "lines"
    if given["as_json"] and given["whole"]:
        raise click.UsageError("--json and --whole: one of them")
    if given["key_separator"] is not None and kind != "lines":
        raise click.UsageError("--key-separator is for lines")
    if given["ignore"] and kind != "json":
        raise click.UsageError("--ignore is for --json")
    if given["transaction_size"] is not None and given["transactional_id"] is None:
        raise click.UsageError("--transaction-size needs --transactional-id")
    headers: HeaderList = []
    for header in given["headers"]:
        name, equals, text = header.partition("=")
        if not equals:
            raise click.UsageError(f"--header {header}: expected KEY=VALUE")
        headers.append((name, text.encode("utf-8", "surrogateescape")))
    timestamp = None
    if given["timestamp"] is not None:
        try:
            timestamp = parse_time(given["timestamp"].removeprefix("@"), time.time_ns() // 1_000_000)
        except ValueError as error:
            raise click.UsageError(f"--timestamp: {error}") from None
    if given["key_separator"] == "":
        raise click.UsageError("--key-separator: expected at least one character")
    separator = given["key_separator"]
    null, key = given["null"], given["every_key"]
    return _Shape(
        kind,
        None if separator is None else unescaped(separator),
        None if null is None else null.encode("utf-8", "surrogateescape"),
        frozenset(given["ignore"]),
        OutRecord(
            None,
            None if key is None else key.encode("utf-8", "surrogateescape"),
            headers,
            given["partition"],
            timestamp,
        ),
    )


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    from leafcuttr.cli.common.records.sending import LONGEST_BYTES, QUEUE_BYTES, TOPIC_MADE_MS

    settings = client_settings(
        given["address"],
        given["properties"],
        **{
            "compression.type": given["compression"],
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "message.max.bytes": LONGEST_BYTES,
            "queue.buffering.max.kbytes": QUEUE_BYTES >> 10,
            "message.timeout.ms": int(TIMEOUT_S * 1000),
            "topic.metadata.propagation.max.ms": TOPIC_MADE_MS,
        },
    )
    own_acks = "acks" in settings or "request.required.acks" in settings
    if not own_acks:
        settings["acks"] = given["acks"]
    if given["transactional_id"] is not None:
        if given["idempotence"] is False or given["acks"] != "all":
            raise click.UsageError("--transactional-id needs --acks all and idempotence")
        settings["transactional.id"] = given["transactional_id"]
    elif given["idempotence"] and given["acks"] != "all":
        raise click.UsageError("--idempotence needs --acks all")
    elif given["idempotence"] is not None:
        settings["enable.idempotence"] = given["idempotence"]
    elif given["acks"] == "all" and not own_acks:
        settings.setdefault("enable.idempotence", True)
    return settings


def _limit(settings: dict[str, Any], usual: int) -> int:
    """How long a record may be; the queue is made to hold two of them."""
    try:
        limit = int(settings["message.max.bytes"])
        settings["queue.buffering.max.kbytes"] = max(
            int(settings["queue.buffering.max.kbytes"]), limit * 2 >> 10
        )
    except ValueError:
        return usual  # the client says what is wrong with it
    return limit


def _sizes(files: tuple[str, ...]) -> int | None:
    """How many bytes there are to read, if that is known."""
    if not files or "-" in files:
        return None
    return sum(Path(file).stat().st_size for file in files)


def _records(
    files: tuple[str, ...], shape: _Shape, codecs: Codecs, limit: int, sender: "Sender", took: Any
) -> Iterator[tuple[str, int, OutRecord]]:
    """Each record with where it stands. Raises _InputError, OSError, and what the sender's `idle` raises."""
    for file in files or ("-",):
        prefix = "" if file == "-" else f"{file} "
        with _opened_file(file) as source:
            if shape.kind == "whole":
                try:
                    yield f"{prefix}record", 1, _line(whole(source, limit, sender.idle), shape, codecs)
                except (FormatError, ValueError) as error:
                    raise _InputError(f"{prefix.strip() or 'standard input'}: {error}") from None
                continue
            number = 0
            try:
                for number, line in enumerate(lines(source, limit, sender.idle, took), 1):
                    if shape.kind == "json" and not line.strip():
                        continue
                    make = _json if shape.kind == "json" else _line
                    yield f"{prefix}line", number, make(line, shape, codecs)
            except TooLongError as error:
                raise _InputError(f"{prefix}line {number + 1}: {error}") from None
            except ValueError as error:
                raise _InputError(f"{prefix}line {number}: {error}") from None


@contextlib.contextmanager
def _opened_file(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as source:
        yield source


def _line(line: bytes, shape: _Shape, codecs: Codecs) -> OutRecord:
    key, value, every = shape.every.key, line, shape.every
    if shape.separator is not None:
        key, found, value = line.partition(shape.separator)
        if not found:
            raise ValueError(f"no {shape.separator.decode(errors='replace')!r} in it")
    return OutRecord(
        _encoded("value", value, shape, codecs),
        None if key is None else _encoded("key", key, shape, codecs),
        every.headers,
        every.partition,
        every.timestamp,
    )


def _encoded(part: Any, written: bytes, shape: _Shape, codecs: Codecs) -> bytes | None:
    if written == shape.null:
        return None
    codec, place = codecs.of(part)
    try:
        return codec.encode(written.decode("utf-8", "surrogateescape"), place)
    except FormatError as error:
        raise ValueError(f"{part}: {error}") from None


def _json(line: bytes, shape: _Shape, codecs: Codecs) -> OutRecord:
    record, every, ignored = read_line(line, codecs), shape.every, shape.ignored
    own_headers = [] if "headers" in ignored else record.headers or []
    key = None if "key" in ignored else record.key
    partition = None if "partition" in ignored else record.partition
    timestamp = None if "timestamp" in ignored else record.timestamp
    if key is None and every.key is not None:
        key = _encoded("key", every.key, shape, codecs)
    return OutRecord(
        record.value,
        key,
        [*own_headers, *(every.headers or [])],
        partition if every.partition is None else every.partition,
        every.timestamp if timestamp is None else timestamp,
    )


def _say(
    sender: "Sender",
    status: int,
    problem: str,
    transactional: bool,
    quiet: bool,
    json_summary: bool,
    seconds: float,
) -> None:
    done, word = (sender.committed, "committed") if transactional else (sender.acknowledged, "acknowledged")
    if json_summary:
        figures: dict[str, Any] = {
            "sent": sender.sent,
            word: done,
            "bytes": sender.sent_bytes,
            "seconds": round(seconds, 3),
        }
        if transactional:
            figures["transactions"] = sender.transactions
        click.echo(json.dumps(figures | ({"error": problem} if problem else {})))
    if problem:
        tail = f"{done:,} of {count(sender.sent, 'record')} {word}" if sender.sent else "nothing is sent"
        click.echo(f"leafcuttr: {problem}; {tail}", err=True)
    elif not quiet:
        click.echo(f"{count(done, 'record')} {word}", err=True)
