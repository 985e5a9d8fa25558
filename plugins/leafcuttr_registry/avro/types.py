"""What a schema consists of, after parsing: types that refer to one another, in circles where they are recursive.

Two types are the same where they are the same object; `equality` compares what they say.
"""

from typing import Final, TypeAlias

from leafcuttr_registry.avro.names import Name
from leafcuttr_sdk.schemas import JsonValue


class NoDefault:
    """A field has no default. None would be the default null."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = NoDefault()


class AvroType:
    """A type with the properties that the specification does not name."""

    __slots__ = ("logical", "props")
    kind = ""
    """`record`, `union`, `int`, ..."""

    def __init__(self, props: dict[str, JsonValue]) -> None:
        self.props = props
        self.logical: str | None = None
        """The logical type, where it is valid. The specification has readers ignore what is not."""

    @property
    def label(self) -> str:
        """What names it among the branches of a union: a type's name, or a fullname."""
        return self.kind


class PrimitiveType(AvroType):
    __slots__ = ("kind",)

    def __init__(self, kind: str, props: dict[str, JsonValue]) -> None:
        super().__init__(props)
        self.kind = kind


class ArrayType(AvroType):
    __slots__ = ("items",)
    kind = "array"

    def __init__(self, items: "AvroType", props: dict[str, JsonValue]) -> None:
        super().__init__(props)
        self.items = items


class MapType(AvroType):
    __slots__ = ("values",)
    kind = "map"

    def __init__(self, values: "AvroType", props: dict[str, JsonValue]) -> None:
        super().__init__(props)
        self.values = values


class UnionType(AvroType):
    __slots__ = ("branches",)
    kind = "union"

    def __init__(self, branches: list["AvroType"]) -> None:
        super().__init__({})
        self.branches = branches


class NamedType(AvroType):
    """A record, enum or fixed."""

    __slots__ = ("aliases", "doc", "name")

    def __init__(self, name: Name, doc: str | None, props: dict[str, JsonValue]) -> None:
        super().__init__(props)
        self.name = name
        self.doc = doc
        self.aliases: list[Name] = []

    @property
    def label(self) -> str:
        return self.name.full


class EnumType(NamedType):
    __slots__ = ("default", "symbols")
    kind = "enum"

    def __init__(
        self,
        name: Name,
        doc: str | None,
        symbols: list[str],
        default: str | None,
        props: dict[str, JsonValue],
    ) -> None:
        super().__init__(name, doc, props)
        self.symbols = symbols
        self.default = default


class FixedType(NamedType):
    __slots__ = ("size",)
    kind = "fixed"

    def __init__(self, name: Name, doc: str | None, size: int, props: dict[str, JsonValue]) -> None:
        super().__init__(name, doc, props)
        self.size = size


class Field:
    """A field of a record."""

    __slots__ = ("aliases", "default", "doc", "name", "order", "props", "type")

    def __init__(self, name: str, type: AvroType) -> None:
        self.name = name
        self.type = type
        self.doc: str | None = None
        self.default: JsonValue | NoDefault = NO_DEFAULT
        self.order = "ascending"
        self.aliases: list[str] = []
        self.props: dict[str, JsonValue] = {}


class RecordType(NamedType):
    __slots__ = ("aliased", "by_name", "fields", "is_error")
    kind = "record"

    def __init__(self, name: Name, doc: str | None, is_error: bool) -> None:
        super().__init__(name, doc, {})
        self.is_error = is_error
        """`error` instead of `record`, which protocols of Avro use."""
        self.fields: list[Field] = []
        self.by_name: dict[str, Field] = {}
        self.aliased = False
        """One of its fields has aliases."""


class Forward(AvroType):
    """Stands for a name until all definitions are read; there is none in what the parser returns."""

    __slots__ = ("full",)
    kind = "forward"

    def __init__(self, full: str) -> None:
        super().__init__({})
        self.full = full


Types: TypeAlias = dict[str, NamedType]
"""Named types by their fullnames."""


def children(of: AvroType) -> list[AvroType]:
    """The types that a type names directly."""
    if isinstance(of, RecordType):
        return [field.type for field in of.fields]
    if isinstance(of, UnionType):
        return of.branches
    if isinstance(of, ArrayType):
        return [of.items]
    return [of.values] if isinstance(of, MapType) else []
