"""What the names of a schema mean: its messages, fields, enums and other symbols, and those of the files it imports.

A `Universe` is what protoc calls a pool: the files of one schema. Names are unique in all of it; which of them a file
may use depends on its imports.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.lexer import failure
from leafcuttr_sdk.schemas import SchemaError

SCALARS: Final = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
"""Numbers of `FieldDescriptorProto.Type`."""
SCALAR_NAMES: Final = {number: name for name, number in SCALARS.items()}
TYPE_DOUBLE, TYPE_FLOAT, TYPE_BOOL, TYPE_STRING, TYPE_BYTES = 1, 2, 8, 9, 12
TYPE_GROUP: Final = 10
TYPE_MESSAGE: Final = 11
TYPE_ENUM: Final = 14
OPTIONAL, REQUIRED, REPEATED = 1, 2, 3
LABELS: Final = {None: OPTIONAL, "optional": OPTIONAL, "required": REQUIRED, "repeated": REPEATED}


@dataclass(slots=True, eq=False)
class Source:
    """A file of a schema."""

    name: str
    text: str = ""
    root: bool = True
    proto: FileDescriptorProto = field(default_factory=FileDescriptorProto)
    tree: "tree.File | None" = None
    """None for a file that is built in."""
    imports: "list[Source]" = field(default_factory=list)
    public: "list[Source]" = field(default_factory=list)
    visible: "set[Source]" = field(default_factory=set)
    """Files whose names it may use: itself, its imports, and what these import publicly."""
    visible_to_options: "set[Source]" = field(default_factory=set)
    """The same, with what is imported for options alone."""
    messages: "list[MessageInfo]" = field(default_factory=list)
    fields: "list[FieldInfo]" = field(default_factory=list)
    """Of messages; extensions are apart."""
    extensions: "list[FieldInfo]" = field(default_factory=list)
    enums: "list[EnumInfo]" = field(default_factory=list)

    def error(self, at: int, reason: str) -> SchemaError:
        """The error of a place of the file."""
        error = failure(self.text, at, reason)
        if self.root:
            return error
        return SchemaError(f"in the reference {self.name}, {error}", path=self.name, line=error.line)

    @property
    def dialect(self) -> str:
        if self.tree is not None:
            return self.tree.dialect
        return self.proto.syntax or "proto2"


@dataclass(slots=True, eq=False)
class MessageInfo:
    name: str
    """The full one, without a leading dot, as all here."""
    source: Source
    proto: DescriptorProto
    node: "tree.Message | None" = None
    parent: "MessageInfo | None" = None
    fields: "dict[str, FieldInfo]" = field(default_factory=dict)
    map_entry: bool = False
    synthetic: bool = False
    """The text has a map or a group instead."""
    children: "list[MessageInfo]" = field(default_factory=list)
    enums: "list[EnumInfo]" = field(default_factory=list)
    """What is declared within it."""
    strict_json: bool = False
    """Its fields have to differ in JSON."""

    @property
    def at(self) -> int:
        return self.node.at if self.node is not None else -1


@dataclass(slots=True, eq=False)
class EnumInfo:
    name: str
    source: Source
    proto: EnumDescriptorProto
    node: "tree.Enum | None" = None
    values: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    @property
    def at(self) -> int:
        return self.node.at if self.node is not None else -1


@dataclass(slots=True, eq=False)
class FieldInfo:
    name: str
    source: Source
    proto: FieldDescriptorProto
    node: "tree.Field | None" = None
    message: "MessageInfo | None" = None
    """The one that it is in; of an extension, the one that it extends."""
    type: "MessageInfo | EnumInfo | None" = None
    extension: bool = False
    required: bool = False
    delimited: bool = False
    """A group, or a message that is encoded as one."""

    @property
    def at(self) -> int:
        return self.node.at if self.node is not None else -1


@dataclass(slots=True, eq=False)
class Package:
    name: str
    sources: set[Source]


@dataclass(slots=True, eq=False)
class Other:
    """A symbol that nothing refers to: a oneof, a constant, a service or a method."""

    name: str
    source: Source
    what: str


Symbol: TypeAlias = MessageInfo | EnumInfo | FieldInfo | Package | Other
_TYPES = (MessageInfo, EnumInfo)
_AGGREGATES = (MessageInfo, EnumInfo, Package)


def set_type(proto: Any, type_: int) -> None:
    """Numbers of enums, which stubs of protobuf take for types of their own."""
    proto.type = type_


def set_label(proto: Any, label: int) -> None:
    proto.label = label


class Universe:
    """The symbols of all files of a schema."""

    __slots__ = ("_extensions", "_found", "sources", "symbols")

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.symbols: dict[str, Symbol] = {}
        self._extensions: dict[tuple[str, int], FieldInfo] = {}
        self._found: dict[tuple[int, str, str, bool], Symbol | None] = {}

    def add(self, symbol: Symbol, source: Source, at: int) -> None:
        """Raises SchemaError for a name that is taken."""
        name = symbol.name
        known = self.symbols.setdefault(name, symbol)
        if known is not symbol:
            raise source.error(at, f"{name} is already defined{_where(known, source)}")

    def add_extension(self, field: FieldInfo, source: Source) -> None:
        """Raises SchemaError for a number that another extension of the message has."""
        assert field.message is not None
        number = field.proto.number
        known = self._extensions.setdefault((field.message.name, number), field)
        if known is not field:
            raise source.error(
                field.at,
                f"{field.name}: {field.message.name} has the extension {number} already, {known.name}",
            )

    def add_package(self, name: str, source: Source, at: int) -> None:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            known = self.symbols.setdefault(prefix, Package(prefix, set()))
            if not isinstance(known, Package):
                raise source.error(at, f"{prefix} is a package and something else{_where(known, source)}")
            known.sources.add(source)

    def _visible(self, name: str, visible: set[Source]) -> Symbol | None:
        symbol = self.symbols.get(name)
        if symbol is None:
            return None
        if isinstance(symbol, Package):
            return symbol if not symbol.sources.isdisjoint(visible) else None
        return symbol if symbol.source in visible else None

    def find(
        self, name: str, scope: str, source: Source, *, types: bool = False, options: bool = False
    ) -> Symbol | None:
        """What a name means within `scope`, a full name: the innermost scope that has its first part counts.

        With `types`, names of what is no type are passed over. Rules of protoc (descriptor.proto, `type_name`).
        """
        visible = source.visible_to_options if options else source.visible
        key = (id(visible), scope, name, types)
        if key not in self._found:
            self._found[key] = self._find(name, scope, visible, types)
        return self._found[key]

    def _find(self, name: str, scope: str, visible: set[Source], types: bool) -> Symbol | None:
        if name.startswith("."):
            return self._visible(name[1:], visible)
        first, _, rest = name.partition(".")
        while True:
            prefix = f"{scope}." if scope else ""
            symbol = self._visible(prefix + first, visible)
            if symbol is not None:
                if rest and isinstance(symbol, _AGGREGATES):
                    return self._visible(prefix + name, visible)
                if not rest and (not types or isinstance(symbol, _TYPES)):
                    return symbol
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def missing(self, name: str, scope: str, source: Source) -> str:
        """Why a name means nothing."""
        plain = name.removeprefix(".")
        for candidate in _candidates(plain, scope if not name.startswith(".") else ""):
            symbol = self.symbols.get(candidate)
            if symbol is not None and not isinstance(symbol, Package) and symbol.source not in source.visible:
                return f"{name} is defined in {symbol.source.name}, which is not imported"
        return f"{name} is not defined"


def _candidates(name: str, scope: str) -> Iterator[str]:
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def _where(symbol: Symbol, source: Source) -> str:
    if isinstance(symbol, Package):
        return " as a package"
    if symbol.source is not source:
        return f" in {symbol.source.name}"
    node = getattr(symbol, "node", None)
    line = source.error(node.at, "").line if node is not None else None
    return f" in line {line}" if line is not None else ""
