"""Values that are decoded many at a time, and one by one where some of them are bad."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

_FEW: Final = 64
"""Values that are decoded one by one once they are known to have a bad one among them."""
_PARTS: Final = 8
LONGEST_LINE: Final = 300
_SLOW_BYTES: Final = 4 << 20
"""Bytes of values of which objects are made at once."""

Fast = Callable[[pa.Array], pa.Array]
"""All values of a binary array without nulls. Raises PieceError if any of them is bad."""
Slow = Callable[[bytes], Any]
"""What Arrow makes an element of. Raises any Exception for a bad one."""
Build = Callable[[list[Any]], pa.Array]
"""Raises any Exception if one of them is bad."""


class PieceError(ValueError):
    """Some value among many is bad."""


class Decoded(NamedTuple):
    """One element for each value, null where it is bad; and for those one line each."""

    values: pa.Array
    errors: dict[int, str]


class Pieces:
    """Decodes by `fast` what that can, the rest by `slow` and `build`. A value's verdict does not depend on the others:
    what `fast` takes, `slow` would have taken too."""

    def __init__(self, type_: pa.DataType, fast: Fast | None, slow: Slow, build: Build) -> None:
        self.type = type_
        self._fast = fast
        self._slow = slow
        self._build = build

    def decode(self, values: pa.Array) -> Decoded:
        """Of a binary array without nulls."""
        errors: dict[int, str] = {}
        found = list(self._decoded(values, 0, errors))
        if not found:
            return Decoded(pa.nulls(0, self.type), errors)
        return Decoded(found[0] if len(found) == 1 else pa.concat_arrays(found), errors)

    def _decoded(self, values: pa.Array, first: int, errors: dict[int, str]) -> Iterator[pa.Array]:
        count = len(values)
        if not count:
            return
        if self._fast is not None:
            try:
                yield self._fast(values)
            except PieceError:
                pass
            else:
                return
            if count > _FEW:
                size = -(-count // _PARTS)
                for at in range(0, count, size):
                    yield from self._decoded(values.slice(at, size), first + at, errors)
                return
        yield from self._one_by_one(values, first, errors)

    def _one_by_one(self, values: pa.Array, first: int, errors: dict[int, str]) -> Iterator[pa.Array]:
        objects: list[Any] = []
        size = begun = 0
        for place, value in enumerate(values):
            data = value.as_py()
            if objects and size + len(data) > _SLOW_BYTES:
                yield self._built(objects, begun, errors)
                objects, size, begun = [], 0, first + place
            elif not objects:
                begun = first + place
            size += len(data)
            try:
                objects.append(self._slow(data))
            except Exception as error:
                objects.append(None)
                errors[first + place] = line_of(error)
        if objects:
            yield self._built(objects, begun, errors)

    def _built(self, objects: list[Any], first: int, errors: dict[int, str]) -> pa.Array:
        try:
            return self._build(objects)
        except Exception as error:
            if len(objects) == 1:
                errors.setdefault(first, line_of(error))
                return pa.nulls(1, self.type)
        half = len(objects) // 2
        return pa.concat_arrays(
            [self._built(objects[:half], first, errors), self._built(objects[half:], first + half, errors)]
        )


def line_of(error: BaseException) -> str:
    """One line for a person."""
    text = " ".join(str(error).split())[:LONGEST_LINE]
    return (
        text if text and not isinstance(error, KeyError) else f"{type(error).__name__}: {text}".rstrip(": ")
    )
