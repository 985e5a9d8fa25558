"""The columns that `transform` makes, by its type."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines.checking import types
from leafcuttr_spark.pipelines.checking.expressions import Columns, Wrong, missing_of
from leafcuttr_spark.pipelines.checking.types import SqlType
from leafcuttr_spark.pipelines.operations import Transform

_Rule = Callable[[Mapping[str, Any], Columns, Wrong], Columns]


def columns_of_transform(operation: Transform, columns: Columns, wrong: Wrong) -> Columns:
    """What is wrong with the columns that its options name is said."""
    rule = _RULES.get(operation.type)
    return rule(operation.options, columns, wrong) if rule is not None else Columns(is_open=True)


def _named(options: Mapping[str, Any], option: str, columns: Columns, wrong: Wrong) -> Iterator[str]:
    """The columns of an option that are there; what is wrong with others is said."""
    given = options.get(option) or ()
    for name in (given,) if isinstance(given, str) else given:
        what = None if columns.knows(name) else missing_of(name.split("."), columns)
        if what is None:
            yield name
        else:
            wrong(f"{option}: {what}")


def _type(name: str, columns: Columns) -> SqlType | None:
    if columns.knows(name):
        return columns.type_of(name)
    first, *fields = name.split(".")
    type_ = columns.type_of(first)
    for field in fields:
        type_ = Columns(type_.parts).type_of(field) if type_ is not None and type_.name == "struct" else None
    return type_


def _extract(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    key = tuple(one for one in columns if one[0].lower() == "key")
    for name in _named(options, "field", columns, wrong):
        type_ = _type(name, columns)
        if type_ is None:
            return Columns(key, is_open=True)
        found = type_.parts if type_.name == "struct" else (("value", type_),)
        return Columns(key).with_columns(found)
    return Columns(is_open=True)


def _insert(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    kinds = {
        "topic.field": types.STRING,
        "partition.field": types.INT,
        "offset.field": types.BIGINT,
        "timestamp.field": types.TIMESTAMP,
        "key.field": types.BINARY,
        "static.field": types.STRING,
    }
    return columns.with_columns((options[name], type_) for name, type_ in kinds.items() if options.get(name))


def _replace(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    include = {name.split(".")[0].lower() for name in _named(options, "include", columns, wrong)}
    exclude = [name for name in _named(options, "exclude", columns, wrong) if "." not in name]
    if include:
        columns = Columns(tuple(one for one in columns if one[0].lower() in include))
    columns = columns.without(exclude)
    renames = options.get("renames") or {}
    for name in renames:
        if not columns.has(name):
            wrong(f"renames: {columns.missing(name)}")
    new = {old.lower(): name for old, name in renames.items()}
    return Columns(tuple((new.get(name.lower(), name), type_) for name, type_ in columns), columns.is_open)


def _mask(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    for _ in _named(options, "fields", columns, wrong):
        pass
    return columns


def _hash(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    named = [name for name in _named(options, "fields", columns, wrong) if columns.knows(name)]
    return columns.with_columns((name, types.STRING) for name in named)


def _flatten(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    def flat(name: str, type_: SqlType | None) -> Iterator[tuple[str, SqlType | None]]:
        if type_ is None or type_.name != "struct":
            yield name, type_
            return
        for field, inner in type_.parts:
            yield from flat(f"{name}{options.get('delimiter', '.')}{field}", inner)

    # A column of an unknown type may be a struct.
    is_open = columns.is_open or any(type_ is None for _, type_ in columns)
    return Columns(tuple(one for name, type_ in columns for one in flat(name, type_)), is_open)


def _timestamp(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    to = {
        "string": types.STRING,
        "unix": types.BIGINT,
        "Date": SqlType("date"),
        "Time": None,
        "Timestamp": types.TIMESTAMP,
    }
    named = [name for name in _named(options, "field", columns, wrong) if columns.knows(name)]
    return columns.with_columns((name, to.get(options.get("target.type", ""))) for name in named)


def _route(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    return columns.with_columns([(options.get("as", "topic"), types.STRING)])


def _same(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    return columns


def _value_to_key(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    named = [*_named(options, "fields", columns, wrong)]
    made: SqlType | None = None
    if len(named) == 1:
        made = _type(named[0], columns)
    elif named:
        made = SqlType("struct", tuple((name, _type(name, columns)) for name in named))
    return columns.with_columns([(options.get("as", "key"), made)])


def _header(options: Mapping[str, Any], columns: Columns, wrong: Wrong) -> Columns:
    named = [*_named(options, "fields", columns, wrong)]
    if options.get("operation") == "move":
        columns = columns.without(name for name in named if "." not in name)
    return columns.with_columns([(options.get("as", "headers"), types.HEADERS)])


_RULES: Final[Mapping[str, _Rule]] = {
    "extract": _extract,
    "insert": _insert,
    "replace": _replace,
    "mask": _mask,
    "hash": _hash,
    "flatten": _flatten,
    "timestamp": _timestamp,
    "route": _route,
    "drop-tombstones": _same,
    "value-to-key": _value_to_key,
    "header": _header,
}
