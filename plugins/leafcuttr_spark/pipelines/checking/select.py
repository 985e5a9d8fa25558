"""The columns of a query over frames. What sqlglot does not say for certain is open."""

from collections.abc import Mapping
from typing import Any

from leafcuttr_spark.pipelines.checking.expressions import (
    Columns,
    Wrong,
    inferred,
    is_word,
    missing_of,
    tree_of,
)
from leafcuttr_spark.pipelines.checking.types import SqlType
from leafcuttr_spark.pipelines.reading.variables import nearest

_OPEN = Columns(is_open=True)


def columns_of_query(query: str, frames: Mapping[str, Columns], wrong: Wrong) -> Columns:
    """`frames` are by names in small letters. What is wrong is said."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    tree = tree_of(query, wrong)
    if tree is None:
        return _OPEN
    if not isinstance(tree, exp.Query):
        wrong("it is no SELECT")
        return _OPEN
    if not frames:
        wrong("it names no frame")
        return _OPEN
    try:
        scopes = traverse_scope(tree)
    except (SqlglotError, RecursionError, ValueError):
        return _OPEN
    known: dict[int, Columns] = {}
    for scope in scopes:
        known[id(scope)] = _of_scope(scope, frames, known, wrong)
    return known[id(scopes[-1])] if scopes else _OPEN


def _of_scope(
    scope: Any, frames: Mapping[str, Columns], known: Mapping[int, Columns], wrong: Wrong
) -> Columns:
    from sqlglot import exp

    if isinstance(scope.expression, exp.SetOperation):
        parts = scope.set_operation_scopes
        return known.get(id(parts[0]), _OPEN) if parts else _OPEN
    if not isinstance(scope.expression, exp.Select):
        return _OPEN
    sources = {
        name.lower(): frames.get(source.name.lower(), _OPEN)
        if isinstance(source, exp.Table)
        else known.get(id(source), _OPEN)
        for name, source in scope.sources.items()
    }
    # Columns of a view of rows (LATERAL VIEW, a table function) and of an outer query are not among the sources.
    certain = not scope.is_subquery and not any(
        True
        for _ in scope.expression.find_all(exp.Lateral, exp.Unnest, exp.UDTF, exp.Pivot, exp.TableFromRows)
    )
    if certain:
        _check(scope, sources, wrong)
    merged = _merged(sources)
    items: list[tuple[str, SqlType | None]] = []
    is_open = not certain
    for one in scope.expression.expressions:
        if isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
            table = one.table.lower() if isinstance(one, exp.Column) else ""
            source = sources.get(table, _OPEN) if table else merged
            items += source.items
            star = one.this if isinstance(one, exp.Column) else one
            is_open |= source.is_open or bool(star.args.get("except_") or star.args.get("replace"))
        elif name := one.alias_or_name:
            items.append((name, _type(one, merged, sources)))
        else:
            is_open = True
    return Columns(tuple(items), is_open)


def _type(node: Any, merged: Columns, sources: Mapping[str, Columns]) -> SqlType | None:
    """Of a column of one frame, or of what is made of unambiguous columns."""
    from sqlglot import exp

    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(inner, exp.Column) and len(inner.parts) == 2 and inner.table.lower() in sources:
        return sources[inner.table.lower()].type_of(inner.name)
    if (
        any(column.table and column.parts[0].name.lower() in sources for column in inner.find_all(exp.Column))
        or inner.find(exp.Query) is not None
    ):
        return None
    return inferred(inner, merged)


def _merged(sources: Mapping[str, Columns]) -> Columns:
    """The columns of all; the type of one that several have is unknown."""
    items: dict[str, tuple[str, SqlType | None]] = {}
    for columns in sources.values():
        for name, type_ in columns:
            items[name.lower()] = (name, None) if name.lower() in items else (name, type_)
    return Columns(tuple(items.values()), any(columns.is_open for columns in sources.values()))


def _check(scope: Any, sources: Mapping[str, Columns], wrong: Wrong) -> None:
    from sqlglot import exp

    merged = _merged(sources)
    aliases = {one.alias.lower() for one in scope.expression.expressions if one.alias}
    said = set[str]()
    for column in scope.columns:
        if column.find_ancestor(exp.Select) is not scope.expression:
            continue
        names = [part.name for part in column.parts]
        if (
            not names
            or not column.name
            or column.name == "*"
            or is_word(column)
            or names[0].lower() in aliases
        ):
            continue
        if names[0].lower() in sources and len(names) > 1:
            what = missing_of(names[1:], sources[names[0].lower()])
        elif len(names) > 1 and not merged.knows(names[0]):
            there = ", ".join(sources)
            hint = nearest(names[0], [*sources, *merged.names])
            what = (
                None
                if merged.is_open
                else f"there is no frame or column {names[0]}{hint}; its frames are {there}"
            )
        else:
            what = missing_of(names, merged)
        if what is not None and what not in said:
            said.add(what)
            wrong(what)
