"""The options of the sink; the page is made of this table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from leafcuttr_sdk.batches.compression import Codec
from leafcuttr_spark.codec.encoding import BATCH_BYTES
from leafcuttr_spark.options import Option, OptionError, Query, client_options

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"

OPTIONS: Final = (
    Option("kafka.bootstrap.servers", "host:port, ...", "", "The cluster. Has to be given."),
    Option(
        "kafka.*",
        "",
        "",
        "Properties of Kafka's clients: `kafka.security.protocol`, `kafka.ssl.*`, `kafka.sasl.*` and others. See the"
        " page of settings of clients.",
    ),
    Option("topic", "name of a topic", "", "Where all rows go. Without it rows have a column `topic`."),
    Option("includeHeaders", "boolean", "false", "Whether the column `headers` is written."),
    Option(
        "includeTimestamps",
        "boolean",
        "false",
        "Whether the column `timestamp` is that of the record. Without it, and for null, it is the time of writing.",
    ),
    Option(
        "delivery",
        f"`{EXACTLY_ONCE}` or `{AT_LEAST_ONCE}`",
        EXACTLY_ONCE,
        "By a transaction for each batch, or without: then a batch that is repeated is written again.",
    ),
    Option(
        "kafka.transactional.id",
        "string",
        "of a batch query a random one",
        "The transactional id, which no other query may have: one that begins with it ends the transactions of the one"
        " before. It is the id of the group too whose offset says which batch is done. Has to be given for a stream.",
    ),
    Option(
        "kafka.transaction.timeout.ms",
        "int",
        "600000",
        "A batch that takes longer is aborted, and fails. At most the broker's `transaction.max.timeout.ms`.",
    ),
    Option(
        "tasks",
        "int",
        "",
        "How many tasks write rows that have a column `topic`; without it as many as shuffles have.",
    ),
    Option(
        "kafka.compression.type",
        "`none`, `gzip`, `snappy`, `lz4` or `zstd`",
        "none",
        "How batches are compressed.",
    ),
    Option(
        "kafka.batch.size",
        "int",
        str(BATCH_BYTES),
        "So many bytes a batch of records has at most before compression; a larger record has one of its own.",
    ),
)

_REFUSED: Final = {
    "enable.idempotence": "the sink always is",
    "acks": "it is all",
    "key.serializer": "keys are bytes or text",
    "value.serializer": "values are bytes or text",
    "partitioner.class": "classes of Java cannot be run; a column partition says where a row goes",
    "interceptor.classes": "classes of Java cannot be run",
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of one sink, checked. Can be pickled."""

    client: Mapping[str, str]
    topic: str | None
    headers: bool = False
    timestamps: bool = False
    exactly_once: bool = True
    transactional_id: str | None = None
    timeout_ms: int = 600_000
    tasks: int | None = None
    codec: Codec = Codec.NONE
    batch_bytes: int = BATCH_BYTES


def sink_options(given: Mapping[str, Any], query: Query) -> SinkOptions:
    """Raises OptionError."""
    values, client = client_options(given, OPTIONS, _REFUSED)
    exactly_once = values.one_of("delivery", EXACTLY_ONCE, (EXACTLY_ONCE, AT_LEAST_ONCE)) == EXACTLY_ONCE
    transactional_id = values.text("kafka.transactional.id") or None
    if exactly_once and query is Query.STREAM and transactional_id is None:
        raise OptionError(
            "the option kafka.transactional.id is missing: a name of this query, which no other one may have; or"
            f" delivery={AT_LEAST_ONCE}"
        )
    if not exactly_once and transactional_id is not None:
        raise OptionError(f"the option kafka.transactional.id is not for delivery={AT_LEAST_ONCE}")
    if values.has("topic") and not values.text("topic"):
        raise values.wrong("topic", "the name of a topic")
    codecs = [codec.name.lower() for codec in Codec]
    return SinkOptions(
        client=client,
        topic=values.text("topic") or None,
        headers=values.boolean("includeHeaders", False),
        timestamps=values.boolean("includeTimestamps", False),
        exactly_once=exactly_once,
        transactional_id=transactional_id,
        timeout_ms=values.positive("kafka.transaction.timeout.ms") or 600_000,
        tasks=values.positive("tasks"),
        codec=Codec[values.one_of("kafka.compression.type", "none", codecs).upper()],
        batch_bytes=values.positive("kafka.batch.size") or BATCH_BYTES,
    )
