"""A pipeline as typed objects: `reading` makes them of a file, and programs in Python make them themselves. Without
Spark.

Times are whole milliseconds throughout (`..._ms`). Expressions are Spark SQL's. Variables are filled in; `line` is the
line of the file that a part comes from, 0 for one that was made in Python.

What columns a source of topics has, in this order:

1. The key, as one column `key` (`Decoding.as_` says otherwise; there is none with the format `none`).
2. The value. Of a format with fields (json, avro, json-schema, protobuf) each field is a column, unless `Decoding.as_`
   gives one name for all, a struct. Of `text` and `bytes` it is one column `value`.
3. `columns`: parts of the record.
4. `timestamp`, where the source has a watermark and does not name a column of time.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from leafcuttr_spark.pipelines.operations import Branch, StepOperation, inputs_of, takes_from

MAIN: Final = "main"
"""The cluster of sources and sinks that name none."""
RECORD_TIME: Final = "timestamp"
"""The column of the record's own timestamp, where a source names no column of event time."""
RECORD_PARTS: Final = ("key", "topic", "partition", "offset", "timestamp", "headers")
"""What `TopicOrigin.columns` can take of a record, with the types of the data source; the key as bytes."""

SchemaIdPlace: TypeAlias = Literal["any", "payload", "header", "none"]
"""Where Confluent's framing has the id of a schema: `any` is a header, else the payload; `none`: there is no framing,
all records have the given schema."""

# Sources


@dataclass(frozen=True, slots=True)
class Decoding:
    """How keys or values of records are read."""

    format: str
    """A name of `leafcuttr_spark.formats`: bytes, text, json, avro, json-schema, protobuf; of a key also none."""
    columns: str | None = None
    """Of json: its fields as DDL (`id STRING, amount DOUBLE`)."""
    schema: Path | None = None
    """A file with the reader's schema."""
    subject: str | None = None
    """The subject whose latest schema is the reader's."""
    schema_id: SchemaIdPlace | None = None
    """None: `any` where the pipeline has a registry, otherwise `none`."""
    message: str | None = None
    """Of protobuf: which message of the file, by its full name; None: the first."""
    as_: str | None = None
    """One column of this name for the whole."""


BYTES: Final = Decoding("bytes")


@dataclass(frozen=True, slots=True)
class Start:
    """Where a pipeline without a checkpoint begins to read."""

    at: Literal["earliest", "latest", "timestamp", "offsets"] = "earliest"
    timestamp_ms: int | None = None
    """Since 1970. Partitions without a record as late begin at their end."""
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Offsets by topic and partition; partitions that are not named begin at the earliest."""


@dataclass(frozen=True, slots=True)
class TopicOrigin:
    """Records of topics: of `topics`, or of all whose whole name matches `pattern`."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    value: Decoding = BYTES
    key: Decoding = BYTES
    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of columns to RECORD_PARTS."""
    start: Start = Start()
    cluster: str = MAIN
    via: Literal["leafcuttr", "kafka"] = "leafcuttr"
    """Our data source, or Spark's own connector."""
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the data source by their names: `failOnDataLoss`, `minPartitions`."""


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Files in one of Spark's formats. Of a source that is a table they are read anew; otherwise new ones are rows."""

    path: str
    """A file or folder, which begins at the pipeline's folder, or an address that Spark knows (`s3a://...`)."""
    format: Literal["csv", "json", "parquet", "orc", "text"] = "parquet"
    schema: str | None = None
    """The columns as DDL; None: Spark finds them out, which a stream of files cannot."""
    options: Mapping[str, str] = field(default_factory=dict)


Origin: TypeAlias = TopicOrigin | FileOrigin


@dataclass(frozen=True, slots=True)
class Table:
    """A source of which the last row of each key counts: a changelog. A record without a value deletes its key."""

    key: tuple[str, ...] = ("key",)
    """The columns of the key. Of a topic they are the record's key: the column `key`, or one of the value that is equal
    to it, for a record without a value has nothing else."""
    refresh_ms: int | None = None
    """Of a global table: after which time it is read anew; None: at the start only."""
    is_global: bool = False
    """Whole on each executor, so that lookups need no shuffle. Files always are."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from. Its name is the key in `Pipeline.sources`."""

    origin: Origin
    time: str | None = None
    """The column of event time; None: the record's timestamp, as RECORD_TIME, where there is a watermark."""
    watermark_ms: int | None = None
    """How much later than the latest row others may come; None: there is no watermark."""
    idle_ms: int | None = None
    """After which time without records the source no longer holds the watermark; 0: never; None: as the pipeline's."""
    table: Table | None = None
    line: int = field(default=0, compare=False)

    @property
    def time_column(self) -> str | None:
        """The column of event time, if the rows have one."""
        return self.time or (RECORD_TIME if self.watermark_ms is not None else None)


# Steps


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on frames. Its result is a frame of its name; of a branch the frames have the names of branches."""

    name: str
    operation: StepOperation
    from_: str | None = None
    """The frame that it takes. None in a `Pipeline`: the operation names its frames itself, or none was found."""
    line: int = field(default=0, compare=False)
    index: int = field(default=0, compare=False)
    """Its place among the steps, from 0."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """All frames that it reads."""
        return (*([self.from_] if self.from_ else ()), *inputs_of(self.operation))

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames that it makes."""
        if isinstance(self.operation, Branch):
            default = self.operation.default
            return (*self.operation.conditions, *([default] if default else ()))
        return (self.name,)

    @property
    def part(self) -> str:
        """How errors name it."""
        return f"steps[{self.index}] ({self.name})"


# Sinks


@dataclass(frozen=True, slots=True)
class Encoding:
    """How keys or values of records are made of a row."""

    format: str
    """As `Decoding.format`. Of text and bytes: one column or expression."""
    columns: tuple[str, ...] = ()
    """Which columns. None of them, and no expression: of a value all but the columns of the key."""
    expression: str | None = None
    """Instead of columns: one value."""
    schema: Path | None = None
    subject: str | None = None
    """None: TOPIC-value, TOPIC-key, as Confluent's serializers have it."""
    schema_id: SchemaIdPlace | None = None
    message: str | None = None


JSON: Final = Encoding("json")


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """Records of a topic, all of a batch in one transaction with those of the other topics of the pipeline."""

    topic: str | None = None
    topic_column: str | None = None
    """The column that names the topic of each row; it is not part of the value. One of the two is given."""
    value: Encoding = JSON
    key: Encoding | None = None
    """None: the column `key` where rows have one, otherwise records have no key."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names to expressions."""
    headers_column: str | None = None
    """A column of headers as the data source has it, written before `headers`; it is not part of the value. None: the
    column `headers` where rows have one of that type."""
    partition: str | None = None
    """An expression of the number of the partition; None, or null: the key decides."""
    timestamp: str | None = None
    """An expression of the record's timestamp, a time or milliseconds since 1970; None, or null: when it is written."""
    delivery: Literal["exactly-once", "at-least-once"] = "exactly-once"
    cluster: str = MAIN
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of TopicSink by their names."""


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Files in one of Spark's formats, in a folder for each batch."""

    path: str
    format: Literal["csv", "json", "parquet", "orc", "text"] = "parquet"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A class of the user's, on the contract `leafcuttr_spark.contracts.Sink`."""

    class_: str
    """`package.module:name`."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Given to the class when it is made."""


Target: TypeAlias = TopicTarget | FileTarget | PythonTarget


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go. Its name is the key in `Pipeline.sinks`."""

    from_: str
    target: Target
    line: int = field(default=0, compare=False)


# The whole


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Records that cannot be decoded, at which a function failed, or that came late, go to a topic."""

    topic: str
    stop_after: int | None = None
    """The dead letter of this number in one run stops it: with 1 the first one."""
    stop_above: float | None = None
    """A larger share of the last `window` records stops it: 0.01 is 1 %."""
    window: int = 1000
    """Records."""
    cluster: str = MAIN


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a batch begins."""

    every_ms: int = 1000
    """0: as soon as the one before is done."""
    available_now: bool = False
    """Read what is there in batches, then end."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Which Spark."""

    master: str | None = None
    """None, without `remote`: `local[*]`."""
    remote: str | None = None
    """The address of a Spark Connect server: `sc://host:15002`."""
    config: Mapping[str, str] = field(default_factory=dict)


_SHORT: Final = 4


@dataclass(frozen=True, slots=True)
class Secrets:
    """The values of `${env:...}` and `${file:...}`: `hide` takes them out of whatever is printed."""

    values: frozenset[str] = field(default=frozenset(), repr=False)

    def hide(self, text: str) -> str:
        """The text with `***` for each of them: for a short one where it is a word, else all texts would be full of
        it."""
        for value in sorted(self.values, key=len, reverse=True):
            if len(value) >= _SHORT:
                text = text.replace(value, "***")
            else:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "***", text)
        return text


@dataclass(frozen=True, slots=True)
class Pipeline:
    """From sources through steps to sinks. A step without `from_` gets one: the step before it, the first one the only
    source that is no table."""

    name: str
    sources: Mapping[str, Source]
    steps: Sequence[Step] = ()
    """In order: a step reads frames of sources and of steps before it."""
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    clusters: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: {MAIN: {"bootstrap.servers": "localhost:9092"}}, repr=False
    )
    """Properties of Kafka's clients, by the name of the cluster."""
    registry: Mapping[str, str] | None = field(default=None, repr=False)
    """Properties of Confluent's clients: `schema.registry.url` and others."""
    session: SessionSettings = field(default=SessionSettings(), repr=False)
    checkpoint: str | None = None
    """A folder, or an address that Spark knows; None: below the user's state folder."""
    trigger: Trigger = Trigger()
    records_per_batch: int = 100_000
    """Of all sources together, the first batch too."""
    idle_ms: int = 30_000
    """After which time without records a source no longer holds the watermark; 0: never."""
    state_store: Literal["rocksdb", "memory"] = "rocksdb"
    dead_letters: DeadLetters | None = None
    """None: the first bad record stops the pipeline."""
    late: Literal["count", "dead-letters"] = "count"
    """What becomes of rows that come behind the watermark."""
    file: Path | None = None
    """Where it was read from."""
    secrets: Secrets = field(default=Secrets(), compare=False, repr=False)
    places: Mapping[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)
    """The lines of values in the file, by part and path: `("steps[0] (large)", "filter")`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(_linked(self.sources, self.steps)))

    @property
    def folder(self) -> Path:
        """Where relative paths begin, and modules of Python are found."""
        return self.file.parent if self.file else Path()


def _linked(sources: Mapping[str, Source], steps: Iterable[Step]) -> Iterable[Step]:
    streams = [name for name, source in sources.items() if source.table is None]
    before = streams[0] if len(streams) == 1 else None
    for index, step in enumerate(steps):
        needs = step.from_ is None and takes_from(step.operation)
        yield replace(step, index=index, from_=before if needs else step.from_)
        before = step.frames[0] if len(step.frames) == 1 else None
