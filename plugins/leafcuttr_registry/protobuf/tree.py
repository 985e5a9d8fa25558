"""What a `.proto` text says, as it says it: names are not resolved, options not interpreted, comments gone.

Positions (`at`) are offsets in the text; -1 where the schema came as a descriptor.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

MAX_FIELD_NUMBER: Final = (1 << 29) - 1
MAX_INT32: Final = (1 << 31) - 1

ImportKind: TypeAlias = Literal["", "public", "weak", "option"]
Label: TypeAlias = Literal["optional", "required", "repeated"]


@dataclass(slots=True)
class Text:
    """A string literal, its escapes resolved and its pieces joined."""

    data: bytes


@dataclass(slots=True)
class Number:
    """A literal with its sign. `text` is how it was written, which canonical texts keep."""

    text: str
    value: int | float


@dataclass(slots=True)
class Word:
    """An identifier: a constant of an enum, `true`, `inf` ..."""

    name: str


@dataclass(slots=True)
class Sequence:
    items: "list[Value]"


@dataclass(slots=True)
class Entry:
    """`key: value` of an aggregate; the key of an extension has its brackets."""

    key: str
    value: "Value"
    at: int


@dataclass(slots=True)
class Aggregate:
    """A message in text format."""

    entries: list[Entry]


Value: TypeAlias = Text | Number | Word | Sequence | Aggregate


@dataclass(slots=True)
class NamePart:
    name: str
    extension: bool
    """It is in parentheses."""


@dataclass(slots=True)
class Option:
    name: tuple[NamePart, ...]
    value: Value
    at: int


@dataclass(slots=True)
class Encoded(Option):
    """The options of a descriptor as its bytes: custom ones have names only where their definitions are known, which
    is after the imports are linked. `decode_options.py` replaces it."""

    data: bytes = b""


@dataclass(slots=True)
class Range:
    """Both ends are of the range."""

    start: int
    end: int
    at: int
    to_max: bool = False
    """The text says `max` instead of the end."""


@dataclass(slots=True)
class Reserved:
    ranges: list[Range]
    names: list[tuple[str, int]]
    """Each with its position."""
    quoted: bool = True
    """Editions write them as identifiers."""


@dataclass(slots=True)
class Extensions:
    ranges: list[Range]
    options: list[Option]


@dataclass(slots=True)
class MapType:
    key: str
    value: str


@dataclass(slots=True)
class Field:
    label: Label | None
    type: "str | MapType | Message"
    """A name as it is written, of a scalar or another type; a map; a group's message."""
    name: str
    number: int
    at: int
    number_at: int
    options: list[Option] = field(default_factory=list)
    default: Value | None = None
    json_name: str | None = None
    oneof: "Oneof | None" = None
    special_at: int = -1
    """Of the default or the JSON name."""


@dataclass(slots=True)
class Oneof:
    name: str
    at: int
    fields: list[Field] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class EnumValue:
    name: str
    number: int
    at: int
    options: list[Option]


@dataclass(slots=True)
class Enum:
    name: str
    at: int
    values: list[EnumValue] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    visibility: str | None = None


@dataclass(slots=True)
class Extend:
    extendee: str
    at: int
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    name: str
    at: int
    body: "list[Field | Message | Enum | Extend]" = field(default_factory=list)
    """In the order of the text, fields of oneofs among them."""
    oneofs: list[Oneof] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    visibility: str | None = None


@dataclass(slots=True)
class Method:
    name: str
    at: int
    input: str
    output: str
    client_streaming: bool
    server_streaming: bool
    options: list[Option] = field(default_factory=list)
    braces: bool = False
    """It has a body, if only an empty one: protoc's descriptors tell them apart."""


@dataclass(slots=True)
class RpcService:
    name: str
    at: int
    methods: list[Method] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Import:
    name: str
    kind: ImportKind
    at: int


@dataclass(slots=True)
class File:
    syntax: str | None = None
    """`proto2`, `proto3`, or None where the text does not say or names an edition."""
    edition: str | None = None
    package: str | None = None
    package_at: int = -1
    imports: list[Import] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    body: "list[Message | Enum | Extend | RpcService]" = field(default_factory=list)

    @property
    def dialect(self) -> Literal["proto2", "proto3", "editions"]:
        if self.edition is not None:
            return "editions"
        return "proto3" if self.syntax == "proto3" else "proto2"
