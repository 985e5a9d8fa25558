"""`leafcuttr consume`: print the records of a topic.

This is the command: its options. Its loop is `loop`; where to begin and to end is in `reading`, how a record is printed
in `printing` and `json_lines`, which records are printed in `filtering`.

Exit status: 0 at the end, after `--max`, Ctrl-C or when the reader of a pipe has ended, 1 no such topic or no broker or
a record that is not of the format, 2 wrong usage.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr.cli.common.completion import complete_groups, complete_topics
from leafcuttr.cli.common.librdkafka.client import client, client_settings, fail
from leafcuttr.cli.common.meter import record_meter
from leafcuttr.cli.common.options.positions import HELP, TIMES, Position, PositionKind, parse_position
from leafcuttr.cli.common.options.target import broker_option, property_option
from leafcuttr.cli.common.records.formats import format_options, opened
from leafcuttr.cli.common.records.input_lines import unescaped
from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr.cli.consume.loop import PrintLoop
from leafcuttr.cli.consume.printing import FIELDS, Printer, json_printer, line_printer
from leafcuttr.cli.consume.reading import TopicReader, Watch, bounds, partitions

if TYPE_CHECKING:
    from leafcuttr.cli.consume.filtering import MessageFilter

_COMMIT_EVERY_MS: Final = 1000


@click.command()
@broker_option
@property_option
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    metavar=HELP,
    help=f"Where to begin. A time: {TIMES}.",
)
@click.option(
    "--to",
    "stop",
    metavar="latest|OFFSET|-COUNT|TIME",
    help="Where to end; the record at this position is not printed.  [default: the end at the start]",
)
@click.option("--follow", "-f", is_flag=True, help="Wait for more records at the end, until Ctrl-C.")
@click.option(
    "--idle", type=click.FloatRange(0), metavar="SECONDS", help="Stop after so long without a record."
)
@click.option("--max", "-n", "most", type=click.IntRange(1), help="Stop after this many records.")
@click.option(
    "--partition",
    "-p",
    "numbers",
    multiple=True,
    type=click.IntRange(0),
    help="Read only this partition; may be repeated.",
)
@click.option(
    "--group",
    "-g",
    shell_complete=complete_groups,
    help="Read as a member of this group and commit; starts at the committed offsets.",
)
@click.option("--filter", "condition", metavar="CONDITION", help="Print only records for which it is true.")
@click.option(
    "--isolation",
    default="read_committed",
    show_default=True,
    type=click.Choice(["read_committed", "read_uncommitted"]),
    help="Whether records of open and aborted transactions are left out.",
)
@format_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record, as `produce --json` reads.")
@click.option(
    "--print",
    "fields",
    metavar="FIELDS",
    help=f"What to print of each, in this order: {','.join(FIELDS)}.  [default: value]",
)
@click.option("--keys", "-k", is_flag=True, help="The same as --print key,value.")
@click.option("--separator", default="\\t", show_default=True, help="What to print between the fields.")
@click.option("--delimiter", default="\\n", show_default=True, help="After each record; may be empty.")
@click.option("--null", default="null", show_default=True, help="What to print for a key or value of null.")
@click.option(
    "--skip-errors", is_flag=True, help="Leave out records that are not of the format, and count them."
)
def command(topic: str, **given: Any) -> None:
    """Print records, one a line, from the beginning to the end that the topic has now.

    With --follow it waits for more; with --from latest it reads only new records. Records of a partition come in
    their order. With --group it begins at the committed offsets of the group (without any, at --from earliest or
    latest), and commits what has been printed.

    A CONDITION for --filter joins comparisons by `and`, `or`, `not` and parentheses. Fields are `key`, `value`,
    `headers.NAME`, `topic`, `partition`, `offset`, `timestamp`; `value.order.lines[0].price` and `value["a b"]` go
    into JSON. Operators: `==` `!=` `<` `<=` `>` `>=`, `~` and `!~` (regular expression), `contains`. Literals: "text",
    'text', numbers, `true`, `false`, `null`, for `timestamp` also a time in quotes. A field alone is true if it
    exists. Values of different types are neither equal nor less nor greater; a missing member is null. The page
    "Conditions" of the reference (docs/reference/conditions.md) has the whole language.

    \b
    Examples:
      leafcuttr consume greetings
      leafcuttr consume events --follow --json
      leafcuttr consume events --from -1h --print timestamp,key,value
      leafcuttr consume events --from 2026-11-21T08:00 --to 2026-11-21T09:00 | wc -l
      leafcuttr consume events -g billing -n 100
      leafcuttr consume orders --filter 'value.total >= 100 and headers.source == "web"'
      leafcuttr consume events --filter 'key ~ "^user-[0-9]+$" or value contains "error"'
      leafcuttr consume photos -p 0 --from 7 -n 1 --delimiter '' > front.jpg

    Exit status: 0 at the end, after --max, Ctrl-C, or when the reader of a pipe has ended; 1 no such topic, no broker
    answers, or a record is not of the format; 2 wrong usage.
    """
    from confluent_kafka import Consumer, KafkaException

    now_ms = time.time_ns() // 1_000_000
    start, stop = _position("--from", given["start"], now_ms), None
    if given["stop"] is not None:
        stop = _position("--to", given["stop"], now_ms)
    _check(given, start)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with opened(given["value_format"], given["key_format"], given["format_settings"]) as (of_keys, of_values):
        codecs = Codecs(topic, of_keys, of_values)
        printer, wanted = _printer(given, codecs), _filter(given["condition"], now_ms, codecs)
        watch = Watch()
        consumer = client(Consumer, _settings(given, start) | {"error_cb": watch.heard})
        status = 0
        try:
            reader = _reader(consumer, watch, topic, given, start, stop)
            with record_meter("read", shown=not sys.stdout.isatty()) as meter:
                status = PrintLoop(reader, consumer, printer, wanted, given, meter).run()
        except KafkaException as error:
            fail(error, given["address"])
        except BrokenPipeError:
            _no_reader()
        except KeyboardInterrupt:
            pass
        finally:
            consumer.close()
    sys.exit(status)


def _position(option: str, text: str, now_ms: int) -> Position:
    try:
        return parse_position(text, now_ms)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def _check(given: dict[str, Any], start: Position) -> None:
    if given["group"] and (
        given["numbers"] or start.kind not in (PositionKind.EARLIEST, PositionKind.LATEST)
    ):
        raise click.UsageError("--group reads where the group is: not with --partition, an offset or a time")
    if given["follow"] and given["stop"] is not None:
        raise click.UsageError("--follow has no end: not with --to")
    if given["as_json"] and (given["fields"] or given["keys"]):
        raise click.UsageError("--json prints all fields: not with --print or --keys")


def _settings(given: dict[str, Any], start: Position) -> dict[str, Any]:
    return client_settings(
        given["address"],
        given["properties"],
        **{
            "group.id": given["group"] or "leafcuttr-consume",
            "enable.auto.commit": bool(given["group"]),
            "auto.commit.interval.ms": _COMMIT_EVERY_MS,
            # Stored once they are printed.
            "enable.auto.offset.store": False,
            "auto.offset.reset": "latest" if start.kind is PositionKind.LATEST else "earliest",
            "enable.partition.eof": True,
            "isolation.level": given["isolation"],
            # While its queue is full the client checks it only this often: its default of a second halves
            # the speed.
            "fetch.queue.backoff.ms": 10,
        },
    )


def _printer(given: dict[str, Any], codecs: Codecs) -> Printer:
    if given["as_json"]:
        return json_printer(codecs)
    fields = (given["fields"] or ("key,value" if given["keys"] else "value")).split(",")
    for field in fields:
        if field not in FIELDS:
            raise click.UsageError(f"--print: no field {field!r}; there are {', '.join(FIELDS)}")
    return line_printer(
        codecs,
        fields,
        unescaped(given["separator"]),
        unescaped(given["delimiter"]),
        os.fsencode(given["null"]),
    )


def _filter(condition: str | None, now_ms: int, codecs: Codecs) -> "MessageFilter | None":
    if condition is None:
        return None
    from leafcuttr.cli.consume.filtering import MessageFilter
    from leafcuttr_sdk.conditions import ConditionError, parse

    try:
        return MessageFilter(parse(condition, now_ms=now_ms), codecs)
    except ConditionError as error:
        raise click.UsageError(f"--filter: {error}") from None


def _reader(
    consumer: Any, watch: Watch, topic: str, given: dict[str, Any], start: Position, stop: Position | None
) -> TopicReader:
    numbers = partitions(consumer, topic, given["numbers"], given["address"])
    found = bounds(consumer, topic, numbers, start, stop)
    ends = None if given["follow"] else found.end
    reader = TopicReader(consumer, watch, given["address"], ends, given["idle"])
    if given["group"]:
        reader.subscribe(topic)
    else:
        reader.assign(topic, found.first)
    return reader


def _no_reader() -> None:
    """Open /dev/null as standard output, for the flush of the interpreter at its exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
