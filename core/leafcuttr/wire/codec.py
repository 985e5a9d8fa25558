"""Readers and writers of messages, compiled at first use and kept: one per class and version.

    read = reader(ProduceRequest, 12)
    request, at = read(buffer, at, end)         # hot paths keep `read`; `decode` is for everything else

Readers raise MalformedMessage and nothing else, whatever the bytes; they copy strings and bytes, while
records stay slices of the buffer. Writers raise EncodeError and leave `out` and `regions` as they were. The
generated source is the business of `reading` and `writing`.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from leafcuttr.wire.errors import MalformedMessage, UnsupportedVersion
from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.reading import compile_reader
from leafcuttr.wire.schema import declaration
from leafcuttr.wire.writing import compile_writer

T = TypeVar("T")


class HasLength(Protocol):
    """Records that are sent from elsewhere (a file region); `length` is in bytes."""

    @property
    def length(self) -> int: ...


Records = bytes | bytearray | memoryview | HasLength | None
"""What a records field can hold. Readers make it a memoryview of the buffer, or None."""

Region = tuple[int, Any]
"""(position in the output, the HasLength object whose bytes belong there)."""

Reader = Callable[[Buffer, int, int], tuple[T, int]]
"""(buffer, at, end) -> (message, position after it). Bytes from `end` on are never looked at."""

Writer = Callable[[T, bytearray, list[Region]], None]
"""(message, out, regions): appends to `out`, and to `regions` for records that have no bytes of their own."""

_readers: dict[tuple[type[Any], int], Any] = {}
_writers: dict[tuple[type[Any], int], Any] = {}


def reader(cls: type[T], version: int) -> Reader[T]:
    """The reader of one version of a message. Raises UnsupportedVersion."""
    found = _readers.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _readers[cls, version] = compile_reader(cls, version)
    return cast(Reader[T], found)


def writer(cls: type[T], version: int) -> Writer[T]:
    """The writer of one version of a message. Raises UnsupportedVersion."""
    found = _writers.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _writers[cls, version] = compile_writer(cls, version)
    return cast(Writer[T], found)


def decode(cls: type[T], version: int, data: Buffer) -> T:
    """Read a message that is all of `data`. Raises MalformedMessage, also for bytes left over,
    UnsupportedVersion."""
    message, at = reader(cls, version)(data, 0, len(data))
    if at != len(data):
        raise MalformedMessage(f"{cls.__name__}: {len(data) - at} bytes are left over at byte {at}")
    return message


def encode(message: object, version: int) -> bytes:
    """Write a message whose records, if any, are bytes. Raises EncodeError, UnsupportedVersion."""
    out = bytearray()
    writer(type(message), version)(message, out, _NoRegions())
    return bytes(out)


class _NoRegions(list[Region]):
    def append(self, region: Region) -> None:
        raise ValueError("records from a file can only go to a transport")


def _check(cls: type[Any], version: int) -> None:
    if version not in declaration(cls).versions:
        raise UnsupportedVersion(f"{cls.__name__} has no version {version}")
