"""Spark SQL, read by sqlglot: which frames a query names, and expressions as trees.

What sqlglot cannot read is unknown rather than wrong, but for what no dialect reads: quotes or brackets that are not
closed, and an expression that ends too early."""

import logging
from functools import lru_cache
from typing import Any, Final

MOST_CHARACTERS: Final = 20_000


class SqlError(ValueError):
    """A text that is no SQL, for certain. The message is one clause."""


class UnreadableSqlError(ValueError):
    """A text that sqlglot does not read, though Spark may."""


@lru_cache(maxsize=512)
def parsed(text: str) -> Any:
    """The tree of an expression or a query. It must not be changed. Raises SqlError, UnreadableSqlError."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadableSqlError(f"it has more than {MOST_CHARACTERS} characters")
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError, TokenError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        found = sqlglot.parse(text, dialect="spark")
    except TokenError:
        raise SqlError("a quote or a comment is not closed") from None
    except ParseError as error:
        said = error.errors[0] if error.errors else {}
        if (unbalanced := _unbalanced(text)) is not None:
            raise SqlError(unbalanced) from None
        what = str(said.get("description"))
        if not str(said.get("end_context")).strip() and (
            what.startswith("Required keyword") or "SENTINEL" in what
        ):
            raise SqlError("it ends too early") from None
        raise UnreadableSqlError(what) from None
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError) as error:
        raise UnreadableSqlError(type(error).__name__) from None
    if len(found) != 1 or found[0] is None:
        raise SqlError("there is a `;` in it" if len(found) > 1 else "there is nothing in it")
    return found[0]


def _unbalanced(text: str) -> str | None:
    """What to say of brackets that do not go together."""
    import sqlglot

    open_: list[str] = []
    pairs = {")": "(", "]": "["}
    for token in sqlglot.tokenize(text, dialect="spark"):
        name = token.token_type.name
        if name in ("L_PAREN", "L_BRACKET"):
            open_.append(token.text)
        elif name in ("R_PAREN", "R_BRACKET") and (not open_ or open_.pop() != pairs[token.text]):
            return f"there is a {token.text!r} without {pairs[token.text]!r}"
    return f"a {open_[-1]!r} is not closed" if open_ else None


def frames_of(query: str) -> tuple[str, ...]:
    """The frames that a query names, each once; none where it cannot be read."""
    return tuple(dict.fromkeys(table.name for table in _frames(query)))


def places_of(query: str) -> tuple[str, ...]:
    """The frames in the order in which the text names them, as often as it does; none where it cannot be read. Spark
    reads its sources in this order: it reads a common table expression once, where it stands."""
    try:
        found = [(table.this.meta["start"], table.name) for table in _frames(query)]
    except (KeyError, AttributeError):
        return ()
    return tuple(name for _, name in sorted(found))


def _frames(query: str) -> list[Any]:
    """The tables of the tree that are frames."""
    from sqlglot import exp

    try:
        tree = parsed(query)
        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        tables = [table for table in tree.find_all(exp.Table) if not table.args.get("db")]
    except (SqlError, UnreadableSqlError, RecursionError):
        return []
    return [table for table in tables if table.name.lower() not in own]
