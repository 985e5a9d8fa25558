"""What a step of a pipeline can do: a frozen class for each operation. Here is only what was written; `running` has a
function for each class that carries it out.

Expressions are Spark SQL's, types are as Spark SQL writes them (`decimal(10,2)`, `array<string>`), times are whole
milliseconds (`..._ms`). A step has one input, `Step.from_`; `inputs_of` gives the frames that an operation reads beside
it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

# Windows


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size, side by side, from the epoch on: each row is in one."""

    size_ms: int


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """Windows of one size, one at each `advance_ms` from the epoch on: each row is in size / advance of them."""

    size_ms: int
    advance_ms: int
    """Above 0, at most the size."""


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Kafka Streams' sliding windows: two rows of a key share one if their times differ by at most `difference_ms`. The
    edges, both within the window, are set by the rows. What Spark calls a slide is `HoppingWindow`."""

    difference_ms: int


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Windows that end once a key had no row for `gap_ms`."""

    gap_ms: int


Window: TypeAlias = TumblingWindow | HoppingWindow | SlidingWindow | SessionWindow

WINDOW_COLUMNS: Final = ("window_start", "window_end")
"""Columns of type timestamp that a windowed result has, behind those of `by`; the end is exclusive, of a sliding window
inclusive."""

Emit: TypeAlias = Literal["update", "final"]
"""`update`: a row for each change of a result; `final`: one row for each window, once the watermark has passed its end
and its grace."""

JoinKind: TypeAlias = Literal["inner", "left", "full"]
LookupKind: TypeAlias = Literal["inner", "left"]

# Without state


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which the condition is true; for null it is not."""

    condition: str


@dataclass(frozen=True, slots=True)
class Map:
    """Adds columns, or replaces those of these names. All expressions see the row as it came."""

    columns: Mapping[str, str]
    """Names to expressions, in the order of new columns."""


@dataclass(frozen=True, slots=True)
class Select:
    """The columns of the result, and no others: names, or expressions as `upper(name) AS name`; `*` is all."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """Columns get another type. A value that the type cannot hold is an error of that row, and never null."""

    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Drop:
    """The row without these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """Columns get other names, in their places."""

    names: Mapping[str, str]
    """From old to new."""


@dataclass(frozen=True, slots=True)
class FlatMap:
    """A row for each element of an array, or each entry of a map, none where it is empty or null."""

    explode: str
    """An expression whose type is an array or a map."""
    as_: str = "item"
    """The new column, the last one. Of a map it is a struct of `key` and `value`."""
    keep_empty: bool = False
    """Whether a row without elements stays, with null."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Several frames of one: a row goes to the first branch whose condition is true. The names of branches are names of
    frames; the step itself has none."""

    conditions: Mapping[str, str]
    """Names of frames to conditions, tried in this order."""
    default: str | None = None
    """The frame of the rows for which no condition is true; None drops them."""


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several frames. They have columns of the same names and types, in any order: that of the first."""

    frames: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sql:
    """A SELECT over frames by their names."""

    query: str
    frames: tuple[str, ...] = ()
    """The frames that it names."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function of the user's: `function(frame, **arguments)` gives a DataFrame."""

    function: str
    """`package.module:name`, found from the folder of the pipeline's file as well."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    columns: str | None = None
    """The columns of the result, as DDL (`id STRING, total DOUBLE`); None: they are known when it runs."""
    per: Literal["frame", "record"] = "frame"
    """`record`: it takes a dict for each row, and gives a dict, a list of dicts, or None; what it raises makes a dead
    letter. It needs `columns`."""


@dataclass(frozen=True, slots=True)
class Apply:
    """The same with the function itself, for pipelines that are made in Python."""

    function: Callable[[Any], Any] = field(repr=False)
    columns: str | None = None


@dataclass(frozen=True, slots=True)
class Transform:
    """One of Kafka Connect's transforms, on columns; `pipelines.transforms` has the types and their options."""

    type: str
    options: Mapping[str, Any]
    """As they were written, with the types of YAML, checked by the table of the type; without `type`."""


# With state


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Rows of a key, and of a window, make one: columns of `by`, those of the window, then `columns`."""

    by: tuple[str, ...]
    """Names of columns; none: all rows together."""
    columns: Mapping[str, str]
    """Names to aggregate expressions: `sum(amount)`."""
    window: Window | None = None
    grace_ms: int = 0
    """How long after its end, by event time, a window takes late rows, beside what the watermark allows."""
    emit: Emit = "update"


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows a key has: columns of `by`, those of the window, then the number, a bigint."""

    by: tuple[str, ...]
    as_: str = "count"
    window: Window | None = None
    grace_ms: int = 0
    emit: Emit = "update"


@dataclass(frozen=True, slots=True)
class Reduce:
    """For each key one of its rows, whole: the one for which `with_` says so."""

    by: tuple[str, ...]
    with_: str
    """`max_by(EXPRESSION)` or `min_by(EXPRESSION)`: the row with the largest or least value, of equal ones the first;
    `first` or `last`, by event time."""
    window: Window | None = None
    grace_ms: int = 0
    emit: Emit = "update"


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """The first row of each key; later ones are dropped."""

    by: tuple[str, ...]
    within_ms: int | None = None
    """For how long a key is remembered, by event time; None: for ever."""


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of two streams that have the same key, at times that differ by at most `within_ms`."""

    with_: str
    """The frame on the right."""
    on: Mapping[str, str]
    """Columns of the left to those of the right; the result has those of the left once."""
    within_ms: int
    kind: JoinKind = "inner"
    """`left` and `full` give rows without a partner once the watermark has passed the time in which one could come."""
    grace_ms: int = 0


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows with the row of a table for their key. Of a stream each row sees the table as it was at the row's time,
    within a batch too; of two tables a change on either side gives a row."""

    table: str
    """A source that is a table, or a frame made of one."""
    on: Mapping[str, str]
    """Columns of the stream to those of the table's key; the result has those of the stream once."""
    kind: LookupKind = "inner"
    as_of: str | None = None
    """The column of the row's time; None: its event time, or without one the record's timestamp."""


@dataclass(frozen=True, slots=True)
class Process:
    """State of the user's own, by Spark's `transformWithState`."""

    class_: str
    """`package.module:name` of a StatefulProcessor."""
    by: tuple[str, ...]
    output: str
    """The columns of the result, as DDL."""
    mode: Emit = "update"
    timers: Literal["none", "processing", "event"] = "none"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Given to the class when it is made."""


Stateless: TypeAlias = (
    Filter
    | Map
    | Select
    | Cast
    | Drop
    | Rename
    | FlatMap
    | Branch
    | Union
    | Sql
    | PythonFunction
    | Apply
    | Transform
)
Stateful: TypeAlias = Aggregate | Count | Reduce | Deduplicate | Join | Lookup | Process
StepOperation: TypeAlias = Stateless | Stateful


def inputs_of(operation: StepOperation) -> tuple[str, ...]:
    """The frames that an operation reads beside the step's `from_`, in the order in which they were written."""
    match operation:
        case Union(frames) | Sql(frames=frames):
            return frames
        case Join(with_=other):
            return (other,)
        case Lookup(table=table):
            return (table,)
        case _:
            return ()


def takes_from(operation: StepOperation) -> bool:
    """Whether a step of it has a `from_`: a union and a query name all of their frames themselves."""
    return not isinstance(operation, Union | Sql)
