"""`leafcuttr produce`: lines, JSON lines or whole files become records.

This is the command: its options, its loop and its report. The records come from `input`, what a JSON line may say is in
`json_lines`, what happens to a record once it is queued in `sending`.

Exit status: 0 every record is acknowledged, 1 one is not, 2 wrong usage or input, 130 Ctrl-C.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.completion import complete_topics
from leafcuttr.cli.common.librdkafka.client import client, topics
from leafcuttr.cli.common.meter import METER_EVERY, record_meter
from leafcuttr.cli.common.options.target import broker_option, property_option
from leafcuttr.cli.common.output import count
from leafcuttr.cli.common.records.formats import format_options, opened
from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr.cli.produce.input import InputError, records, shape_of
from leafcuttr.cli.produce.settings import limit_of, settings_of

if TYPE_CHECKING:
    from leafcuttr.cli.common.records.sending import Sender

_MEMBERS = ("key", "headers", "partition", "timestamp")


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

    shape = shape_of(given)
    settings = settings_of(given)
    limit = limit_of(settings, LONGEST_BYTES)
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
                for source, number, record in records(files, shape, codecs, limit, sender, meter.read):
                    sender.send(record, source, number)
                    if not sender.sent % METER_EVERY:
                        meter.count(sender.sent)
                sender.finish()
        except InputError as error:
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


def _sizes(files: tuple[str, ...]) -> int | None:
    """How many bytes there are to read, if that is known."""
    if not files or "-" in files:
        return None
    return sum(Path(file).stat().st_size for file in files)


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
