"""The keys of a sink."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines.reading.format_parts import (
    ARGUMENTS,
    CLUSTER,
    ENCODED_KEY,
    ENCODED_VALUE,
    EXPRESSION,
    EXPRESSIONS,
    FILE_FORMATS,
    REFERENCE,
    TOPIC_NAME,
)
from leafcuttr_spark.pipelines.reading.kinds import PROPERTIES, At, Choice, Key, Part, Text, Texts
from leafcuttr_spark.pipelines.reading.yaml_nodes import Node


def _make_file_target(values: Mapping[str, Any], node: Node, at: At) -> model.FileTarget:
    return model.FileTarget(
        values["path"],
        values.get("format", "parquet"),
        values.get("partition-by", ()),
        values.get("options", {}),
    )


FILE_TARGET: Final = Part(
    "file-of-a-sink",
    "Files in one of Spark's formats: a path, or a mapping.",
    (
        Key(
            "path",
            Text("a path or an address of Spark"),
            "A folder, from the folder of the pipeline's file, or an address.",
            required=True,
        ),
        Key("format", Choice(FILE_FORMATS), "The format.", "parquet"),
        Key(
            "partition-by",
            Texts("a column, or a list of columns"),
            "A folder for each value of these columns.",
        ),
        Key("options", PROPERTIES, "Options of Spark for this format."),
    ),
    _make_file_target,
    short=Text("a path or an address of Spark"),
    short_key="path",
    example="{path: out/, format: parquet, partition-by: [day]}",
)


def _make_python_target(values: Mapping[str, Any], node: Node, at: At) -> model.PythonTarget:
    return model.PythonTarget(values["class"], values.get("arguments", {}))


PYTHON_TARGET: Final = Part(
    "python-of-a-sink",
    "A class of yours, on the contract `leafcuttr_spark.contracts.Sink`.",
    (
        Key(
            "class",
            REFERENCE,
            "The class, found from the folder of the pipeline's file as well.",
            required=True,
        ),
        Key("arguments", ARGUMENTS, "Given to the class by name when it is made."),
    ),
    _make_python_target,
    short=REFERENCE,
    short_key="class",
    example="{class: mypackage.sinks:Mail, arguments: {to: ops@example.com}}",
)


def _make_topic(values: Mapping[str, Any], node: Node, at: At) -> tuple[str | None, str | None]:
    return values.get("topic"), values.get("column")


TOPIC_OF_SINK: Final = Part(
    "topic-of-a-sink",
    "The topic: its name, or the column that names the topic of each row.",
    (Key("column", Text("the name of a column"), "The column; it is not part of the value.", required=True),),
    _make_topic,
    short=TOPIC_NAME,
    short_key="topic",
    example="{column: target}",
)


_RECORD_ONLY: Final = (
    "value",
    "key",
    "headers",
    "headers-column",
    "partition",
    "timestamp",
    "delivery",
    "cluster",
    "options",
)


def _make_sink(values: Mapping[str, Any], node: Node, at: At) -> model.Sink | None:
    given = [name for name in ("topic", "file", "python") if name in values]
    if len(given) != 1:
        said = "none of them is given" if not given else f"{' and '.join(given)} are given"
        at.wrong(node.line, f"one of topic, file and python is needed; {said}")
        return None
    target: model.Target
    if given == ["topic"]:
        topic, column = values["topic"]
        target = model.TopicTarget(
            topic=topic,
            topic_column=column,
            value=values.get("value", model.JSON),
            key=values.get("key"),
            headers=values.get("headers", {}),
            headers_column=values.get("headers-column"),
            partition=values.get("partition"),
            timestamp=values.get("timestamp"),
            delivery=values.get("delivery", "exactly-once"),
            cluster=values.get("cluster", model.MAIN),
            options=values.get("options", {}),
        )
    else:
        target = values[given[0]]
        for name in _RECORD_ONLY:
            if name in values:
                at.within(name).wrong(node.line, "is for topics")
    return model.Sink(values.get("from", ""), target, line=node.line)


SINK: Final = Part(
    "sink",
    "A sink. Its name is shown where the pipeline runs.",
    (
        Key(
            "from", Text("the name of a frame"), "Which rows.", "the last step; without steps the only source"
        ),
        Key("topic", TOPIC_OF_SINK, TOPIC_OF_SINK.what + " One of `topic`, `file` and `python` is needed."),
        CLUSTER,
        Key("key", ENCODED_KEY, ENCODED_KEY.what, "the column `key`, if there is one"),
        Key("value", ENCODED_VALUE, ENCODED_VALUE.what, "json of all columns but those of the key"),
        Key("headers", EXPRESSIONS, "Headers of the record: names with expressions."),
        Key(
            "headers-column",
            Text("the name of a column"),
            "A column of headers, as sources have it, written before those of `headers`; it is not part of the value.",
        ),
        Key(
            "partition",
            EXPRESSION,
            "The number of the partition.",
            "the key decides, as Java's partitioner does",
        ),
        Key(
            "timestamp",
            EXPRESSION,
            "The record's timestamp: a time, or milliseconds since 1970. Null is when it is written.",
            "when it is written",
        ),
        Key(
            "delivery",
            Choice(("exactly-once", "at-least-once")),
            "By a transaction for each batch, or without.",
            "exactly-once",
        ),
        Key("options", PROPERTIES, "More options of the sink by their names, as `kafka.compression.type`."),
        Key("file", FILE_TARGET, FILE_TARGET.what),
        Key("python", PYTHON_TARGET, PYTHON_TARGET.what),
    ),
    _make_sink,
)
