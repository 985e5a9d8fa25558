"""Kinds of values that options have: how a text is read as one, and how people are told what is allowed.

A kind is a function from the text to the value. It raises ValueError with what is allowed, in one clause.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from leafcuttr_sdk.conditions import ConditionError, parse
from leafcuttr_sdk.conditions.searching import Search
from leafcuttr_sdk.conditions.times import parse_duration

Kind: TypeAlias = Callable[[str], Any]

LEAST_SEARCHED: Final = 250
"""Characters of a text in which each regular expression that replaces something can be searched: more than the name of
a topic has."""

_PATH_STEP: Final = re.compile(r"`([^`]+)`|([^.`]+)")
_DEEPEST: Final = 50


def text(given: str) -> str:
    """a text"""
    return given


def texts(given: str) -> tuple[str, ...]:
    """texts with commas between them"""
    found = tuple(one.strip() for one in given.split(","))
    if not all(found):
        raise ValueError("allowed are texts with commas between them")
    return found


def count(given: str) -> int:
    """a whole number from 1"""
    if not given.isascii() or not given.isdigit() or len(given) > 10 or int(given) < 1:
        raise ValueError("allowed is a whole number from 1")
    return int(given)


def number_from_0(given: str) -> int:
    """a whole number from 0"""
    if not given.isascii() or not given.isdigit() or len(given) > 10:
        raise ValueError("allowed is a whole number from 0")
    return int(given)


def share(given: str) -> float:
    """a number from 0 to 1"""
    try:
        found = float(given)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise ValueError("allowed is a number from 0 to 1, as 0.1")
    return found


def duration(given: str) -> int:
    """a duration, as 90s, 10m or 7d (ms s m h d w)"""
    found = parse_duration(given)
    if not found:
        raise ValueError("allowed is a duration, as 90s, 10m or 7d (units ms s m h d w)")
    return found


def choice(*allowed: str) -> Kind:
    """One of some words."""

    def read(given: str) -> str:
        if given not in allowed:
            raise ValueError(f"allowed is {' or '.join(allowed)}")
        return given

    read.__doc__ = " or ".join(f"`{one}`" for one in allowed)
    return read


def some_of(*allowed: str) -> Kind:
    """Some of some words."""

    def read(given: str) -> tuple[str, ...]:
        found = texts(given)
        if not set(found) <= set(allowed):
            raise ValueError(f"allowed are some of {', '.join(allowed)}, with commas between them")
        return found

    read.__doc__ = f"some of {', '.join(f'`{one}`' for one in allowed)}, with commas between them"
    return read


def path(given: str) -> tuple[str, ...]:
    """a field, as total or order.total"""
    steps: list[str] = []
    at = 0
    while True:
        step = _PATH_STEP.match(given, at)
        if step is None or len(steps) == _DEEPEST:
            raise ValueError(
                "allowed is the name of a field, with dots between the names of fields in fields: total, order.total; "
                "a name with a dot in it stands in backticks"
            )
        steps.append(step[1] or step[2])
        at = step.end()
        if at == len(given):
            return tuple(steps)
        if given[at] != ".":
            at = len(given)  # a backtick within a name
        else:
            at += 1


def paths(given: str) -> tuple[tuple[str, ...], ...]:
    """fields with commas between them, as total,order.id"""
    return tuple(path(one.strip()) for one in given.split(","))


def names(given: str) -> Mapping[str, str]:
    """pairs of a name and another one, as old:new,a:b"""
    pairs = [one.strip().partition(":") for one in given.split(",")]
    if not all(old.strip() and colon and new.strip() for old, colon, new in pairs):
        raise ValueError("allowed are pairs of names, as old:new,a:b")
    return {old.strip(): new.strip() for old, _, new in pairs}


_CASTS: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")


def casts(given: str) -> Mapping[tuple[str, ...], str]:
    """a type for the whole, or fields with their types, as total:int64,order.id:string"""
    if given in _CASTS:
        return {(): given}
    found: dict[tuple[str, ...], str] = {}
    for one in given.split(","):
        field, _, kind = one.strip().rpartition(":")
        if not field or kind not in _CASTS:
            raise ValueError(
                "allowed is a type, or fields with types, as total:int64,order.id:string; types are "
                f"{', '.join(_CASTS)}"
            )
        found[path(field)] = kind
    return found


def search(given: str) -> Search:
    """a regular expression, found anywhere in the text"""
    return Search(given)


def replaceable(given: str) -> re.Pattern[str]:
    """a regular expression whose time has a bound"""
    found = Search(given)
    if found.longest < LEAST_SEARCHED:
        raise ValueError(
            f"a regular expression that may take too long in a text of {LEAST_SEARCHED} characters: allowed is one "
            "without a repetition in a repetition, and with few repetitions one behind the other"
        )
    return re.compile(given)


def condition(given: str) -> Any:
    """a condition, in the language of `leafcuttr consume --filter`"""
    try:
        return parse(given)
    except ConditionError as error:
        raise ValueError(str(error)) from None


def java_format(given: str) -> Any:
    """a pattern of Java's SimpleDateFormat with the letters y M d H m s S Z X"""
    from leafcuttr_filters.transforms.java_times import JavaFormat

    return JavaFormat(given)
