"""The operations of steps: a table of their keys, and what their values make.

Each operation is one key of a step; its value is short (`filter: amount > 10`) or a mapping with keys of its own. They
are in one module because they are one table, OPERATIONS, and share keys; but for `transform`, which has a table of its
own.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.reading.format_parts import ARGUMENTS, EXPRESSION, EXPRESSIONS, REFERENCE
from leafcuttr_spark.pipelines.reading.kinds import (
    At,
    Choice,
    Ddl,
    Defs,
    Duration,
    Flag,
    Key,
    Kind,
    Named,
    Part,
    Text,
    Texts,
    WrongValueError,
    unknown_key,
)
from leafcuttr_spark.pipelines.reading.transform_parts import TransformKind
from leafcuttr_spark.pipelines.reading.yaml_nodes import Entries, Items, Node, Scalar

_COLUMN: Final = Text("the name of a column")
_COLUMNS: Final = Texts("a column, or a list of columns")
_FRAME: Final = Text("the name of a frame")
_TYPE: Final = Text("a type of Spark SQL, as bigint or decimal(10,2)")


class OperationKey(NamedTuple):
    """One operation as a key of a step."""

    name: str
    kind: Kind
    what: str
    make: Callable[[Any], op.StepOperation]
    """Of what the kind has read."""
    example: str
    """A whole step."""


def _part(
    name: str, what: str, *keys: Key, short: Kind | None = None, short_key: str = "", make: Any = None
) -> Part:
    return Part(name, what, keys, make or (lambda values, node, at: values), short, short_key)


# Windows


def _make_hopping(values: Mapping[str, Any], node: Node, at: At) -> op.Window:
    if values["advance"] > values["size"]:
        raise WrongValueError(node.line, "advance is longer than size: rows between windows would be in none")
    return op.HoppingWindow(values["size"], values["advance"])


def _make_window(values: Mapping[str, Any], node: Node, at: At) -> op.Window:
    if len(values) != 1:
        raise WrongValueError(node.line, "allowed: one of tumbling, hopping, sliding and session")
    [window] = values.values()
    return window  # type: ignore[no-any-return]


WINDOW: Final = Part(
    "window",
    "Windows of event time: one of these.",
    (
        Key(
            "tumbling",
            _part(
                "tumbling",
                "Windows of one size, side by side.",
                Key("size", Duration(), "How long one is.", required=True),
                short=Duration(),
                short_key="size",
                make=lambda values, node, at: op.TumblingWindow(values["size"]),
            ),
            "Windows of one size, side by side: each row is in one. The duration, or `{size: 1m}`.",
        ),
        Key(
            "hopping",
            _part(
                "hopping",
                "Windows of one size that overlap.",
                Key("size", Duration(), "How long one is.", required=True),
                Key("advance", Duration(), "After which time the next one begins.", required=True),
                make=_make_hopping,
            ),
            "Windows of one size that overlap: `{size: 5m, advance: 1m}`.",
        ),
        Key(
            "sliding",
            _part(
                "sliding",
                "Windows whose edges are set by rows.",
                Key(
                    "difference",
                    Duration(),
                    "By how much the times of rows in one window differ at most.",
                    required=True,
                ),
                short=Duration(),
                short_key="difference",
                make=lambda values, node, at: op.SlidingWindow(values["difference"]),
            ),
            "Kafka Streams' sliding windows: rows whose times differ by at most so much. The duration, or"
            " `{difference: 30s}`. What Spark calls a slide is `hopping`.",
        ),
        Key(
            "session",
            _part(
                "session",
                "Windows that end after a pause.",
                Key("gap", Duration(), "How long the pause is.", required=True),
                short=Duration(),
                short_key="gap",
                make=lambda values, node, at: op.SessionWindow(values["gap"]),
            ),
            "Windows that end once a key had no row for so long. The duration, or `{gap: 30m}`.",
        ),
    ),
    _make_window,
    example="{hopping: {size: 5m, advance: 1m}}",
)

_WINDOWED: Final = (
    Key("window", WINDOW, "Windows of event time; results have columns `window_start` and `window_end` too."),
    Key(
        "grace",
        Duration(least=0),
        "How much later than its end a window takes late rows, beside the watermark.",
        "0s",
    ),
    Key(
        "emit",
        Choice(("update", "final")),
        "A row for each change of a result, or one for each window once it is over.",
        "update",
    ),
)
_BY: Final = Key(
    "by", Texts("a column, or a list of columns", empty=True), "The columns of the key.", required=True
)


def _windowed(values: Mapping[str, Any], node: Node, at: At) -> dict[str, Any]:
    """Arguments for an operation that can have a window."""
    window = values.get("window")
    for name in ("grace", "emit"):
        if window is None and name in values and values[name] != "update":
            at.within(name).wrong(node.line, "is for windows: the key window is missing")
    return {"window": window, "grace_ms": values.get("grace", 0), "emit": values.get("emit", "update")}


class _Aggregate(Part):
    """Its other keys are names of columns, with expressions."""

    def values(self, node: Node, at: At) -> dict[str, Any] | None:
        known = {key.name for key in self.keys}
        if not isinstance(node, Entries):
            raise self.refuse(node)
        own = Entries([entry for entry in node.entries if entry[0].text in known], node.line)
        found = super().values(own, at)
        columns = Entries([entry for entry in node.entries if entry[0].text not in known], node.line)
        if not columns.entries:
            at.wrong(
                node.line,
                "there is nothing to compute: names with expressions are missing, as total: sum(amount)",
            )
            return None
        for key, value in columns.entries:
            if not isinstance(value, Scalar):
                at.wrong(key.line, unknown_key(key.text, dict.fromkeys(key.name for key in self.keys)))
                return None
        made = at.read(EXPRESSIONS, columns)
        if found is None or not isinstance(made, dict) or len(made) < len(columns.entries):
            return None
        return {**found, "columns": made}

    def full_schema(self, defs: Defs) -> dict[str, Any]:
        return {**super().full_schema(defs), "additionalProperties": {"type": "string"}}


def _make_aggregate(values: Mapping[str, Any], node: Node, at: At) -> op.Aggregate:
    return op.Aggregate(values["by"], values["columns"], **_windowed(values, node, at))


def _make_count(values: Mapping[str, Any], node: Node, at: At) -> op.Count:
    return op.Count(values["by"], values.get("as", "count"), **_windowed(values, node, at))


_REDUCER: Final = re.compile(r"(first|last)|(max_by|min_by)\s*\((.+)\)", re.DOTALL)


def _make_reduce(values: Mapping[str, Any], node: Node, at: At) -> op.Reduce:
    with_ = values["with"].strip()
    if not _REDUCER.fullmatch(with_):
        at.within("with").wrong(
            node.line,
            f"{with_[:60]!r} is not allowed; allowed: max_by(EXPRESSION), min_by(EXPRESSION), first or last",
        )
    return op.Reduce(values["by"], with_, **_windowed(values, node, at))


# Joins


class _On(Kind):
    """Columns that have to be equal: names on both sides, or a mapping of the left to the right ones."""

    words = "columns of both sides, as [id], or those of the left with those of the right, as {customer: id}"

    def read(self, node: Node, at: At) -> dict[str, str]:
        if isinstance(node, Entries):
            found = Named(_COLUMN, self.words).read(node, at)
            return {left: str(right) for left, right in found.items()}
        return {name: name for name in Texts(self.words).read(node, at)}

    def schema(self, defs: Defs) -> dict[str, Any]:
        both = Texts().schema(defs)["anyOf"]
        return {"anyOf": [*both, {"type": "object", "additionalProperties": {"type": "string"}}]}


def _make_join(values: Mapping[str, Any], node: Node, at: At) -> op.Join:
    if "within" not in values:
        at.wrong(
            node.line,
            "the key within is missing: rows of streams are joined within a time, else their state would grow for ever;"
            " for a table use lookup",
        )
    return op.Join(
        values["with"],
        values["on"],
        values.get("within", 1),
        values.get("kind", "inner"),
        values.get("grace", 0),
    )


# Others


def _make_function(values: Mapping[str, Any], node: Node, at: At) -> op.PythonFunction:
    per = values.get("per", "frame")
    if per == "record" and "columns" not in values:
        at.wrong(node.line, "per: record needs columns: those of the result with their types")
    return op.PythonFunction(values["function"], values.get("arguments", {}), values.get("columns"), per)


class _Branches(Kind):
    """Names of frames with conditions, and `default` with the name of a frame."""

    words = "names of frames with conditions, and default with the name of the frame of all other rows"

    def read(self, node: Node, at: At) -> op.Branch:
        found = Named(EXPRESSION, self.words).read(node, at)
        default = found.pop("default", None)
        if not found:
            raise WrongValueError(node.line, f"there is no branch; allowed: {self.words}")
        if default is not None and not re.fullmatch(r"\w+", default):
            raise WrongValueError(node.line, f"default: {default[:60]!r} is no name of a frame")
        return op.Branch(found, default)

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}


class _Select(Kind):
    """Columns and expressions, in their order."""

    words = "a list of columns and expressions, as [id, upper(name) AS name]"

    def read(self, node: Node, at: At) -> tuple[str, ...]:
        if isinstance(node, Items):
            # `name: expression` is more natural in YAML than a text with AS in it.
            for item in node.items:
                if isinstance(item, Entries):
                    raise WrongValueError(
                        item.line, f"write {_as_text(item)}, in quotes; allowed: {self.words}"
                    )
        return tuple(Texts(self.words).read(node, at))

    def schema(self, defs: Defs) -> dict[str, Any]:
        return Texts().schema(defs)


def _as_text(item: Entries) -> str:
    key, value = item.entries[0] if item.entries else (Scalar("name", True, 0), Scalar("expression", True, 0))
    expression = value.text if isinstance(value, Scalar) else "expression"
    return f'"{expression} AS {key.text}"'


OPERATIONS: Final = (
    OperationKey(
        "filter",
        EXPRESSION,
        "Keeps the rows for which the condition is true; for null it is not.",
        op.Filter,
        "- filter: amount > 10",
    ),
    OperationKey(
        "map",
        EXPRESSIONS,
        "Adds columns, or replaces those of these names. All expressions see the row as it came.",
        op.Map,
        "- map: {total: amount * price}",
    ),
    OperationKey(
        "select",
        _Select(),
        "The columns of the result, and no others; `*` is all.",
        op.Select,
        '- select: [id, total, "upper(name) AS name"]',
    ),
    OperationKey(
        "cast",
        Named(_TYPE, "columns with types"),
        "Columns get another type. A value that the type cannot hold is an error of that record, and never null.",
        op.Cast,
        '- cast: {amount: "decimal(10,2)"}',
    ),
    OperationKey("drop", _COLUMNS, "The row without these columns.", op.Drop, "- drop: [a, b]"),
    OperationKey(
        "rename",
        Named(_COLUMN, "old names with new ones"),
        "Columns get other names, in their places.",
        op.Rename,
        "- rename: {old: new}",
    ),
    OperationKey(
        "flat-map",
        _part(
            "flat-map",
            "A row for each element.",
            Key("explode", EXPRESSION, "An array or a map.", required=True),
            Key(
                "as", _COLUMN, "The new column, the last one; of a map a struct of `key` and `value`.", "item"
            ),
            Key("keep-empty", Flag(), "Whether a row without elements stays, with null.", "false"),
            short=EXPRESSION,
            short_key="explode",
            make=lambda values, node, at: op.FlatMap(
                values["explode"], values.get("as", "item"), values.get("keep-empty", False)
            ),
        ),
        "A row for each element of an array, or each entry of a map.",
        lambda made: made,
        "- flat-map: {explode: items, as: item}",
    ),
    OperationKey(
        "branch",
        _Branches(),
        "Several frames of one: a row goes to the first whose condition is true, or to that of `default`; without"
        " default it is dropped. Steps and sinks take them by their names.",
        lambda made: made,
        "- branch: {large: amount > 100, small: amount > 0, default: rest}",
    ),
    OperationKey(
        "union",
        Texts("a list of frames"),
        "The rows of several frames, which have columns of the same names and types.",
        op.Union,
        "- union: [large, rest]",
    ),
    OperationKey(
        "sql",
        Text("a SELECT"),
        "A SELECT over frames by their names.",
        op.Sql,
        "- sql: SELECT id, count(*) AS n FROM orders GROUP BY id",
    ),
    OperationKey(
        "python",
        _part(
            "python",
            "A function of yours.",
            Key(
                "function",
                REFERENCE,
                "It, found from the folder of the pipeline's file as well.",
                required=True,
            ),
            Key("arguments", ARGUMENTS, "More arguments by name."),
            Key(
                "per",
                Choice(("frame", "record")),
                "`frame`: it takes a DataFrame and gives one. `record`: it takes a dict for each record, and gives a"
                " dict, a list of dicts, or None; what it raises makes a dead letter.",
                "frame",
            ),
            Key("columns", Ddl(), "The columns of the result. With `per: record` they are needed."),
            short=REFERENCE,
            short_key="function",
            make=_make_function,
        ),
        "A function of yours, `package.module:name`.",
        lambda made: made,
        "- python: mypackage.functions:clean",
    ),
    OperationKey(
        "transform",
        TransformKind(),
        "One of Kafka Connect's transforms, on columns; the types are below.",
        lambda made: made,
        "- transform: {type: mask, fields: [card]}",
    ),
    OperationKey(
        "aggregate",
        _Aggregate(
            "aggregate",
            "Rows of a key, and of a window, make one. Other keys are names of columns with aggregate expressions.",
            (_BY, *_WINDOWED),
            _make_aggregate,
        ),
        "Rows of a key, and of a window, make one. Keys beside these are names of columns with aggregate expressions.",
        lambda made: made,
        "- aggregate: {by: [region], window: {tumbling: 1m}, total: sum(amount), orders: count(*)}",
    ),
    OperationKey(
        "count",
        _part(
            "count",
            "How many rows a key has.",
            _BY,
            Key("as", _COLUMN, "The column with the number.", "count"),
            *_WINDOWED,
            short=_COLUMNS,
            short_key="by",
            make=_make_count,
        ),
        "How many rows a key has.",
        lambda made: made,
        "- count: {by: [customer], window: {session: 30m}}",
    ),
    OperationKey(
        "reduce",
        _part(
            "reduce",
            "One row of each key.",
            _BY,
            Key(
                "with",
                Text("max_by(EXPRESSION), min_by(EXPRESSION), first or last"),
                "Which: with the largest or the least value, of equal ones the first; or by event time.",
                required=True,
            ),
            *_WINDOWED,
            make=_make_reduce,
        ),
        "For each key one of its rows, whole.",
        lambda made: made,
        "- reduce: {by: [customer], with: max_by(amount)}",
    ),
    OperationKey(
        "deduplicate",
        _part(
            "deduplicate",
            "The first row of each key.",
            _BY,
            Key("within", Duration(), "For how long a key is remembered, by event time.", "for ever"),
            short=_COLUMNS,
            short_key="by",
            make=lambda values, node, at: op.Deduplicate(values["by"], values.get("within")),
        ),
        "The first row of each key; later ones are dropped.",
        lambda made: made,
        "- deduplicate: {by: [id], within: 1h}",
    ),
    OperationKey(
        "join",
        _part(
            "join",
            "Rows of two streams.",
            Key("with", _FRAME, "The frame on the right.", required=True),
            Key("on", _On(), "Which columns are equal.", required=True),
            Key(
                "within",
                Duration(least=0),
                "By how much the times of the two rows differ at most. It has to be given.",
            ),
            Key(
                "kind", Choice(("inner", "left", "full")), "Whether rows without a partner come too.", "inner"
            ),
            Key("grace", Duration(least=0), "How much later a partner may come, beside the watermark.", "0s"),
            make=_make_join,
        ),
        "Rows of two streams that have the same key, at times that are close. Both streams need a watermark.",
        lambda made: made,
        "- join: {with: payments, on: [id], within: 10m}",
    ),
    OperationKey(
        "lookup",
        _part(
            "lookup",
            "Rows with the row of a table.",
            Key("table", _FRAME, "A source with `table`, or a frame made of one.", required=True),
            Key("on", _On(), "Which columns are equal to the columns of the table's key.", required=True),
            Key("kind", Choice(("inner", "left")), "Whether rows without one come too.", "inner"),
            Key("as-of", _COLUMN, "The column of the row's time.", "event time, or the record's timestamp"),
            make=lambda values, node, at: op.Lookup(
                values["table"], values["on"], values.get("kind", "inner"), values.get("as-of")
            ),
        ),
        "Rows with the row of a table for their key. Each row of a stream sees the table as it was at the row's time.",
        lambda made: made,
        "- lookup: {table: customers, on: {customer: id}, kind: left}",
    ),
    OperationKey(
        "process",
        _part(
            "process",
            "State of your own.",
            Key("class", REFERENCE, "A StatefulProcessor of PySpark.", required=True),
            Key("by", _COLUMNS, "The columns of the key.", required=True),
            Key("output", Ddl(), "The columns of the result.", required=True),
            Key("mode", Choice(("update", "final")), "Spark's output mode: update, or append.", "update"),
            Key("timers", Choice(("none", "processing", "event")), "Of which time timers are.", "none"),
            Key("arguments", ARGUMENTS, "Given to the class by name when it is made."),
            make=lambda values, node, at: op.Process(
                values["class"],
                values["by"],
                values["output"],
                values.get("mode", "update"),
                values.get("timers", "none"),
                values.get("arguments", {}),
            ),
        ),
        "State and timers of your own, by Spark's `transformWithState`.",
        lambda made: made,
        '- process: {class: "mypackage.state:Counter", by: [id], output: {id: string, n: bigint}}',
    ),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
