"""The options of the source, with the names and meanings of Spark's Kafka connector; the page is made of this table.
Half of the module is that table; the other half makes typed values of it.

Source: "Structured Streaming + Kafka Integration Guide" of Spark 4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.formats.options import (
    REGISTRY_OPTIONS,
    REGISTRY_PREFIX,
    FormatOptions,
    format_options_table,
    read_format,
)
from leafcuttr_spark.options import (
    Option,
    OptionError,
    Query,
    Values,
    client_options,
    milliseconds,
    sorted_out,
)

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"
ERROR: Final = "error"
KEY_BYTES: Final = "keyBytes"
VALUE_BYTES: Final = "valueBytes"
ALL_COLUMNS: Final = (*COLUMNS, HEADERS, ERROR, KEY_BYTES, VALUE_BYTES)

_OFFSETS: Final = '{"topic": {"0": 23, "1": -2}}'
_LATEST, _EARLIEST = -1, -2

OPTIONS: Final = (
    Option("kafka.bootstrap.servers", "host:port, ...", "", "The cluster. Has to be given."),
    Option(
        "kafka.*",
        "",
        "",
        "Properties of Kafka's clients: `kafka.security.protocol`, `kafka.ssl.*`, `kafka.sasl.*` and others. See the"
        " page of settings of clients.",
    ),
    Option("subscribe", "topics, separated by commas", "", "The topics. One of these three has to be given."),
    Option(
        "subscribePattern",
        "regular expression",
        "",
        "Topics whose whole name it matches, new ones among them.",
    ),
    Option("assign", '`{"topic": [0, 1]}`', "", "Some partitions only."),
    Option(
        "columns",
        "names, separated by commas",
        ", ".join(COLUMNS),
        f"Which columns rows have, in this order; {HEADERS}, {ERROR}, {KEY_BYTES} and {VALUE_BYTES} too. What is left"
        " out is neither decoded nor copied. Not of Spark's connector.",
    ),
    Option(
        "includeHeaders",
        "boolean",
        "false",
        "Whether there is a column `headers` too, unless `columns` says so.",
    ),
    *format_options_table("value"),
    *format_options_table("key"),
    *REGISTRY_OPTIONS,
    Option(
        "startingOffsets",
        f"`earliest`, `latest`, or `{_OFFSETS}`",
        "latest; of a batch earliest",
        "Where a query begins that has no checkpoint. -2 is the earliest, -1 the latest. JSON has to name all"
        " partitions. A batch cannot begin at the latest.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        '`{"topic": {"0": 1700000000000}}`',
        "",
        "The same by the time of records, in ms since 1970. Wins over `startingOffsets`.",
    ),
    Option("startingTimestamp", "ms since 1970", "", "The same for all partitions. Wins over the other two."),
    Option(
        "startingOffsetsByTimestampStrategy",
        "`error` or `latest`",
        "error",
        "What becomes of a partition without a record of that time or a later one: the query fails, or it begins at"
        " the latest.",
    ),
    Option(
        "endingOffsets",
        "`latest`, or JSON as `startingOffsets`",
        "latest",
        "Where a batch ends; -2 is not allowed.",
        Query.BATCH,
    ),
    Option(
        "endingOffsetsByTimestamp",
        "JSON as `startingOffsetsByTimestamp`",
        "",
        "The same by time; the latest where no record is as late. Wins over `endingOffsets`.",
        Query.BATCH,
    ),
    Option(
        "endingTimestamp",
        "ms since 1970",
        "",
        "The same for all partitions. Wins over the other two.",
        Query.BATCH,
    ),
    Option(
        "failOnDataLoss",
        "boolean",
        "true",
        "Whether a query fails where records are missing that it has not read: topics that were deleted, or deleted and"
        " created anew, partitions that were truncated, offsets that are not there any more. If false, it goes on with"
        " a line.",
    ),
    Option(
        "minPartitions",
        "int",
        "",
        "About how many tasks read at least; large partitions of topics are divided. Without it, one task reads one"
        " partition.",
    ),
    Option("maxRecordsPerPartition", "long", "", "So many offsets one task reads at most."),
    Option(
        "maxOffsetsPerTrigger",
        "long",
        "",
        "So many offsets one batch of a stream reads at most, shared among the partitions by what each has.",
        Query.STREAM,
    ),
    Option(
        "minOffsetsPerTrigger",
        "long",
        "",
        "A stream waits until there are so many, or until `maxTriggerDelay` is over.",
        Query.STREAM,
    ),
    Option(
        "idleAfter",
        "time with its unit",
        "",
        "A stream that had no records for so long gives a row with the time of the clock as `timestamp` and null in"
        " all other columns, and another one each time that this has passed. It moves the watermark, so that a source"
        " without records does not hold it; the query filters it out behind its watermark. Not of Spark's connector.",
        Query.STREAM,
    ),
    Option("maxTriggerDelay", "time with its unit", "15m", "See `minOffsetsPerTrigger`.", Query.STREAM),
    Option(
        "kafka.isolation.level",
        "`read_committed` or `read_uncommitted`",
        "read_committed",
        "Whether records of open and aborted transactions are left out. Spark's connector reads them unless it is told"
        " otherwise.",
    ),
    Option("kafka.check.crcs", "boolean", "true", "Whether the CRC of each batch of records is checked."),
    Option(
        "kafka.max.partition.fetch.bytes", "int", "4194304", "So many bytes one request takes of a partition."
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "long",
        "120000",
        "A task fails that gets nothing for so long although there are offsets to read.",
    ),
    Option("kafka.group.id", "string", "", "Nothing is read as a group.", ignored=True),
    Option("groupIdPrefix", "string", "", "Nothing is read as a group.", ignored=True),
    Option(
        "fetchOffset.numRetries",
        "int",
        "",
        "Requests are retried within `kafka.request.timeout.ms`.",
        ignored=True,
    ),
    Option("fetchOffset.retryIntervalMs", "long", "", "As above.", ignored=True),
)

_REFUSED: Final = {
    "auto.offset.reset": "startingOffsets says where a query begins",
    "enable.auto.commit": "the checkpoint has the offsets",
    "key.deserializer": "key.format says what keys are",
    "value.deserializer": "value.format says what values are",
    "interceptor.classes": "classes of Java cannot be run",
}


class By(Enum):
    """How a place is given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"
    ONE_TIME = "one time"


@dataclass(frozen=True)
class Bound:
    """Where a query begins or ends."""

    by: By
    option: str
    """That has said so."""
    of: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets (-1 the latest, -2 the earliest), or times."""
    time: int = 0


@dataclass(frozen=True)
class Subscription:
    """Which partitions: of these topics, of those whose name matches, or just these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class SourceOptions:
    """The options of one query, checked. Can be pickled."""

    client: Mapping[str, str]
    subscription: Subscription
    columns: tuple[str, ...]
    starting: Bound
    ending: Bound
    key_format: FormatOptions = field(default_factory=FormatOptions)
    value_format: FormatOptions = field(default_factory=FormatOptions)
    late_start_fails: bool = True
    """`startingOffsetsByTimestampStrategy`."""
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records: int | None = None
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = 900.0
    idle_s: float | None = None
    committed: bool = True
    check_crcs: bool = True
    fetch_bytes: int = 4 << 20
    poll_timeout_s: float = 120.0

    @property
    def needs_keys(self) -> bool:
        return not {"key", KEY_BYTES}.isdisjoint(self.columns)

    @property
    def needs_values(self) -> bool:
        return not {"value", VALUE_BYTES}.isdisjoint(self.columns)

    @property
    def needs_headers(self) -> bool:
        """For a column, or because they have the ids of schemas."""
        return (
            HEADERS in self.columns
            or ("key" in self.columns and self.key_format.needs_headers)
            or ("value" in self.columns and self.value_format.needs_headers)
        )


class RowOptions(NamedTuple):
    """What of the options says which columns rows have."""

    columns: tuple[str, ...]
    topics: tuple[str, ...]
    """Those that are named."""
    key_format: FormatOptions
    value_format: FormatOptions


def row_options(given: Mapping[str, Any]) -> RowOptions:
    """These alone, before it is known for which kind of query. Raises OptionError."""
    others, registry = _divided(given)
    values = Values(sorted_out(others, OPTIONS)[0], OPTIONS)
    subscription = _subscription(values)
    topics = subscription.topics or tuple(sorted({one.topic for one in subscription.partitions}))
    key, value = _formats(values, registry)
    return RowOptions(_columns(values), topics, key, value)


def _divided(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of the client of a registry by themselves."""
    registry = {
        name.lower(): str(value) for name, value in given.items() if name.lower().startswith(REGISTRY_PREFIX)
    }
    return {name: value for name, value in given.items() if name.lower() not in registry}, registry


def _formats(values: Values, registry: Mapping[str, str]) -> tuple[FormatOptions, FormatOptions]:
    return read_format(values, "key", registry), read_format(values, "value", registry)


def source_options(given: Mapping[str, Any], query: Query) -> SourceOptions:
    """Raises OptionError."""
    others, registry = _divided(given)
    values, client = client_options(others, OPTIONS, _REFUSED)
    for option in OPTIONS:
        if query not in option.query and values.has(option.name) and option.query is Query.BATCH:
            raise OptionError(f"the option {option.name} is for batches, and this is a stream")
    minimum, maximum = values.positive("minOffsetsPerTrigger"), values.positive("maxOffsetsPerTrigger")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise values.wrong("minOffsetsPerTrigger", f"at most maxOffsetsPerTrigger, which is {maximum}")
    delay = milliseconds(values.text("maxTriggerDelay", "15m"))
    if delay is None:
        raise values.wrong("maxTriggerDelay", "a time with its unit, such as 15m")
    starting, ending = _starting(values, query), _ending(values)
    _compare(starting, ending)
    key_format, value_format = _formats(values, registry)
    return SourceOptions(
        client=client,
        subscription=_subscription(values),
        columns=_columns(values),
        starting=starting,
        ending=ending,
        key_format=key_format,
        value_format=value_format,
        late_start_fails=values.one_of("startingOffsetsByTimestampStrategy", "error", ("error", "latest"))
        == "error",
        fail_on_data_loss=values.boolean("failOnDataLoss", True),
        min_partitions=values.positive("minPartitions"),
        max_records=values.positive("maxRecordsPerPartition"),
        max_offsets=maximum,
        min_offsets=minimum,
        max_delay_s=delay / 1000,
        idle_s=_idle(values),
        committed=values.one_of(
            "kafka.isolation.level", "read_committed", ("read_committed", "read_uncommitted")
        )
        == "read_committed",
        check_crcs=values.boolean("kafka.check.crcs", True),
        fetch_bytes=values.positive("kafka.max.partition.fetch.bytes") or 4 << 20,
        poll_timeout_s=(values.positive("kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
    )


def _idle(values: Values) -> float | None:
    if not values.has("idleAfter"):
        return None
    idle = milliseconds(values.text("idleAfter"))
    if not idle:
        raise values.wrong("idleAfter", "a time with its unit, such as 30s, above 0")
    return idle / 1000


def _subscription(values: Values) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if values.has(name)]
    if len(given) != 1:
        said = "none of them is given" if not given else f"{' and '.join(given)} are given"
        raise OptionError(f"one of the options subscribe, subscribePattern and assign is needed; {said}")
    if given[0] == "subscribe":
        topics = tuple(
            sorted({name for part in values.text("subscribe").split(",") if (name := part.strip())})
        )
        if not topics:
            raise values.wrong("subscribe", "the names of topics, separated by commas")
        return Subscription(topics=topics)
    if given[0] == "subscribePattern":
        pattern = values.text("subscribePattern")
        try:
            re.compile(pattern)
        except (re.error, RecursionError):
            pattern = ""
        if not pattern:
            raise values.wrong("subscribePattern", "a regular expression")
        return Subscription(pattern=pattern)
    return Subscription(partitions=values.json("assign", 'JSON such as {"topic": [0, 1]}', _assigned))


def _assigned(read: Any) -> tuple[TopicPartition, ...]:
    found = {
        TopicPartition(topic, _partition(number))
        for topic, numbers in read.items()
        for number in list(numbers)
    }
    if not found:
        raise ValueError("no partitions")
    return tuple(sorted(found))


def _partition(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 31:
        raise ValueError("no number of a partition")
    return number


def _columns(values: Values) -> tuple[str, ...]:
    if not values.has("columns"):
        return (*COLUMNS, HEADERS) if values.boolean("includeHeaders", False) else COLUMNS
    known = {name.lower(): name for name in ALL_COLUMNS}
    names = [part.strip().lower() for part in values.text("columns").split(",")]
    if not names or len(set(names)) < len(names) or not known.keys() >= set(names):
        raise values.wrong("columns", f"{', '.join(known.values())}, each at most once")
    values.boolean("includeHeaders", False)
    return tuple(known[name] for name in names)


# Where a query begins and ends


def _starting(values: Values, query: Query) -> Bound:
    default = By.EARLIEST if query is Query.BATCH else By.LATEST
    place = _place(values, "starting", default, refused=None)
    if query is Query.BATCH and (
        place.by is By.LATEST or (place.by is By.OFFSET and _LATEST in place.of.values())
    ):
        raise values.wrong(
            "startingOffsets", "earliest, or offsets of which none is -1: a batch ends at the latest"
        )
    return place


def _ending(values: Values) -> Bound:
    return _place(values, "ending", By.LATEST, refused=By.EARLIEST)


def _place(values: Values, which: str, default: By, refused: By | None) -> Bound:
    once, times, offsets = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
    if values.has(once):
        time = values.number(once)
        if time < 0:
            raise values.wrong(once, "milliseconds since 1970")
        return Bound(By.ONE_TIME, once, time=time)
    if values.has(times):
        of = values.json(
            times, 'JSON such as {"topic": {"0": 1700000000000}}', lambda read: _numbers(read, 0)
        )
        return Bound(By.TIME, times, of)
    word = values.text(offsets, default.value).lower()
    allowed = [by for by in (By.EARLIEST, By.LATEST) if by is not refused]
    for by in allowed:
        if word == by.value:
            return Bound(by, offsets)
    said = f"{' or '.join(by.value for by in allowed)}, or JSON such as {_OFFSETS}"
    least = _LATEST if refused is By.EARLIEST else _EARLIEST
    return Bound(By.OFFSET, offsets, values.json(offsets, said, lambda read: _numbers(read, least)))


def _numbers(read: Any, least: int) -> dict[TopicPartition, int]:
    found = {}
    for topic, numbers in read.items():
        for partition, number in numbers.items():
            if not re.fullmatch("0|[1-9][0-9]{0,9}", partition):
                raise ValueError("no number of a partition")
            if type(number) is not int or not least <= number < 1 << 63:
                raise ValueError("no offset")
            found[TopicPartition(topic, _partition(int(partition)))] = number
    if not found:
        raise ValueError("no partitions")
    return found


def _compare(starting: Bound, ending: Bound) -> None:
    if starting.by is not ending.by or starting.by not in (By.OFFSET, By.TIME):
        return
    if starting.of.keys() != ending.of.keys():
        raise OptionError(f"the options {starting.option} and {ending.option} name different partitions")
    for partition, start in starting.of.items():
        end = ending.of[partition]
        if start > end >= 0:
            raise OptionError(
                f"the option {starting.option} has {start} for {partition}, which is behind the {end} of"
                f" {ending.option}"
            )
