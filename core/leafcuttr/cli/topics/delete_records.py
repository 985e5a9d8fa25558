"""`topics delete-records`: what kafka-delete-records does, its file included."""

import json
from typing import Any, Final

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.moments import parse_moment
from leafcuttr.cli.common.options.partitions import Selection, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import ItemResults, json_option
from leafcuttr.cli.common.target import Target
from leafcuttr_sdk.types import TopicPartition

_HIGH_WATERMARK: Final = -1
_MOST: Final = (1 << 63) - 1


def _before(text: str) -> tuple[str, int]:
    """("offset", n), ("end", -1) or ("moment", ms). Raises BadParameter."""
    if text == "latest":
        return "end", _HIGH_WATERMARK
    if text.isascii() and text.isdigit() and int(text) <= _MOST:
        return "offset", int(text)
    moment = parse_moment(text)
    if moment is None:
        raise click.BadParameter(
            f"{text!r}: expected an offset, latest, or a moment like 2026-11-20T10:00:00"
        )
    return "moment", moment


@click.command("delete-records", short_help="Delete the oldest records.")
@target_options
@json_option
@partitions_argument()
@click.option(
    "--before",
    type=_before,
    metavar="OFFSET|latest|MOMENT",
    help="Delete what is before this offset, everything, or what is before the first record of that time.",
)
@click.option(
    "--offset-json-file",
    type=click.File("rb"),
    metavar="FILE",
    help="Partitions and offsets in the JSON of Kafka's tool; -1 is everything.",
)
def delete_records(
    target: Target,
    as_json: bool,
    topics: tuple[Selection, ...],
    before: tuple[str, int] | None,
    offset_json_file: Any,
) -> None:
    """Delete the oldest records of partitions, up to an offset; prints where each partition begins then.

    \b
    Examples:
      leafcuttr topics delete-records orders:0 --before 1200
      leafcuttr topics delete-records orders logs --before latest
      leafcuttr topics delete-records orders --before 2026-11-01T00:00:00Z
      echo '{"partitions": [{"topic": "orders", "partition": 0, "offset": 1200}], "version": 1}' > offsets.json
      leafcuttr topics delete-records --offset-json-file offsets.json
    """
    import confluent_kafka

    if (offset_json_file is None) == (before is None) or bool(topics) != (before is not None):
        raise click.UsageError("expected topics and --before, or --offset-json-file alone")
    listed = {} if offset_json_file is None else _from_file(offset_json_file.read(), offset_json_file.name)
    admin = Admin(target)
    wanted = listed if before is None else _offsets(admin, select(topics, admin.partitions()), *before)
    results = ItemResults("partition", as_json)
    partitions = [
        confluent_kafka.TopicPartition(tp.topic, tp.partition, offset) for tp, offset in wanted.items()
    ]
    futures = admin.client.delete_records(partitions, **admin.wait) if partitions else {}
    for part, future in futures.items():
        tp = TopicPartition(part.topic, part.partition)
        why = admin.outcome(future)
        if why is None:
            first = admin.answer(future).low_watermark
            results.done(str(tp), f"{tp} begins at {first}", first_offset=first)
        else:
            results.failed(str(tp), why, first_offset=None)
    results.finish()


def _offsets(admin: Admin, wanted: list[TopicPartition], kind: str, value: int) -> dict[TopicPartition, int]:
    if kind != "moment":
        return dict.fromkeys(wanted, value)
    from confluent_kafka.admin import OffsetSpec

    found = admin.offsets(wanted, OffsetSpec.for_timestamp(value))
    # No record is that young: all of them are older.
    return {tp: found[tp].offset if found[tp].offset >= 0 else _HIGH_WATERMARK for tp in wanted}


def _from_file(text: bytes, name: str) -> dict[TopicPartition, int]:
    """The partitions of `{"version": 1, "partitions": [{"topic", "partition", "offset"}]}`. Raises Failure."""
    try:
        content = json.loads(text)
        if content.get("version", 1) != 1:
            raise Failure(f"{name}: version {content['version']} of the file is not known; 1 is")
        found: dict[TopicPartition, int] = {}
        for item in content["partitions"]:
            tp, offset = TopicPartition(str(item["topic"]), int(item["partition"])), int(item["offset"])
            if tp in found:
                raise Failure(f"{name}: {tp} is there twice")
            if not _HIGH_WATERMARK <= offset <= _MOST or tp.partition < 0:
                raise Failure(f"{name}: {tp}: {offset} is no offset; -1 is everything")
            found[tp] = offset
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(
            f'{name}: expected {{"version": 1, "partitions": [{{"topic": "t", "partition": 0, "offset": 1}}]}}'
        ) from None
    return found
