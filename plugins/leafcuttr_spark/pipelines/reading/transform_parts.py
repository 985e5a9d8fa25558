"""The types of `transform`, after Kafka Connect's transforms: a table of their options, with Connect's names.

They work on columns where Connect's work on fields of a value. What they do to rows is in `running`.
"""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines.operations import Transform
from leafcuttr_spark.pipelines.reading.kinds import (
    WRONG,
    AnyText,
    At,
    Choice,
    Defs,
    Key,
    Kind,
    Make,
    Named,
    Part,
    Text,
    Texts,
    WrongValueError,
    unknown_key,
)
from leafcuttr_spark.pipelines.reading.variables import nearest
from leafcuttr_spark.pipelines.reading.yaml_nodes import Entries, Node, Scalar

_COLUMN: Final = Text("the name of a column")
_COLUMNS: Final = Texts("a column, or a list of columns; fields of structs with dots: order.id")


def _needs_one(*names: str) -> Make:
    def make(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
        if not any(name in values for name in names):
            at.wrong(node.line, f"one of {', '.join(names)} is needed")
        return values

    return make


def _make_insert(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
    if ("static.field" in values) != ("static.value" in values):
        at.wrong(node.line, "static.field and static.value belong together")
    checked: Mapping[str, Any] = _needs_one(
        "static.field", "topic.field", "partition.field", "offset.field", "timestamp.field", "key.field"
    )(values, node, at)
    return checked


def _make_timestamp(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
    if values["target.type"] == "string" and "format" not in values:
        at.wrong(node.line, "target.type string needs format")
    return values


def _make_route(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
    if ("regex" in values) == ("topic.format" in values):
        at.wrong(node.line, "either regex with replacement, or topic.format is needed")
    elif ("regex" in values) != ("replacement" in values):
        at.wrong(node.line, "regex and replacement belong together")
    return values


def _make_headers(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
    if len(values.get("fields", ())) != len(values.get("headers", ())):
        at.wrong(node.line, "fields and headers have to be of the same number")
    checked: Mapping[str, Any] = _needs_one("fields", "insert", "drop")(values, node, at)
    return checked


def _keep(values: Mapping[str, Any], node: Node, at: At) -> Mapping[str, Any]:
    return values


TRANSFORMS: Final = (
    Part(
        "extract",
        "A field in the place of the whole row: the fields of a struct become the columns, anything else the column"
        " `value`. The key stays. ExtractField.",
        (
            Key(
                "field",
                Text("the name of a column, or of a field in it: order.id"),
                "Which one.",
                required=True,
            ),
        ),
        _keep,
        example="{type: extract, field: payload.after}",
    ),
    Part(
        "insert",
        "Adds columns: a text, or what the record has. InsertField.",
        (
            Key("static.field", _COLUMN, "The column that gets a text."),
            Key("static.value", AnyText(), "That text."),
            Key("topic.field", _COLUMN, "The column that gets the name of the topic."),
            Key("partition.field", _COLUMN, "The column that gets the number of the partition."),
            Key("offset.field", _COLUMN, "The column that gets the offset."),
            Key("timestamp.field", _COLUMN, "The column that gets the record's timestamp."),
            Key("key.field", _COLUMN, "The column that gets the record's key, as bytes."),
        ),
        _make_insert,
        example="{type: insert, static.field: site, static.value: plant-7, timestamp.field: at}",
    ),
    Part(
        "replace",
        "Keeps some columns, takes columns out, or renames them. ReplaceField.",
        (
            Key("include", _COLUMNS, "Only these stay."),
            Key("exclude", _COLUMNS, "These go, also where `include` names them."),
            Key("renames", Named(_COLUMN, "old names with new ones"), "Columns with their new names."),
        ),
        _needs_one("include", "exclude", "renames"),
        example="{type: replace, exclude: [cvc, internal], renames: {id: order_id}}",
    ),
    Part(
        "mask",
        "Masks columns: with 0, false or an empty text by their types, or with a replacement. MaskField.",
        (
            Key("fields", _COLUMNS, "Which ones.", required=True),
            Key("replacement", AnyText(), "What stands in the place, of texts and numbers."),
        ),
        _keep,
        example='{type: mask, fields: [card], replacement: "****"}',
    ),
    Part(
        "hash",
        "Replaces columns by a hash, in hex, so that equal ones stay equal. Null stays null.",
        (
            Key("fields", _COLUMNS, "Which ones.", required=True),
            Key("algorithm", Choice(("sha256", "sha512")), "Which hash.", "sha256"),
            Key("salt", Text("a text"), "The key of an HMAC, without which short texts can be guessed."),
        ),
        _keep,
        example='{type: hash, fields: [email], salt: "${file:/etc/leafcuttr/salt}"}',
    ),
    Part(
        "flatten",
        "Makes fields of structs columns. Flatten.",
        (Key("delimiter", Text("a text"), "What stands between the names.", "."),),
        _keep,
        example="{type: flatten, delimiter: _}",
    ),
    Part(
        "timestamp",
        "Converts a time between a text, a number and a timestamp. TimestampConverter.",
        (
            Key("field", _COLUMN, "Which one.", required=True),
            Key(
                "target.type",
                Choice(("string", "unix", "Date", "Time", "Timestamp")),
                "What it becomes. `Time` is the time of day in milliseconds.",
                required=True,
            ),
            Key(
                "format",
                Text("a pattern of Java's DateTimeFormatter"),
                "How the text is read and written, in UTC.",
            ),
            Key(
                "unix.precision",
                Choice(("seconds", "milliseconds", "microseconds", "nanoseconds")),
                "Of numbers, that are read and written.",
                "milliseconds",
            ),
        ),
        _make_timestamp,
        example="{type: timestamp, field: at, target.type: string, format: yyyy-MM-dd}",
    ),
    Part(
        "route",
        "Gives each row the name of a topic in a column, for a sink with `topic: {column: topic}`. RegexRouter,"
        " TimestampRouter.",
        (
            Key(
                "regex",
                Text("a regular expression of Java"),
                "The whole name of the record's topic matches this; of others it stays.",
            ),
            Key("replacement", AnyText(), "The name, with `$1` for groups."),
            Key("topic.format", Text("a text"), "The name with `$${topic}` and `$${timestamp}` in it."),
            Key(
                "timestamp.format",
                Text("a pattern of Java's DateTimeFormatter"),
                "How the timestamp is written there, in UTC.",
                "yyyyMMdd",
            ),
            Key("as", _COLUMN, "The column.", "topic"),
        ),
        _make_route,
        example='{type: route, regex: "(.*)-v1", replacement: $1}',
    ),
    Part(
        "drop-tombstones",
        "Drops records without a value. Filter with RecordIsTombstone.",
        (),
        _keep,
        example="{type: drop-tombstones}",
    ),
    Part(
        "value-to-key",
        "Makes columns the key: one column as it is, several as a struct. They stay in the value too. ValueToKey.",
        (
            Key("fields", _COLUMNS, "Which ones.", required=True),
            Key("as", _COLUMN, "The column of the key.", "key"),
        ),
        _keep,
        example="{type: value-to-key, fields: [customer]}",
    ),
    Part(
        "header",
        "Writes columns and texts into headers, in a column of headers, for a sink with `headers-column: headers`."
        " HeaderFrom, InsertHeader, DropHeaders.",
        (
            Key("fields", _COLUMNS, "Columns that become headers, as text."),
            Key(
                "headers",
                Texts("a name, or a list of names"),
                "The names of the headers, one for each of `fields`.",
            ),
            Key("operation", Choice(("copy", "move")), "Whether the columns stay.", "copy"),
            Key("insert", Named(AnyText(), "names of headers with texts"), "Headers with a text."),
            Key("drop", Texts("a name, or a list of names"), "Headers that go."),
            Key("as", _COLUMN, "The column of headers; it is made where there is none.", "headers"),
        ),
        _make_headers,
        example="{type: header, fields: [tenant], headers: [tenant], operation: move}",
    ),
)
BY_TYPE: Final = {part.name: part for part in TRANSFORMS}
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "hash": {"algorithm": "sha256"},
    "flatten": {"delimiter": "."},
    "timestamp": {"unix.precision": "milliseconds"},
    "route": {"timestamp.format": "yyyyMMdd", "as": "topic"},
    "value-to-key": {"as": "key"},
    "header": {"operation": "copy", "as": "headers", "fields": (), "headers": (), "insert": {}, "drop": ()},
}


def transform(type_: str, options: Mapping[str, Any]) -> Transform:
    """With the defaults of the options that are not given."""
    return Transform(type_, {**_DEFAULTS.get(type_, {}), **options})


class TransformKind(Kind):
    """A mapping with `type` and the options of that type."""

    words = f"a mapping with type ({', '.join(BY_TYPE)}) and its options"

    def read(self, node: Node, at: At) -> Any:
        if isinstance(node, Scalar) and node.text in BY_TYPE:
            node = Entries([(Scalar("type", True, node.line), node)], node.line)
        if not isinstance(node, Entries):
            raise self.refuse(node)
        type_node = node.get("type")
        if not isinstance(type_node, Scalar):
            raise WrongValueError(node.line, f"the key type is missing: {', '.join(BY_TYPE)}")
        type_ = at.text(type_node)
        part = BY_TYPE.get(type_)
        if part is None:
            allowed = ", ".join(BY_TYPE)
            raise WrongValueError(
                type_node.line,
                f"there is no transform {type_[:60]}{nearest(type_, BY_TYPE)}; allowed: {allowed}",
            )
        options = Entries([entry for entry in node.entries if entry[0].text != "type"], node.line)
        if not part.keys and options.entries:
            raise WrongValueError(node.line, unknown_key(options.entries[0][0].text, {"type": None}))
        read = part.read(options, at) if part.keys else {}
        return read if read is WRONG else transform(type_, read)

    def schema(self, defs: Defs) -> dict[str, Any]:
        for part in TRANSFORMS:
            full = part.full_schema(defs)
            properties = {"type": {"const": part.name}, **full["properties"]}
            required = ["type", *full.get("required", ())]
            defs[f"transform-{part.name}"] = {**full, "properties": properties, "required": required}
        return {
            "anyOf": [{"enum": list(BY_TYPE)}, *({"$ref": f"#/$defs/transform-{name}"} for name in BY_TYPE)]
        }
