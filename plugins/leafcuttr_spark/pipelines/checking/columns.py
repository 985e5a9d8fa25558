"""The columns of all frames, from sources through steps to sinks, and what is wrong with what names them.

There is one rule for each operation, a function of the operation and the columns of its inputs. They are in one module
because most are a few lines, and RULES has all of them; what is long is in `expressions`, `select` and `transforms`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.checking import expressions, types
from leafcuttr_spark.pipelines.checking.expressions import Columns, Wrong, shown
from leafcuttr_spark.pipelines.checking.select import columns_of_query
from leafcuttr_spark.pipelines.checking.transforms import columns_of_transform
from leafcuttr_spark.pipelines.checking.types import SqlType
from leafcuttr_spark.pipelines.errors import Fault
from leafcuttr_spark.pipelines.model import (
    RECORD_TIME,
    Encoding,
    FileTarget,
    Pipeline,
    Sink,
    Source,
    Step,
    TopicTarget,
)

_PATH: Final = re.compile("[a-z][a-z.-]*: ")
UNKNOWN: Final = Columns(is_open=True)
HIDDEN: Final = "_lc_"
"""The start of the names of columns that pipelines have for themselves."""
RECORD_COLUMNS: Final = ("key", "headers", RECORD_TIME)
"""Columns of the record: of two joined rows those of the left stay."""

_DEEP: Final = "an expression is nested too deep to be checked"
SourceColumns: TypeAlias = Callable[[str, Source, Pipeline, Wrong, Wrong], Columns]
"""The last two say what is wrong, and what is only noted."""


@dataclass(slots=True)
class Checked:
    """The columns of frames as far as they have been followed, and all faults."""

    frames: dict[str, Columns] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def wrong_at(self, line: int, part: str, *, note: bool = False) -> Wrong:
        return lambda what: self.faults.append(Fault(line, part, what, note))


def columns_of(pipeline: Pipeline) -> dict[str, Columns]:
    """The columns of all frames by name; of a frame that nothing is known of none, and open."""
    return check_columns(pipeline).frames


def check_columns(pipeline: Pipeline, sources: SourceColumns | None = None) -> Checked:
    """The columns of all frames, and what is wrong. `sources` finds out the columns of sources."""
    from leafcuttr_spark.pipelines.checking.source_columns import source_columns

    checked = Checked()
    for name, source in pipeline.sources.items():
        wrong = checked.wrong_at(source.line, f"sources.{name}")
        note = checked.wrong_at(source.line, f"sources.{name}", note=True)
        columns = (sources or source_columns)(name, source, pipeline, wrong, note)
        _check_source(source, columns, wrong)
        checked.frames[name] = columns
    for step in pipeline.steps:
        made = _of_step(step, checked)
        for name in step.frames:
            checked.frames.setdefault(name, made)
    for name, sink in pipeline.sinks.items():
        _check_sink(
            sink, checked.frames.get(sink.from_, UNKNOWN), checked.wrong_at(sink.line, f"sinks.{name}")
        )
    return checked


def _check_source(source: Source, columns: Columns, wrong: Wrong) -> None:
    _twice(columns.names, "a source has each column once; `as` and `columns` give other names", wrong)
    if source.time is not None:
        _there(source.time, columns, "time", wrong)
        type_ = columns.type_of(source.time)
        if type_ is not None and type_.name in (*types.NESTED, "binary", "boolean"):
            wrong(f"time: {source.time} is {type_.text()}, and has to be a timestamp")
    if source.table is not None:
        for name in source.table.key:
            _there(name, columns, "table.key", wrong)


def _of_step(step: Step, checked: Checked) -> Columns:
    inputs = [checked.frames.get(name, UNKNOWN) for name in step.inputs]
    wrong = checked.wrong_at(step.line, step.part)
    if not inputs and op.takes_from(step.operation):
        inputs = [UNKNOWN]
    try:
        made = RULES[type(step.operation)](step.operation, inputs, wrong)
    except RecursionError:
        checked.wrong_at(step.line, step.part, note=True)(_DEEP)
        return UNKNOWN
    for name in made.names:
        if name.lower().startswith(HIDDEN) and not any(name in one.names for one in inputs):
            wrong(f"a column must not be named {name}: names with {HIDDEN} are taken")
    return made


def _there(name: str, columns: Columns, key: str, wrong: Wrong) -> None:
    if not columns.has(name):
        wrong(f"{key}: {columns.missing(name)}")


def _exactly_there(name: str, columns: Columns, wrong: Wrong) -> bool:
    """Where columns are named, and not used in an expression, small and large letters differ."""
    found = columns.is_open or name in columns.names
    if not found:
        wrong(columns.missing(name))
    return found


def _all_there(names: Iterable[str], columns: Columns, key: str, wrong: Wrong) -> None:
    for name in names:
        _there(name, columns, key, wrong)


def _twice(names: Iterable[str], why: str, wrong: Wrong) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            wrong(f"the column {name} comes twice: {why}")
        seen.add(name.lower())


def within(key: str, wrong: Wrong) -> Wrong:
    """What is wrong with the value of a key, or of one within it: the path to it, then what is wrong."""
    return lambda what: wrong(f"{key}{'.' if _PATH.match(what) else ': '}{what}")


# Without state


def _filter(operation: op.Filter, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    expressions.condition(operation.condition, inputs[0], within("filter", wrong))
    return inputs[0]


def _map(operation: op.Map, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    made = [
        (name, expressions.expression(text, inputs[0], within(f"map.{name}", wrong)))
        for name, text in operation.columns.items()
    ]
    for name in operation.columns:
        if inputs[0].knows(name) and name not in inputs[0].names:
            within(f"map.{name}", wrong)(
                "there is a column of this name in other letters, which are the same to Spark"
            )
    return inputs[0].with_columns(made)


def _select(operation: op.Select, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    from sqlglot import exp

    found: list[tuple[str, SqlType | None]] = []
    is_open = False
    for text in operation.columns:
        said = within("select", wrong)
        tree = expressions.tree_of(text, said)
        if isinstance(tree, exp.Star) and not tree.args.get("except_") and not tree.args.get("replace"):
            found += inputs[0].items
            is_open |= inputs[0].is_open
            continue
        type_ = None if tree is None else expressions.expression(text, inputs[0], said)
        name = "" if tree is None or isinstance(tree, exp.Star) else tree.alias_or_name
        if isinstance(tree, exp.Alias | exp.Column) and name:
            found.append((name, type_))
        else:
            is_open = True  # Spark names it
    _twice((name for name, _ in found), "AS gives another name", within("select", wrong))
    return Columns(tuple(found), is_open)


def _cast(operation: op.Cast, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    made: list[tuple[str, SqlType | None]] = []
    for name, text in operation.types.items():
        said = within(f"cast.{name}", wrong)
        try:
            to = types.parse_type(text)
        except types.DdlError as error:
            said(str(error))
            to = None
        if _exactly_there(name, inputs[0], said):
            made.append((name, to))
            _check_cast(inputs[0].type_of(name), to, said)
    return inputs[0].with_columns(made)


def _check_cast(before: SqlType | None, to: SqlType | None, wrong: Wrong) -> None:
    if before is None or to is None or to.name in ("string", "variant") or before.name == "variant":
        return
    if (before.name in types.NESTED) != (to.name in types.NESTED):
        wrong(f"{before.text()} cannot become {to.text()}")


def _drop(operation: op.Drop, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    for name in operation.columns:
        _exactly_there(name, inputs[0], within("drop", wrong))
    return inputs[0].without(operation.columns)


def _rename(operation: op.Rename, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    return renamed(operation.names, inputs[0], within("rename", wrong))


def renamed(names: Mapping[str, str], columns: Columns, wrong: Wrong) -> Columns:
    """Columns with other names."""
    for name in names:
        _exactly_there(name, columns, wrong)
    new = {old.lower(): name for old, name in names.items()}
    made = tuple((new.get(name.lower(), name), type_) for name, type_ in columns)
    if len({name.lower() for name in columns.names}) == len(columns.names):
        _twice((name for name, _ in made), "another one has the name already", wrong)
    if columns.is_open:
        made += tuple((name, None) for old, name in names.items() if not columns.knows(old))
    return Columns(made, columns.is_open)


def _flat_map(operation: op.FlatMap, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    said = within("flat-map", wrong)
    type_ = expressions.expression(operation.explode, inputs[0], said)
    element: SqlType | None = None
    if type_ is not None:
        if type_.name == "array":
            element = type_.part("element")
        elif type_.name == "map":
            element = SqlType("struct", (("key", type_.part("key")), ("value", type_.part("value"))))
        elif type_.name not in ("void", "variant"):
            said(f"{shown(operation.explode)} is {type_.text()}, and has to be an array or a map")
    if inputs[0].knows(operation.as_):
        said(f"there is a column {operation.as_} already: as gives another name")
    return inputs[0].with_columns([(operation.as_, element)])


def _branch(operation: op.Branch, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    for name, text in operation.conditions.items():
        expressions.condition(text, inputs[0], within(f"branch.{name}", wrong))
    return inputs[0]


def _union(operation: op.Union, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    if len(inputs) < 2:
        wrong("union: it takes two frames or more")
    first = inputs[0] if inputs else UNKNOWN
    for name, other in zip(operation.frames[1:], inputs[1:], strict=False):
        for column in () if other.is_open else first.names:
            if not other.knows(column):
                wrong(f"union: {name} has no column {column}, which {operation.frames[0]} has")
        for column in () if first.is_open else other.names:
            if not first.knows(column):
                wrong(f"union: {name} has a column {column}, which {operation.frames[0]} has not")
        for column, type_ in first:
            theirs = other.type_of(column)
            if type_ and theirs and (type_.name in types.NESTED) != (theirs.name in types.NESTED):
                wrong(
                    f"union: {column} is {type_.text()} in {operation.frames[0]}, and {theirs.text()} in {name}"
                )
    same = tuple(
        (name, type_ if all(other.type_of(name) == type_ for other in inputs[1:]) else None)
        for name, type_ in first
    )
    return Columns(same, any(one.is_open for one in inputs))


def _sql(operation: op.Sql, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    frames = {name.lower(): columns for name, columns in zip(operation.frames, inputs, strict=False)}
    return columns_of_query(operation.query, frames, within("sql", wrong))


def _function(operation: op.PythonFunction | op.Apply, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    return (
        UNKNOWN if operation.columns is None else expressions.ddl(operation.columns, "python.columns", wrong)
    )


def _transform(operation: op.Transform, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    return columns_of_transform(operation, inputs[0], within("transform", wrong))


# With state


def _windowed(by: Sequence[str], window: op.Window | None, columns: Columns, wrong: Wrong) -> Columns:
    """The columns in front: of the key, and of the window."""
    _all_there(by, columns, "by", wrong)
    front = [(name, columns.type_of(name)) for name in by]
    if window is not None:
        front += [(name, types.TIMESTAMP) for name in op.WINDOW_COLUMNS]
        _twice((name for name, _ in front), "a window makes it", wrong)
    return Columns(tuple(front))


def _aggregate(operation: op.Aggregate, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    columns = inputs[0]
    front = _windowed(operation.by, operation.window, columns, within("aggregate", wrong))
    made: list[tuple[str, SqlType | None]] = []
    by = {name.lower() for name in operation.by}
    for name, text in operation.columns.items():
        said = within(f"aggregate.{name}", wrong)
        tree = expressions.tree_of(text, said)
        type_ = None
        if tree is not None:
            type_ = expressions.type_of(tree, columns, said)
            plain = expressions.plain_columns(tree)
            loose = [one for one in plain or () if one.lower() not in by and columns.knows(one)]
            if loose:
                said(f"{shown(text)} does not aggregate {loose[0]}: as sum({loose[0]}), or name it in by")
        if front.knows(name):
            said("by or the window has a column of this name already")
        made.append((name, type_))
    return Columns((*front.items, *made))


def _count(operation: op.Count, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    front = _windowed(operation.by, operation.window, inputs[0], within("count", wrong))
    if front.knows(operation.as_):
        wrong(f"count: by or the window has a column {operation.as_} already: as gives another name")
    return Columns((*front.items, (operation.as_, types.BIGINT)))


def _reduce(operation: op.Reduce, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    columns = inputs[0]
    front = _windowed(operation.by, operation.window, columns, within("reduce", wrong))
    if "(" in operation.with_:
        inner = operation.with_[operation.with_.index("(") + 1 : operation.with_.rindex(")")]
        expressions.expression(inner, columns, within("reduce.with", wrong))
    rest = columns.without(front.names)
    return Columns((*front.items, *rest.items), columns.is_open)


def _deduplicate(operation: op.Deduplicate, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    _all_there(operation.by, inputs[0], "deduplicate.by", wrong)
    return inputs[0]


def _join(operation: op.Join, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    return _joined(operation.on, operation.with_, inputs, within("join", wrong))


def _lookup(operation: op.Lookup, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    said = within("lookup", wrong)
    if operation.as_of is not None:
        _there(operation.as_of, inputs[0], "as-of", said)
    return _joined(operation.on, operation.table, inputs, said)


def _joined(on: Mapping[str, str], other: str, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    left, right = (*inputs, UNKNOWN)[:2]
    for mine, theirs in on.items():
        _there(mine, left, "on", wrong)
        if not right.has(theirs):
            wrong(f"on: {other}: {right.missing(theirs)}")
        types_ = left.type_of(mine), right.type_of(theirs)
        if types_[0] and types_[1] and (types_[0].name in types.NESTED) != (types_[1].name in types.NESTED):
            wrong(f"on: {mine} is {types_[0].text()}, and {theirs} of {other} is {types_[1].text()}")
    rest = right.without(on.values()).without(
        name for name in RECORD_COLUMNS if left.has(name) or left.is_open
    )
    for name in rest.names:
        if left.knows(name):
            wrong(f"both sides have a column {name}: rename or drop one of them before")
    return Columns((*left.items, *rest.without(left.names).items), left.is_open or right.is_open)


def _process(operation: op.Process, inputs: Sequence[Columns], wrong: Wrong) -> Columns:
    _all_there(operation.by, inputs[0], "process.by", wrong)
    return expressions.ddl(operation.output, "process.output", wrong)


RULES: Final[Mapping[type[Any], Callable[[Any, Sequence[Columns], Wrong], Columns]]] = {
    op.Filter: _filter,
    op.Map: _map,
    op.Select: _select,
    op.Cast: _cast,
    op.Drop: _drop,
    op.Rename: _rename,
    op.FlatMap: _flat_map,
    op.Branch: _branch,
    op.Union: _union,
    op.Sql: _sql,
    op.PythonFunction: _function,
    op.Apply: _function,
    op.Transform: _transform,
    op.Aggregate: _aggregate,
    op.Count: _count,
    op.Reduce: _reduce,
    op.Deduplicate: _deduplicate,
    op.Join: _join,
    op.Lookup: _lookup,
    op.Process: _process,
}

# Sinks


def _check_sink(sink: Sink, columns: Columns, wrong: Wrong) -> None:
    target = sink.target
    if isinstance(target, FileTarget):
        _all_there(target.partition_by, columns, "file.partition-by", wrong)
    if not isinstance(target, TopicTarget):
        return
    for key, name in (("topic", target.topic_column), ("headers-column", target.headers_column)):
        if name is not None:
            _there(name, columns, key, wrong)
    for name, text in target.headers.items():
        expressions.expression(text, columns, within(f"headers.{name}", wrong))
    for key, given in (("partition", target.partition), ("timestamp", target.timestamp)):
        if given is not None:
            expressions.expression(given, columns, within(key, wrong))
    if target.key is not None:
        _check_encoding(target.key, columns, within("key", wrong))
    value = columns
    if not target.value.columns and target.value.expression is None:
        value = columns.without(value_without(target))
        if not value.names and not value.is_open:
            wrong("value: no column is left for it; columns says which it has")
    _check_encoding(target.value, columns, within("value", wrong), value)


def value_without(target: TopicTarget) -> list[str]:
    """The columns that are no part of a value without `columns`: those of the key, of headers, of the topic."""
    gone = ["key", "headers", *(name for name in (target.topic_column, target.headers_column) if name)]
    if target.key is not None:
        gone += target.key.columns
        # A key that is one column is not in the value either.
        text = target.key.expression
        tree = expressions.tree_of(text, lambda what: None) if text else None
        if tree is not None and type(tree).__name__ == "Column":
            gone.append(tree.name)
    return gone


def _check_encoding(encoding: Encoding, columns: Columns, wrong: Wrong, rest: Columns | None = None) -> None:
    _all_there(encoding.columns, columns, "columns", wrong)
    type_: SqlType | None = None
    if encoding.expression is not None:
        type_ = expressions.expression(encoding.expression, columns, wrong)
    if encoding.format not in ("text", "bytes"):
        return
    if encoding.expression is None:
        names = encoding.columns or (rest.names if rest is not None and not rest.is_open else ())
        if len(names) > 1:
            wrong(
                f"{encoding.format} is one column, and these are {', '.join(names)}: expression or columns says which"
            )
        elif names:
            type_ = columns.type_of(names[0])
    if type_ is not None and type_.name in types.NESTED:
        wrong(f"{type_.text()} cannot be written as {encoding.format}; json can")
