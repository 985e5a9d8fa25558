"""An exception of others' code in one line of bounded length: its type, its words, and the place in that code.

Nothing of the exception is trusted: its words may have 100 MB, or raise when they are read. Its class may say what it
likes of itself too (`__class__`, `exceptions`, `__traceback__`, a metaclass), so all of that is read past the class.
"""

from collections.abc import Iterator
from itertools import islice
from traceback import walk_tb
from types import TracebackType
from typing import Final, TypeGuard, TypeVar

from leafcuttr.runtime.frames import package_in
from leafcuttr_sdk.errors import PluginError

E = TypeVar("E", bound=BaseException)

LONGEST: Final = 1000
"""Characters of the words."""
_READ: Final = 4 * LONGEST
_NAME: Final = 100
_LEAVES: Final = 100
_OURS: Final = frozenset({"leafcuttr", "pluggy", "trio", "outcome", "importlib", "contextvars", "click"})
"""Packages between a call of the broker's and the code that it calls."""


def is_of(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """`isinstance` by its type alone: that asks the class as well."""
    return issubclass(type(error), kind)


def described(error: BaseException, *, place: bool = True) -> str:
    """`ValueError: no such thing (/path/acme.py, line 7)`, or without the `place`. Of a PluginError its words only,
    which are written to be read. Of a group its first one, and how many more there are."""
    first, more = first_of(error), len(leaves_of(error)) - 1
    if is_of(first, PluginError):
        text = words_of(first) or type_of(first)
    else:
        text = ": ".join(part for part in (type_of(first), words_of(first)) if part)
        where = place_of(first) if place else ""
        text += f" ({where})" if where else ""
    return f"{text} and {more} more" if more else text


def type_of(error: BaseException) -> str:
    """The name of its type; of a group that of its first one."""
    name: str = type.__dict__["__name__"].__get__(type(first_of(error)))
    return name[:_NAME]


def words_of(error: BaseException) -> str:
    """The first line of what it says, cut to `LONGEST`; of a group that of its first one."""
    first = first_of(error)
    try:
        said = str(first.msg if is_of(first, SyntaxError) else first)
    except BaseException:
        return "its words cannot be read"
    return first_line("".join((said,)))  # a plain text, whatever the subclass of str


def first_line(text: str) -> str:
    """Its first line that is not empty, cut to `LONGEST`."""
    line = next(iter(text[:_READ].strip().splitlines()), "").rstrip()
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def place_of(error: BaseException) -> str:
    """`FILE, line N`: the innermost place in the package whose code was called. Empty if there is none."""
    try:
        return _place_of(error)
    except BaseException:
        return ""


def _place_of(error: BaseException) -> str:
    package, place = None, ""
    if is_of(error, SyntaxError) and error.filename and error.lineno is not None:
        return first_line(f"{error.filename}, line {error.lineno}")
    for frame, line in walk_tb(traceback_of(error)):
        file, own = frame.f_code.co_filename, package_in(frame)
        if own in _OURS or file.startswith("<frozen "):
            continue
        package = package or own
        if own == package:
            place = f"{file}, line {line}"
    return place


def first_of(error: BaseException) -> BaseException:
    """The one of a group that is to be named: a PluginError, which says what a person should read, or the first one."""
    found = leaves_of(error)
    return next((leaf for leaf in found if is_of(leaf, PluginError)), found[0])


def leaves_of(error: BaseException) -> list[BaseException]:
    """Those in a group and in its groups, in order, and not more than a hundred of them; else the error itself."""
    return list(islice(_leaves(error), _LEAVES))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if is_of(one, BaseExceptionGroup):
            waiting.extend(reversed(BaseExceptionGroup.__dict__["exceptions"].__get__(one)))
        else:
            yield one


def traceback_of(error: BaseException) -> TracebackType | None:
    """Its traceback."""
    found: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return found


def cause_of(error: BaseException) -> BaseException | None:
    """What it was raised from."""
    found: BaseException | None = BaseException.__dict__["__cause__"].__get__(error)
    return found
