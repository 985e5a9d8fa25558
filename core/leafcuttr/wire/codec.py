"""Readers and writers of messages, compiled at first use and kept: one per class and version.

    read = reader(ProduceRequest, 12)
    request, at = read(buffer, at, end)         # hot paths keep `read`; `decode` is for everything else

Readers raise MalformedMessage and nothing else, whatever the bytes; they copy strings and bytes, while
records stay slices of the buffer. Writers raise EncodeError and leave `out` and `regions` as they were. The
generated source is the business of `reading` and `writing`.

A caller that must not be blocked passes the most array elements that are handled at once, and gets ManyElements for a
message of more; `reader_in_steps` and `writer_in_steps` are for those. They are generators: the caller decides what
happens between two steps of some 0.1 ms.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from leafcuttr.wire.errors import MalformedMessage, UnsupportedVersion
from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.reading import compile_reader
from leafcuttr.wire.schema import declaration
from leafcuttr.wire.writing import compile_writer

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class HasLength(Protocol):
    """Records that are sent from elsewhere (a file region); `length` is in bytes."""

    @property
    def length(self) -> int: ...


Records = bytes | bytearray | memoryview | HasLength | None
"""What a records field can hold. Readers make it a memoryview of the buffer, or None."""

Region = tuple[int, Any]
"""(position in the output, the HasLength object whose bytes belong there)."""


class Reader(Protocol[T_co]):
    def __call__(self, buffer: Buffer, at: int, end: int, allowed: int = ...) -> tuple[T_co, int]:
        """The message and the position after it. Bytes from `end` on are never read. `allowed` elements are read
        at most; ManyElements."""
        ...


class Writer(Protocol[T_contra]):
    def __call__(self, message: T_contra, out: bytearray, regions: list[Region], allowed: int = ...) -> None:
        """Append to `out`, and to `regions` for records that have no bytes of their own. `allowed` elements are
        written at most; ManyElements."""
        ...


ReaderInSteps = Callable[[Buffer, int, int], Generator[None, None, tuple[T, int]]]
WriterInSteps = Callable[[T, bytearray, list[Region]], Generator[None, None, None]]

_readers: dict[tuple[type[Any], int], Any] = {}
_writers: dict[tuple[type[Any], int], Any] = {}
_readers_in_steps: dict[tuple[type[Any], int], Any] = {}
_writers_in_steps: dict[tuple[type[Any], int], Any] = {}


def reader(cls: type[T], version: int) -> Reader[T]:
    """The reader of one version of a message. Raises UnsupportedVersion."""
    # Annotated, not cast: a cast would build its type anew at every call.
    found: Reader[T] | None = _readers.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _readers[cls, version] = compile_reader(cls, version)
    return found


def writer(cls: type[T], version: int) -> Writer[T]:
    """The writer of one version of a message. Raises UnsupportedVersion."""
    found: Writer[T] | None = _writers.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _writers[cls, version] = compile_writer(cls, version)
    return found


def reader_in_steps(cls: type[T], version: int) -> ReaderInSteps[T]:
    """`reader` for messages of very many elements. Raises UnsupportedVersion."""
    found: ReaderInSteps[T] | None = _readers_in_steps.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _readers_in_steps[cls, version] = compile_reader(cls, version, in_steps=True)
    return found


def writer_in_steps(cls: type[T], version: int) -> WriterInSteps[T]:
    """`writer` for messages of very many elements. Raises UnsupportedVersion."""
    found: WriterInSteps[T] | None = _writers_in_steps.get((cls, version))
    if found is None:
        _check(cls, version)
        found = _writers_in_steps[cls, version] = compile_writer(cls, version, in_steps=True)
    return found


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
