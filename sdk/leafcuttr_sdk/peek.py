"""What a produce validator gets that does not need whole records: the first bytes of keys and values, and headers
by name, of a whole batch at once.

Such a validator says what it needs in `ProduceValidatorSpec.peek` and has the method `validate_batch`; `validate` is
not called. The broker makes no records for it and does not copy what it does not need, so that its cost does not
grow with the size of the records. A topic can have validators of both kinds.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast

from leafcuttr_sdk._described import described
from leafcuttr_sdk.errors import PluginError


@described
class Peek(NamedTuple):
    """What a validator needs of each record."""

    key_bytes: int | None = None
    """How many bytes of the key, from its first; 0 tells only whether there is a key. None: the key is not
    needed."""
    value_bytes: int | None = None
    """The same for the value."""
    headers: tuple[str, ...] = ()
    """The names of headers whose values it needs, which it gets whole."""


@described
class PeekedBatch(NamedTuple):
    """What a validator has asked for of all records of a batch. Each sequence has one item a record, in their order;
    that of a key or value that was not asked for is empty."""

    record_count: int
    """The number of records."""
    keys: Sequence[bytes | None]
    """The first bytes of each key: at most as many as were wanted, fewer where the key is shorter; None where there
    is no key."""
    values: Sequence[bytes | None]
    """The same for the values."""
    headers: Mapping[str, Sequence[tuple[bytes | None, ...]]]
    """By each name that was wanted, the values of a record's headers of that name, in their order: an empty tuple if
    it has none, several if it is repeated. None is the value of a header without one."""


T = TypeVar("T")


def distinct(items: Sequence[T]) -> Collection[T]:
    """Each of them once: what a validator has to judge, where it judges equal ones alike. The records of a batch mostly
    have the same first bytes and headers, which takes the fifth of the time of making a set."""
    if items and items.count(items[0]) == len(items):
        return items[:1]
    return set(items)


def own_peek(validator: object, peek: Peek) -> Peek:
    """What one that has been made for a topic needs: its own `peek` in the place of that of its spec, where it has one.
    Raises PluginError."""
    own = getattr(validator, "peek", None)
    if own is None:
        return peek
    wrong = why_no_peek(own)
    if wrong is not None:
        raise PluginError(f"what it makes has {own!r} as its peek: {wrong}")
    return cast("Peek", own)


def words_of(peek: Peek) -> str:
    """What it asks for, for people: `the first 5 bytes of values and the header id`."""
    parts: list[str] = []
    for field, size in (("keys", peek.key_bytes), ("values", peek.value_bytes)):
        if size:
            parts.append(f"the first {f'{size} bytes' if size > 1 else 'byte'} of {field}")
        elif size is not None:
            parts.append(f"whether there are {field}")
    parts += [f"the header {name}" for name in peek.headers]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def why_no_peek(peek: object) -> str | None:
    """What is wrong with the `peek` of a spec; None if nothing is."""
    if not isinstance(peek, Peek):
        return "it has to be a Peek"
    key_bytes, value_bytes, headers = cast("tuple[Any, Any, Any]", peek)
    for name, size in (("key_bytes", key_bytes), ("value_bytes", value_bytes)):
        if size is not None and (type(size) is not int or size < 0):
            return f"{name} has to be a number of bytes, 0 or more, or None"
    if not _is_tuple(headers) or not all(isinstance(name, str) for name in headers):
        return "headers has to be a tuple of names"
    names = cast("tuple[str, ...]", headers)
    for name in names:
        if names.count(name) > 1:
            return f"headers names {name} twice"
        try:
            name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return f"headers has a name that is no Unicode: {name!a}"
    if key_bytes is None and value_bytes is None and not names:
        return "it asks for nothing"
    return None


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)
