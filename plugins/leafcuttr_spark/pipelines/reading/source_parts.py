"""The keys of a source."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines.reading.format_parts import (
    CLUSTER,
    FILE_FORMATS,
    FORMATS,
    TOPIC_NAME,
    decoding,
)
from leafcuttr_spark.pipelines.reading.kinds import (
    PROPERTIES,
    WRONG,
    At,
    Choice,
    Ddl,
    Defs,
    Duration,
    Flag,
    Key,
    Kind,
    Moment,
    Named,
    Part,
    Text,
    Texts,
    Whole,
    WrongValueError,
)
from leafcuttr_spark.pipelines.reading.yaml_nodes import Entries, Node, Scalar


class _Offsets(Kind):
    """Offsets of partitions: `{"0": 23}` of one topic, or by topic."""

    words = 'offsets of partitions, as {"0": 23}, or by topic: {orders: {"0": 23}}'

    def read(self, node: Node, at: At) -> dict[str, dict[int, int]]:
        if not isinstance(node, Entries) or not node.entries:
            raise self.refuse(node)
        if all(isinstance(value, Scalar) for _, value in node.entries):
            return {"": self._partitions(node, at)}
        return {at.text(topic): self._partitions(value, at) for topic, value in node.entries}

    def _partitions(self, node: Node, at: At) -> dict[int, int]:
        if not isinstance(node, Entries) or not node.entries:
            raise self.refuse(node)
        found = {}
        for key, value in node.entries:
            number = at.read(Whole(0), key)
            offset = at.within(key.text).read(Whole(0), value)
            if number is not WRONG and offset is not WRONG:
                found[number] = offset
        return found

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": "object"}


def _make_start(values: Mapping[str, Any], node: Node, at: At) -> model.Start:
    if len(values) != 1:
        raise WrongValueError(node.line, "allowed: earliest, latest, or one of timestamp and offsets")
    [(at_, value)] = values.items()
    if at_ == "timestamp":
        return model.Start("timestamp", timestamp_ms=value)
    if at_ == "offsets":
        return model.Start("offsets", offsets=value)
    return model.Start(value)


START: Final = Part(
    "start",
    "Where a pipeline without a checkpoint begins: `earliest`, `latest`, or a mapping with one of these.",
    (
        Key("timestamp", Moment(), "At the first record of each partition that is as late."),
        Key("offsets", _Offsets(), "At these offsets; other partitions at the earliest."),
    ),
    _make_start,
    short=Choice(("earliest", "latest")),
    short_key="word",
    example="{timestamp: 2026-01-01T00:00:00Z}",
)


def _make_file_origin(values: Mapping[str, Any], node: Node, at: At) -> model.FileOrigin:
    path = values["path"]
    format = values.get("format") or _format_of(path)
    if format is None:
        raise WrongValueError(
            node.line, f"the name {path} has no known ending; format is needed: {_FILE_WORDS}"
        )
    return model.FileOrigin(path, format, values.get("schema"), values.get("options", {}))


_FILE_WORDS: Final = Choice(FILE_FORMATS).words
_ENDINGS: Final = {**{name: name for name in FILE_FORMATS}, "jsonl": "json", "txt": "text"}


def _format_of(path: str) -> Any:
    parts = path.rstrip("/").rpartition("/")[2].removesuffix(".gz").split(".")
    return _ENDINGS.get(parts[-1]) if parts[1:] else None


FILE: Final = Part(
    "file-of-a-source",
    "Files in one of Spark's formats: a path, or a mapping.",
    (
        Key(
            "path",
            Text("a path or an address of Spark"),
            "A file or a folder, from the folder of the pipeline's file, or an address as `s3a://...`.",
            required=True,
        ),
        Key("format", Choice(FILE_FORMATS), "The format.", "by the ending of the name"),
        Key("schema", Ddl(), "The columns. A stream of files needs it; a table can do without."),
        Key("options", PROPERTIES, "Options of Spark for this format, as `header`."),
    ),
    _make_file_origin,
    short=Text("a path or an address of Spark"),
    short_key="path",
    example="{path: regions.csv, options: {header: true}}",
)


def _make_table(values: Mapping[str, Any], node: Node, at: At) -> model.Table:
    return model.Table(values.get("key", ("key",)), values.get("refresh"), values.get("global", False))


TABLE: Final = Part(
    "table",
    "The source is a table: the last record of each key counts, and one without a value deletes it.",
    (
        Key(
            "key",
            Texts("a column, or a list of columns"),
            "The columns of the key. Of a topic they are what its records have as key.",
            "key",
        ),
        Key(
            "global",
            Flag(),
            "Whether each executor has the whole table: a lookup then needs no shuffle.",
            "false; of files true",
        ),
        Key("refresh", Duration(), "After which time a global table is read anew.", "never"),
    ),
    _make_table,
    short=Texts("a column, or a list of columns"),
    short_key="key",
    example="{key: id}",
)

_TOPIC_ONLY: Final = ("value", "key", "columns", "start", "via", "cluster", "options")


def _make_source(values: Mapping[str, Any], node: Node, at: At) -> model.Source | None:
    given = [name for name in ("topic", "topics", "pattern", "file") if name in values]
    if len(given) != 1:
        said = "none of them is given" if not given else f"{' and '.join(given)} are given"
        at.wrong(node.line, f"one of topic, topics, pattern and file is needed; {said}")
        return None
    origin: model.Origin
    if given == ["file"]:
        for name in _TOPIC_ONLY:
            if name in values:
                at.within(name).wrong(node.line, "is for topics, not for files")
        if "watermark" in values and "time" not in values:
            at.wrong(
                node.line, "files have no time of their own: watermark needs time, the column of event time"
            )
        origin = values["file"]
    else:
        origin = _topic_origin(values, node, at)
    table = values.get("table")
    if table is not None and "watermark" in values:
        at.within("watermark").wrong(
            node.line, "a table has no watermark: rows of any age count until there is a newer one"
        )
    return model.Source(
        origin=origin,
        time=values.get("time"),
        watermark_ms=values.get("watermark"),
        idle_ms=values.get("idle"),
        table=table,
        line=node.line,
    )


def _topic_origin(values: Mapping[str, Any], node: Node, at: At) -> model.TopicOrigin:
    topics = values.get("topics", (values["topic"],) if "topic" in values else ())
    start: model.Start = values.get("start", model.Start())
    if "" in start.offsets:
        if len(topics) != 1:
            at.within("start").wrong(
                node.line, "with several topics offsets are given by topic: {orders: {0: 23}}"
            )
        start = model.Start("offsets", offsets=dict.fromkeys(topics[:1], start.offsets[""]))
    value = values.get("value", model.BYTES)
    if value.format == "json" and value.columns is None:
        at.within("value").wrong(
            node.line,
            "json needs columns: its fields with their types, as {format: json, columns: {id: string}}",
        )
    return model.TopicOrigin(
        topics=topics,
        pattern=values.get("pattern"),
        value=value,
        key=values.get("key", model.BYTES),
        columns=values.get("columns", {}),
        start=start,
        cluster=values.get("cluster", model.MAIN),
        via=values.get("via", "leafcuttr"),
        options=values.get("options", {}),
    )


SOURCE: Final = Part(
    "source",
    "A source: its name is the name of a frame.",
    (
        Key("topic", TOPIC_NAME, "The topic. One of `topic`, `topics`, `pattern` and `file` is needed."),
        Key("topics", Texts("names of topics"), "Several topics."),
        Key(
            "pattern",
            Text("a regular expression"),
            "All topics whose whole name it matches, new ones among them.",
        ),
        Key("file", FILE, FILE.what),
        CLUSTER,
        Key(
            "value",
            decoding("value-of-a-source", "How the value of records is read.", FORMATS),
            "How the value of records is read: a format, or a mapping. Each field is a column; of `text` and"
            " `bytes` the whole is the column `value`.",
            "bytes",
        ),
        Key(
            "key",
            decoding("key-of-a-source", "How the key of records is read.", (*FORMATS, "none")),
            "How the key is read, into one column `key`; `none` leaves it out.",
            "bytes",
        ),
        Key(
            "columns",
            Named(Choice(model.RECORD_PARTS), "names of columns with parts of the record"),
            "More columns, of the record: names with one of " + ", ".join(model.RECORD_PARTS) + ".",
        ),
        Key("start", START, START.what, "earliest"),
        Key(
            "time",
            Text("the name of a column"),
            "The column of event time, a timestamp.",
            "the record's own timestamp; with watermark as a column `timestamp`",
        ),
        Key(
            "watermark",
            Duration(least=0),
            "How much later than the latest other rows may come. Windows need it, and joins of streams.",
        ),
        Key(
            "idle",
            Duration(never=True),
            "After which time without records the source no longer holds the watermark.",
            "as the pipeline says",
        ),
        Key("table", TABLE, TABLE.what),
        Key(
            "via",
            Choice(("leafcuttr", "kafka")),
            "Our data source, or Spark's Kafka connector, where its jar is there.",
            "leafcuttr",
        ),
        Key("options", PROPERTIES, "More options of the data source by their names, as `failOnDataLoss`."),
    ),
    _make_source,
)
