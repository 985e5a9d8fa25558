"""How a message is declared: once, for all its versions, by a class whose fields say when they exist.

    @struct
    class Partition:
        index: int = field(INT32, "0+")
        error_message: str | None = field(STRING, "8+", nullable="8+", default=None)

    @message("3-13", flexible="9+")
    class Request:
        partitions: Sequence[Partition] = field(array(Partition), "0+")

Versions are written as Kafka writes them: "3+", "1-4", "2", "" for none. Bytes are handled by `codec`, and
messages are declared in `messages`.

Both decorators make frozen, slotted dataclasses with keyword-only construction. They do it in their own way
for speed: a frozen dataclass of the standard library pays for `object.__setattr__` at each field. Here each
class has an open twin with the same slots (its only base); constructors, compiled readers among them, fill an
object of the twin with plain stores and then turn it into the frozen class by assigning `__class__`. With 8
fields that is twice as quick for a caller with keywords, 6 times for a reader, and a class is made in a tenth of the
time, which counts because most of them are made before the first answer.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar, cast, dataclass_transform

from leafcuttr.wire.primitives import ZERO_UUID

T = TypeVar("T")
_NO_DEFAULT: Any = object()
_METADATA_KEY = "wire"


class Versions(NamedTuple):
    """An inclusive range of versions; `last` below `first` means none."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NONE = Versions(0, -1)
_OPEN_END = 32767


@functools.cache
def versions(text: str) -> Versions:
    """Parse "3+", "1-4", "2" or "" (none)."""
    if not text:
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), _OPEN_END)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


class PrimitiveType(NamedTuple):
    """A type of the protocol. `code` is its letter for the struct module if its size is fixed, else ""."""

    name: str
    code: str
    size: int
    default: Any


BOOL = PrimitiveType("bool", "?", 1, False)
INT8 = PrimitiveType("int8", "b", 1, 0)
INT16 = PrimitiveType("int16", "h", 2, 0)
UINT16 = PrimitiveType("uint16", "H", 2, 0)
INT32 = PrimitiveType("int32", "i", 4, 0)
UINT32 = PrimitiveType("uint32", "I", 4, 0)
INT64 = PrimitiveType("int64", "q", 8, 0)
FLOAT64 = PrimitiveType("float64", "d", 8, 0.0)
UUID = PrimitiveType("uuid", "16s", 16, ZERO_UUID)
STRING = PrimitiveType("string", "", 0, "")
BYTES = PrimitiveType("bytes", "", 0, b"")
RECORDS = PrimitiveType("records", "", 0, None)


class Array(NamedTuple):
    """The type of an array of `element`."""

    element: "PrimitiveType | type[Any]"


FieldType = PrimitiveType | Array | type[Any]


def array(element: PrimitiveType | type[Any]) -> Array:
    """An array of a kind or of a struct."""
    return Array(element)


class FieldSpec(NamedTuple):
    """What a declaration says about one field. `tag` is -1 and `tagged` none for a field that is never
    tagged."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions
    default: Any
    tag: int
    tagged: Versions
    ignorable: bool


def field(
    type_: FieldType,
    present: str,
    *,
    nullable: str = "",
    default: Any = _NO_DEFAULT,
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> Any:
    """Declare a field that is there in the versions `present`.

    `default` is what a reader puts where the version lacks the field; left out, it is the type's own (0, "",
    an empty array, a struct of defaults, no records). `nullable` are the versions that can carry None. In the
    versions `tagged` it travels in the tagged fields section under `tag`, and only if it differs from its
    default (KIP-482).

    `ignorable` repeats what Kafka's definition says. A writer leaves out what a version cannot carry,
    ignorable or not: we answer clients, and an answer with less in it serves an old client better than none.
    """
    if default is _NO_DEFAULT:
        if isinstance(type_, PrimitiveType):
            default = type_.default
        else:
            default = () if isinstance(type_, Array) else type_()
    spec = FieldSpec(
        "", type_, versions(present), versions(nullable), default, tag, versions(tagged), ignorable
    )
    return dataclasses.field(default=default, metadata={_METADATA_KEY: spec})


class Declaration(NamedTuple):
    """What the codecs know of a class. `versions` and `flexible` are those of a message; none for a mere
    struct."""

    name: str
    open_class: type[Any]
    fields: tuple[FieldSpec, ...]
    versions: Versions
    flexible: Versions


def declaration(cls: type[Any]) -> Declaration:
    """The declaration of a class made by `struct` or `message`."""
    found: Declaration = cls.__wire__
    return found


@dataclass_transform(frozen_default=True, kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Make a class the frozen, slotted dataclass of a part of messages."""
    return _build(cls, NONE, NONE)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(valid: str, *, flexible: str = "") -> Callable[[type[T]], type[T]]:
    """Make a class the frozen, slotted dataclass of a message with the versions `valid`, compact from
    `flexible` on."""

    def decorate(cls: type[T]) -> type[T]:
        return _build(cls, versions(valid), versions(flexible))

    return decorate


def _build(cls: type[T], valid: Versions, flexible: Versions) -> type[T]:
    cls.__doc__ = (
        cls.__doc__ or cls.__name__
    )  # without one, dataclasses spends more time on it than on all else
    open_class = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False, slots=True)(cls)
    specs = tuple(
        item.metadata[_METADATA_KEY]._replace(name=item.name)
        for item in dataclasses.fields(cast(Any, open_class))
    )
    members: dict[str, Any] = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__new__": _compile_constructor_and_construct,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__eq__": _equal,
        "__hash__": _hash,
        "__repr__": _show,
        "__wire__": Declaration(cls.__name__, open_class, specs, valid, flexible),
    }
    return cast(type[T], type(cls.__name__, (open_class,), members))


def _compile_constructor_and_construct(cls: type[Any], **given: Any) -> Any:
    """Stand in for `__new__` until the first object is built by keywords; most request classes never need
    it."""
    found = declaration(cls)
    scope: dict[str, Any] = {"new": object.__new__, "Open": found.open_class, "Frozen": cls}
    scope |= {f"default_{spec.name}": spec.default for spec in found.fields}
    parameters = "".join(f", {spec.name}=default_{spec.name}" for spec in found.fields)
    stores = "".join(f"    made.{spec.name} = {spec.name}\n" for spec in found.fields)
    star = ", *" if parameters else ""
    source = (
        f"def __new__(cls{star}{parameters}):\n"
        f"    made = new(Open)\n{stores}    made.__class__ = Frozen\n    return made\n"
    )
    exec(source, scope)
    type.__setattr__(cls, "__new__", staticmethod(scope["__new__"]))
    return cls(**given)


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _values(self: object) -> tuple[Any, ...]:
    return tuple(getattr(self, spec.name) for spec in declaration(type(self)).fields)


def _equal(self: object, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return all(_alike(mine, theirs) for mine, theirs in zip(_values(self), _values(other), strict=True))


def _alike(mine: Any, theirs: Any) -> bool:
    """Equal, where a list and a tuple of the same elements are the same array."""
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        return len(mine) == len(theirs) and all(map(_alike, mine, theirs))
    return bool(mine == theirs)


def _hash(self: object) -> int:
    return hash((type(self), tuple(tuple(v) if isinstance(v, list) else v for v in _values(self))))


def _show(self: object) -> str:
    found = declaration(type(self))
    return f"{found.name}({', '.join(f'{spec.name}={getattr(self, spec.name)!r}' for spec in found.fields)})"
