"""All types of filters with their options: the one place that names them. The page of the reference and the command
`filters` are made from it, and what makes an instance is found by it.

Where Kafka Connect has the same transform, options have the names that they have there. It is a table, and as long as
there are types.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from leafcuttr_filters.definitions import kinds
from leafcuttr_filters.definitions.kinds import Kind

Check: TypeAlias = Callable[[Mapping[str, Any]], str | None]


class FilterOption(NamedTuple):
    """One option of a type. `default` is as a person would write it; None is none."""

    name: str
    kind: Kind
    help: str
    default: str | None = None
    required: bool = False


class FilterType(NamedTuple):
    """One type of filters."""

    name: str
    summary: str
    make: str
    """`module:function` in this package, of a context and the values of the options."""
    options: tuple[FilterOption, ...]
    example: str
    """A whole definition."""
    connect: str = ""
    """The transform of Kafka Connect that it corresponds to."""
    on_error: str = "dead-letter"
    """What becomes of a record that it cannot handle, unless `on.error` says something else."""
    check: Check | None = None
    """Why the values do not go together, in one clause."""


OVER: Final = kinds.choice("drop", "dead-letter")

COMMON: Final = (
    FilterOption(
        "when", kinds.condition, "The filter is for records for which this is true; others pass as they are."
    ),
    FilterOption(
        "on.error",
        kinds.choice("drop", "dead-letter", "fail"),
        "What becomes of a record that the filter cannot handle. `fail` refuses the batch; in a relay the record is "
        "poison.",
    ),
)

_PART: Final = FilterOption("part", kinds.choice("value", "key"), "Which part of the record.", "value")
_DECODE: Final = FilterOption(
    "decode",
    kinds.choice("json", "schema"),
    "How that part is read: as JSON, or by the schema whose id it begins with, or that a header names. It is written "
    "in the same way.",
    "json",
)
_DOCUMENT: Final = (_PART, _DECODE)


def _needs_one(*names: str) -> Check:
    def check(values: Mapping[str, Any]) -> str | None:
        if any(values[name] is not None for name in names):
            return None
        return f"one of {', '.join(names)} is needed"

    return check


def _why_no_match(values: Mapping[str, Any]) -> str | None:
    if values["header"] is None and (
        values["header.value"] is not None or values["header.regex"] is not None
    ):
        return "header.value and header.regex need header, the name of the header"
    if values["field"] is None and (values["field.value"] is not None or values["field.regex"] is not None):
        return "field.value and field.regex need field"
    return _needs_one(
        "topic", "topic.regex", "key", "key.regex", "header", "value.regex", "field", "condition"
    )(values)


def _why_no_mask(values: Mapping[str, Any]) -> str | None:
    if values["fields"] is None and values["patterns"] is None and values["regex"] is None:
        return "one of fields, patterns, regex is needed"
    return None


def _why_no_copies(values: Mapping[str, Any]) -> str | None:
    return "by=field needs field" if values["by"] == "field" and values["field"] is None else None


def _why_no_insert(values: Mapping[str, Any]) -> str | None:
    if (values["static.field"] is None) != (values["static.value"] is None):
        return "static.field and static.value belong together"
    return _needs_one("static.field", "topic.field", "timestamp.field", "key.field")(values)


def _why_no_replace(values: Mapping[str, Any]) -> str | None:
    return _needs_one("include", "exclude", "renames")(values)


def _why_no_hash(values: Mapping[str, Any]) -> str | None:
    if values["salt"] is not None and values["salt.file"] is not None:
        return "salt and salt.file exclude each other"
    return None


def _why_no_times(values: Mapping[str, Any]) -> str | None:
    if values["target.type"] == "string" and values["format"] is None:
        return "target.type=string needs format"
    return None


def _why_no_route(values: Mapping[str, Any]) -> str | None:
    if (values["regex"] is None) == (values["topic.format"] is None):
        return "either regex with replacement, or topic.format is needed"
    if (values["regex"] is None) != (values["replacement"] is None):
        return "regex and replacement belong together"
    if values["regex"] is None:
        return None
    from leafcuttr_filters.transforms.replacements import why_no_replacement

    return why_no_replacement(values["regex"], values["replacement"])


def _why_no_headers(values: Mapping[str, Any]) -> str | None:
    if len(values["fields"]) != len(values["headers"]):
        return "fields and headers have to be of the same number"
    return None


_MATCHES: Final = (
    FilterOption(
        "topic", kinds.texts, "The topic is one of these; `*` and `?` stand for any characters, and one."
    ),
    FilterOption(
        "topic.regex", kinds.search, "The name of the topic has a match of this regular expression."
    ),
    FilterOption("key", kinds.texts, "The key, as UTF-8, is one of these."),
    FilterOption("key.regex", kinds.search, "The key, as UTF-8, has a match of this regular expression."),
    FilterOption("header", kinds.text, "There is a header of this name."),
    FilterOption("header.value", kinds.texts, "Its value, as UTF-8, is one of these."),
    FilterOption(
        "header.regex", kinds.search, "Its value, as UTF-8, has a match of this regular expression."
    ),
    FilterOption("value.regex", kinds.search, "The value, as UTF-8, has a match of this regular expression."),
    FilterOption("field", kinds.path, "The value has this field, and it is not null."),
    FilterOption("field.value", kinds.texts, "The field, as text, is one of these."),
    FilterOption("field.regex", kinds.search, "The field, as text, has a match of this regular expression."),
    FilterOption("condition", kinds.condition, "This condition is true."),
    _DECODE,
)

TYPES: Final = (
    FilterType(
        "allow",
        "keeps the records that match all that is given, and drops others",
        "selecting.matching:make_allow",
        _MATCHES,
        "allow key.regex=^user- field=country field.value=se,no",
        "Filter with a predicate",
        check=_why_no_match,
    ),
    FilterType(
        "deny",
        "drops the records that match all that is given, and keeps others",
        "selecting.matching:make_deny",
        _MATCHES,
        "deny condition='value.level == \"debug\"'",
        "Filter with a predicate",
        check=_why_no_match,
    ),
    FilterType(
        "tombstones",
        "drops records without a value",
        "selecting.matching:make_tombstones",
        (),
        "tombstones",
        "Filter with RecordIsTombstone",
    ),
    FilterType(
        "sample",
        "keeps a share of the records",
        "selecting.sampling:make_sample",
        (
            FilterOption("share", kinds.share, "How many of them, as 0.1 for a tenth.", required=True),
            FilterOption(
                "by",
                kinds.choice("record", "key"),
                "`key` keeps all records of a share of the keys; those without a key are of one key.",
                "record",
            ),
        ),
        "sample share=0.1 by=key",
    ),
    FilterType(
        "rate",
        "lets so many records pass in a time, and drops or sets aside those above",
        "selecting.rates:make_rate",
        (
            FilterOption("records", kinds.count, "How many.", required=True),
            FilterOption("per", kinds.duration, "In which time.", "1s"),
            FilterOption("by", kinds.choice("topic", "key"), "Of the topic, or of each key.", "topic"),
            FilterOption("keys", kinds.count, "Of how many keys it keeps count: those seen last.", "10000"),
            FilterOption("over", OVER, "What becomes of those above.", "drop"),
        ),
        "rate records=100 per=1s by=key",
    ),
    FilterType(
        "dedupe",
        "drops copies: records that are like one that came within a time",
        "selecting.copies:make_dedupe",
        (
            FilterOption(
                "by",
                kinds.choice("key", "value", "key-and-value", "field"),
                "What is alike. A record without it, and one without a key, is no copy.",
                "key",
            ),
            FilterOption("field", kinds.path, "The field, for `by=field`."),
            FilterOption("window", kinds.duration, "Within which time.", "10m"),
            FilterOption("most", kinds.count, "How many records it remembers, 100 bytes each.", "100000"),
            FilterOption("over", OVER, "What becomes of copies.", "drop"),
            _DECODE,
        ),
        "dedupe by=field field=order.id window=1h",
        check=_why_no_copies,
    ),
    FilterType(
        "age",
        "drops records whose timestamp is too far from now",
        "selecting.ages:make_age",
        (
            FilterOption("max", kinds.duration, "How old a record may be."),
            FilterOption("ahead", kinds.duration, "How far in the future its timestamp may be."),
            FilterOption("over", OVER, "What becomes of others.", "drop"),
        ),
        "age max=7d ahead=1h",
        check=_needs_one("max", "ahead"),
    ),
    FilterType(
        "extract",
        "takes a field in the place of the whole value",
        "transforms.fields:make_extract",
        (
            FilterOption(
                "field", kinds.path, "Which one. Where it is missing the value becomes null.", required=True
            ),
            FilterOption(
                "output",
                kinds.choice("json", "text"),
                "How it is written: a text with quotes, or without.",
                "json",
            ),
            *_DOCUMENT,
        ),
        "extract field=payload.after",
        "ExtractField",
    ),
    FilterType(
        "insert",
        "adds fields: a text, the topic, the timestamp or the key",
        "transforms.fields:make_insert",
        (
            FilterOption("static.field", kinds.path, "The field that gets a text."),
            FilterOption("static.value", kinds.text, "That text."),
            FilterOption("topic.field", kinds.path, "The field that gets the name of the topic."),
            FilterOption(
                "timestamp.field", kinds.path, "The field that gets the timestamp, in milliseconds."
            ),
            FilterOption("key.field", kinds.path, "The field that gets the key, as text."),
            *_DOCUMENT,
        ),
        "insert static.field=site static.value=plant-7 timestamp.field=at",
        "InsertField",
        check=_why_no_insert,
    ),
    FilterType(
        "replace",
        "keeps some fields, takes fields out, or renames them",
        "transforms.fields:make_replace",
        (
            FilterOption("include", kinds.paths, "Only these stay."),
            FilterOption("exclude", kinds.paths, "These go, also where `include` names them."),
            FilterOption("renames", kinds.names, "Fields of the document itself with their new names."),
            *_DOCUMENT,
        ),
        "replace exclude=card.cvc,internal renames=id:orderId",
        "ReplaceField",
        check=_why_no_replace,
    ),
    FilterType(
        "mask",
        "masks fields, or e-mail addresses, card and phone numbers wherever they are",
        "transforms.masking:make_mask",
        (
            FilterOption(
                "fields",
                kinds.paths,
                "Which ones; a path goes through lists to each element. With `patterns` or `regex` only what matches "
                "in them is masked. "
                "Without `fields` all texts of the document are.",
            ),
            FilterOption(
                "replacement",
                kinds.text,
                "What stands in the place. Without it a field becomes empty, 0 or false, and of what matches every "
                "letter and digit becomes `*`.",
            ),
            FilterOption(
                "patterns",
                kinds.some_of("email", "card", "phone"),
                "What is masked: e-mail addresses, card numbers (with Luhn's check digit), phone numbers.",
            ),
            FilterOption("regex", kinds.replaceable, "What else is masked."),
            FilterOption(
                "keep",
                kinds.number_from_0,
                "So many letters and digits at the end of what matches stay.",
                "0",
            ),
            *_DOCUMENT,
        ),
        "mask patterns=card,email keep=4",
        "MaskField",
        on_error="fail",
        check=_why_no_mask,
    ),
    FilterType(
        "hash",
        "replaces fields by a hash, so that equal ones stay equal",
        "transforms.hashing:make_hash",
        (
            FilterOption(
                "fields",
                kinds.paths,
                "Which ones, in lists of each element. Null stays null.",
                required=True,
            ),
            FilterOption(
                "algorithm", kinds.choice("sha256", "sha512"), "Which hash; it is written in hex.", "sha256"
            ),
            FilterOption("salt", kinds.text, "The key of an HMAC, without which short texts can be guessed."),
            FilterOption("salt.file", kinds.text, "A file with the same, without the end of its last line."),
            *_DOCUMENT,
        ),
        "hash fields=user.email salt.file=/etc/leafcuttr/salt",
        on_error="fail",
        check=_why_no_hash,
    ),
    FilterType(
        "flatten",
        "makes fields in fields fields of the document itself",
        "transforms.flattening:make_flatten",
        (FilterOption("delimiter", kinds.text, "What stands between the names.", "."), *_DOCUMENT),
        "flatten delimiter=_",
        "Flatten",
    ),
    FilterType(
        "cast",
        "makes fields, or the whole, of another type",
        "transforms.casting:make_cast",
        (
            FilterOption("spec", kinds.casts, "Which ones, and to what. Null stays null.", required=True),
            *_DOCUMENT,
        ),
        "cast spec=total:float64,order.id:string",
        "Cast",
    ),
    FilterType(
        "timestamp",
        "converts a time between a text and numbers",
        "transforms.times:make_timestamp",
        (
            FilterOption("field", kinds.path, "Which one; without it the whole."),
            FilterOption(
                "target.type",
                kinds.choice("string", "unix", "Date", "Time", "Timestamp"),
                "What it becomes. `Date` and `Time` are the day and the time of day in milliseconds, `Timestamp` "
                "milliseconds.",
                required=True,
            ),
            FilterOption("format", kinds.java_format, "How the text is read and written, in UTC."),
            FilterOption(
                "unix.precision",
                kinds.choice("seconds", "milliseconds", "microseconds", "nanoseconds"),
                "Of numbers, that are read and written.",
                "milliseconds",
            ),
            *_DOCUMENT,
        ),
        "timestamp field=at target.type=unix format=yyyy-MM-dd'T'HH:mm:ssX",
        "TimestampConverter",
        check=_why_no_times,
    ),
    FilterType(
        "route",
        "sends records to another topic; in relays, not on produce",
        "transforms.routing:make_route",
        (
            FilterOption("regex", kinds.replaceable, "The whole name of the topic matches this."),
            FilterOption(
                "replacement", kinds.text, "The name of the other topic, with `$1` or `${name}` for groups."
            ),
            FilterOption("topic.format", kinds.text, "The name with `${topic}` and `${timestamp}` in it."),
            FilterOption(
                "timestamp.format",
                kinds.java_format,
                "How the timestamp is written there, in UTC.",
                "yyyyMMdd",
            ),
        ),
        "route regex=(.*)-v1 replacement=$1",
        "RegexRouter, TimestampRouter",
        check=_why_no_route,
    ),
    FilterType(
        "headers",
        "copies fields to headers, or moves them there",
        "transforms.headers:make_headers",
        (
            FilterOption(
                "fields",
                kinds.paths,
                "Which ones; a missing one becomes a header without a value.",
                required=True,
            ),
            FilterOption(
                "headers", kinds.texts, "The names of the headers, one for each field.", required=True
            ),
            FilterOption(
                "operation", kinds.choice("copy", "move"), "Whether they stay where they are.", "copy"
            ),
            *_DOCUMENT,
        ),
        "headers fields=type,tenant.id headers=type,tenant",
        "HeaderFrom",
        check=_why_no_headers,
    ),
    FilterType(
        "python",
        "a function of yours",
        "functions:make_python",
        (
            FilterOption(
                "path",
                kinds.text,
                "`module:function`, or a file: `name.py`, `name.py:function`.",
                required=True,
            ),
            FilterOption("config", kinds.text, "What the function gets as `config`: JSON, or a text."),
        ),
        'python path=filters/allowed.py config=\'{"countries": ["se"]}\'',
        "",
        on_error="fail",
    ),
)
