"""Expressions over the columns of a frame: which columns they name, whether they aggregate, and their type where it is
certain.

What Spark does with types is only said where it depends on nothing else: all other types are unknown, None.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from leafcuttr_spark.pipelines.checking.queries import SqlError, UnreadableSqlError, parsed
from leafcuttr_spark.pipelines.checking.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NUMBERS,
    STRING,
    WHOLE_NUMBERS,
    DdlError,
    SqlType,
    parse_ddl,
    parse_type,
)
from leafcuttr_spark.pipelines.reading.variables import nearest

Wrong: TypeAlias = Callable[[str], None]

_WORDS_TEXT: Final = """
    year years quarter quarters month months week weeks day days dayofyear hour hours minute minutes second
    seconds millisecond milliseconds microsecond microseconds nanosecond epoch dow doy isodow isoyear both
    leading trailing current_date current_time current_timestamp current_user current_catalog current_database
    current_schema current_timezone localtimestamp session_user user default
"""
_WORDS: Final = frozenset(_WORDS_TEXT.split())
"""Words of functions that sqlglot may take for columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a frame, in order; a type may be unknown."""

    items: tuple[tuple[str, SqlType | None], ...] = ()
    is_open: bool = False
    """Whether there may be more."""

    def __iter__(self) -> Iterator[tuple[str, SqlType | None]]:
        return iter(self.items)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    def has(self, name: str) -> bool:
        """Whether there is one of the name, in small or large letters; an open frame may have any."""
        return self.is_open or self.knows(name)

    def knows(self, name: str) -> bool:
        return any(known.lower() == name.lower() for known, _ in self.items)

    def type_of(self, name: str) -> SqlType | None:
        return next((type_ for known, type_ in self.items if known.lower() == name.lower()), None)

    def with_columns(self, new: Iterable[tuple[str, SqlType | None]]) -> "Columns":
        """Those of the same name are replaced in their places, others come behind."""
        found = list(self.items)
        for name, type_ in new:
            at = next((i for i, (known, _) in enumerate(found) if known.lower() == name.lower()), len(found))
            found[at : at + 1] = [(name, type_)]
        return Columns(tuple(found), self.is_open)

    def without(self, names: Iterable[str]) -> "Columns":
        gone = {name.lower() for name in names}
        return Columns(tuple(one for one in self.items if one[0].lower() not in gone), self.is_open)

    def text(self) -> str:
        """For people."""
        shown = [f"{name} {type_.text() if type_ else '?'}" for name, type_ in self.items]
        return ", ".join([*shown, *(["..."] if self.is_open else [])])

    def missing(self, name: str) -> str:
        """What to say of a column that is not there."""
        there = ", ".join(self.names[:30]) + (", ..." if len(self.items) > 30 else "")
        return f"there is no column {name[:60]}{nearest(name, self.names)}; there are {there or 'none'}"


def ddl(text: str, key: str, wrong: Wrong) -> Columns:
    """The columns of DDL; unknown ones where it is wrong."""
    try:
        return Columns(parse_ddl(text))
    except DdlError as error:
        wrong(f"{key}: {error}")
        return Columns(is_open=True)


def tree_of(text: str, wrong: Wrong) -> Any:
    """The tree, or None: what is wrong for certain is said."""
    try:
        return parsed(text)
    except SqlError as error:
        wrong(f"{shown(text)} is no SQL: {error}")
    except UnreadableSqlError:
        pass
    return None


def shown(text: str) -> str:
    """A text in a line."""
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")


def expression(text: str, columns: Columns, wrong: Wrong) -> SqlType | None:
    """The type of an expression for one row, None where it is not certain; what is wrong is said."""
    tree = tree_of(text, wrong)
    if tree is None:
        return None
    if (name := aggregate_in(tree)) is not None:
        wrong(
            f"{shown(text)} has the aggregate function {name}, which is for `aggregate`, `count` and `reduce`"
        )
        return None
    return type_of(tree, columns, wrong)


def type_of(tree: Any, columns: Columns, wrong: Wrong) -> SqlType | None:
    """The same of a tree, aggregates allowed."""
    check_names(tree, columns, wrong)
    return inferred(tree, columns)


def condition(text: str, columns: Columns, wrong: Wrong) -> None:
    """An expression that has to be true or false."""
    type_ = expression(text, columns, wrong)
    if type_ is not None and type_.name not in ("boolean", "void", "variant"):
        wrong(f"{shown(text)} is {type_.text()}, and has to be boolean")


# Names


def check_names(tree: Any, columns: Columns, wrong: Wrong) -> None:
    """Each column that is named is there, with the fields that are named of it."""
    from sqlglot import exp

    said = set[str]()
    for column in tree.find_all(exp.Column):
        names = [part.name for part in column.parts]
        if not names or isinstance(column.this, exp.Star) or is_word(column):
            continue
        what = missing_of(names, columns)
        if what is not None and what not in said:
            said.add(what)
            wrong(what)


def missing_of(names: list[str], columns: Columns) -> str | None:
    """What to say of `a.b.c` if it is not there."""
    if not columns.knows(names[0]):
        return None if columns.is_open else columns.missing(names[0])
    type_ = columns.type_of(names[0])
    for at, name in enumerate(names[1:], start=1):
        if type_ is None or type_.name != "struct":
            # Of a map it is a key, of an array of structs their fields.
            if type_ is not None and type_.name not in ("map", "array", "variant"):
                return f"{'.'.join(names[:at])} is {type_.text()} and has no field {name}"
            return None
        fields = Columns(type_.parts)
        if not fields.knows(name):
            there = ", ".join(fields.names[:30])
            return (
                f"{'.'.join(names[:at])} has no field {name}{nearest(name, fields.names)}; there are {there}"
            )
        type_ = fields.type_of(name)
    return None


def is_word(column: Any) -> bool:
    return len(column.parts) == 1 and not column.this.args.get("quoted") and column.name.lower() in _WORDS


# Aggregates


def aggregate_in(tree: Any) -> str | None:
    """The name of an aggregate function in it, of those that are nothing else."""
    from sqlglot import exp

    certain = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
    found = next((node for node in tree.find_all(*certain) if not _within_query(node)), None)
    return None if found is None else str(found.sql_name().lower())


def _within_query(node: Any) -> bool:
    from sqlglot import exp

    return node.find_ancestor(exp.Query) is not None


def plain_columns(tree: Any) -> list[str] | None:
    """The columns that an expression names outside of aggregate functions; None where a function may be one."""
    from sqlglot import exp

    if any(
        True for _ in tree.find_all(exp.Anonymous, exp.AggFunc, exp.Query, exp.Window, exp.AnonymousAggFunc)
    ):
        return None
    # What is no function but an operator aggregates nothing.
    if any(not isinstance(node, exp.Binary | exp.Cast) for node in tree.find_all(exp.Func)):
        return None
    return [
        column.parts[0].name for column in tree.find_all(exp.Column) if not isinstance(column.this, exp.Star)
    ]


# Types


def inferred(node: Any, columns: Columns) -> SqlType | None:
    """The type of a node where it is certain."""
    from sqlglot import exp

    if isinstance(node, exp.Paren | exp.Alias):
        return inferred(node.this, columns)
    if isinstance(node, exp.Column):
        return _column_type([part.name for part in node.parts], columns)
    if isinstance(node, exp.Dot):
        left = inferred(node.this, columns)
        known = left is not None and left.name == "struct"
        return Columns(left.parts).type_of(node.expression.name) if left is not None and known else None
    if isinstance(node, exp.Cast):
        try:
            return parse_type(node.to.sql(dialect="spark"))
        except DdlError:
            return None
    if isinstance(node, exp.Literal):
        return _literal(node)
    for rule, kinds in _rules().items():
        if isinstance(node, kinds):
            return rule(node, columns)
    return None


def _column_type(names: list[str], columns: Columns) -> SqlType | None:
    type_ = columns.type_of(names[0])
    for name in names[1:]:
        if type_ is None or type_.name != "struct":
            return None
        type_ = Columns(type_.parts).type_of(name)
    return type_


def _literal(node: Any) -> SqlType | None:
    if node.is_string:
        return STRING
    text = str(node.this)
    if not text.isdigit():
        return None
    return INT if int(text) < 1 << 31 else BIGINT if int(text) < 1 << 63 else None


_Rule: TypeAlias = Callable[[Any, Columns], SqlType | None]
_found_rules: dict[_Rule, tuple[type, ...]] = {}


def _rules() -> Mapping[_Rule, tuple[type, ...]]:
    """Rules with the classes of sqlglot that they are for; made once, when sqlglot is there."""
    if not _found_rules:
        from sqlglot import exp

        _found_rules.update(
            {
                _boolean: (
                    exp.Boolean,
                    exp.And,
                    exp.Or,
                    exp.Not,
                    exp.EQ,
                    exp.NEQ,
                    exp.GT,
                    exp.GTE,
                    exp.LT,
                    exp.LTE,
                    exp.NullSafeEQ,
                    exp.Is,
                    exp.In,
                    exp.Between,
                    exp.Like,
                    exp.ILike,
                    exp.RegexpLike,
                ),
                _arithmetic: (exp.Add, exp.Sub, exp.Mul),
                _negative: (exp.Neg,),
                _same: (exp.Min, exp.Max),
                _sum: (exp.Sum,),
                _average: (exp.Avg,),
                _count: (exp.Count,),
                _text: (exp.Upper, exp.Lower),
            }
        )
    return _found_rules


def _boolean(node: Any, columns: Columns) -> SqlType | None:
    return BOOLEAN


def _count(node: Any, columns: Columns) -> SqlType | None:
    return BIGINT


def _text(node: Any, columns: Columns) -> SqlType | None:
    return STRING


def _same(node: Any, columns: Columns) -> SqlType | None:
    return inferred(node.this, columns)


def _negative(node: Any, columns: Columns) -> SqlType | None:
    type_ = inferred(node.this, columns)
    return type_ if type_ is not None and type_.name in NUMBERS else None


def _arithmetic(node: Any, columns: Columns) -> SqlType | None:
    left, right = inferred(node.left, columns), inferred(node.right, columns)
    if left is None or right is None or not {left.name, right.name} <= NUMBERS:
        return None
    names = {left.name, right.name}
    if "double" in names:
        return DOUBLE
    if names <= set(WHOLE_NUMBERS):
        return SqlType(max(names, key=WHOLE_NUMBERS.index))
    return left if names == {"float"} else None


def _sum(node: Any, columns: Columns) -> SqlType | None:
    type_ = inferred(node.this, columns)
    if type_ is None:
        return None
    if type_.name == "decimal" and type_.digits:
        return SqlType("decimal", digits=(min(38, type_.digits[0] + 10), type_.digits[1]))
    if type_.name in WHOLE_NUMBERS:
        return BIGINT
    return DOUBLE if type_.name in ("float", "double") else None


def _average(node: Any, columns: Columns) -> SqlType | None:
    type_ = inferred(node.this, columns)
    return DOUBLE if type_ is not None and type_.name in (*WHOLE_NUMBERS, "float", "double") else None
