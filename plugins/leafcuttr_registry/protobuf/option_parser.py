"""Options and their values in `.proto` texts: `option a.(b.c).d = value;` and `[a = value, ...]`."""

from leafcuttr_registry.protobuf.cursor import MAX_DEPTH, Cursor
from leafcuttr_registry.protobuf.lexer import FLOAT, IDENTIFIER, INTEGER, STRING
from leafcuttr_registry.protobuf.tree import (
    Aggregate,
    Entry,
    NamePart,
    Number,
    Option,
    Sequence,
    Text,
    Value,
    Word,
)


def option_statement(cursor: Cursor) -> Option:
    """What follows the word `option`."""
    option = assignment(cursor)
    cursor.expect(";")
    return option


def bracketed(cursor: Cursor) -> list[Option]:
    """`[a = b, c = d]`, if there is one."""
    options: list[Option] = []
    if cursor.accept("["):
        while True:
            options.append(assignment(cursor))
            if not cursor.accept(","):
                break
        cursor.expect("]")
    return options


def assignment(cursor: Cursor) -> Option:
    at = cursor.at
    parts = [_part(cursor)]
    while cursor.accept("."):
        if len(parts) == MAX_DEPTH:
            raise cursor.fail(f"the name of an option has more than {MAX_DEPTH} parts")
        parts.append(_part(cursor))
    cursor.expect("=")
    return Option(tuple(parts), option_value(cursor), at)


def _part(cursor: Cursor) -> NamePart:
    if cursor.accept("("):
        name = cursor.type_name("the name of an extension")
        cursor.expect(")")
        return NamePart(name, True)
    return NamePart(cursor.identifier("the name of an option"), False)


def option_value(cursor: Cursor) -> Value:
    if cursor.accept("{"):
        return aggregate(cursor, "}", 1)
    return scalar(cursor, "the value of an option")


def scalar(cursor: Cursor, what: str) -> Value:
    kind = cursor.kind
    if kind == STRING:
        return Text(cursor.string(what))
    if kind == IDENTIFIER:
        return Word(cursor.take())
    if cursor.accept("-"):
        if cursor.kind == IDENTIFIER:
            name = cursor.token
            if name not in ("inf", "nan", "infinity"):
                raise cursor.fail(f"after the sign is {name[:40]}: only a number, inf and nan can be there")
            cursor.take()
            return Number("-" + name, float("-inf" if name != "nan" else "nan"))
        token = cursor.token
        return Number("-" + token, -cursor.number(what))
    if kind in (INTEGER, FLOAT):
        token = cursor.token
        return Number(token, cursor.number(what))
    raise cursor.expected(what)


def aggregate(cursor: Cursor, end: str, depth: int) -> Aggregate:
    """A message in text format, up to `end`."""
    if depth > MAX_DEPTH:
        raise cursor.fail(f"values in options are nested more than {MAX_DEPTH} deep")
    entries: list[Entry] = []
    while not cursor.accept(end):
        at = cursor.at
        key = _key(cursor)
        colon = cursor.accept(":")
        token = cursor.token
        if not colon and token not in ("{", "<", "["):
            raise cursor.expected(":")
        entries.append(Entry(key, _value(cursor, depth), at))
        if not cursor.accept(","):
            cursor.accept(";")
    return Aggregate(entries)


def _key(cursor: Cursor) -> str:
    if not cursor.accept("["):
        return cursor.identifier("the name of a field")
    name = cursor.full_name("the name of an extension")
    if cursor.accept("/"):
        # The URL of a type in google.protobuf.Any.
        name = f"{name}/{cursor.full_name('the name of a type')}"
    cursor.expect("]")
    return f"[{name}]"


def _value(cursor: Cursor, depth: int) -> Value:
    if cursor.accept("{"):
        return aggregate(cursor, "}", depth + 1)
    if cursor.accept("<"):
        return aggregate(cursor, ">", depth + 1)
    if cursor.accept("["):
        if depth > MAX_DEPTH:
            raise cursor.fail(f"values in options are nested more than {MAX_DEPTH} deep")
        items: list[Value] = []
        if not cursor.accept("]"):
            while True:
                if cursor.token == "[":
                    raise cursor.fail("a list within a list")
                items.append(_value(cursor, depth + 1))
                if not cursor.accept(","):
                    break
            cursor.expect("]")
        return Sequence(items)
    return scalar(cursor, "a value")
