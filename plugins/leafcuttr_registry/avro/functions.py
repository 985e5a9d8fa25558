"""Functions for the types of a schema, made once: what they have in common that check data and those that read values.

A function takes the data and where a value begins. What it does with the value is its maker's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from leafcuttr_registry.avro.reading import Limits, Sizes
from leafcuttr_registry.avro.types import (
    AvroType,
    EnumType,
    FixedType,
    NamedType,
    RecordType,
    UnionType,
)

F = TypeVar("F", bound=Callable[[bytes, int], Any])


class Functions(ABC, Generic[F]):
    """Makes the functions for the types of one schema. A named type has one; a type within itself calls it later."""

    primitives: ClassVar[Mapping[str, Callable[[bytes, int], Any]]]

    def __init__(self, sizes: Sizes, limits: Limits) -> None:
        self._sizes = sizes
        self._limits = limits
        self._made: dict[int, F] = {}
        self._making: dict[int, tuple[list[F], int]] = {}
        self._level = 0

    def of(self, type: AvroType) -> F:
        """The function for a type."""
        if type.kind in self.primitives:
            return cast(F, self.primitives[type.kind])
        key = id(type)
        if key in self._made:
            return self._made[key]
        if key in self._making:
            later, level = self._making[key]
            return self._recursive(later, 1 + self._level - level)
        later = list[F]()
        self._making[key] = later, self._level
        self._level += 1
        if isinstance(type, RecordType):
            made = self._record(type)
        elif isinstance(type, UnionType):
            made = self._union(type)
        elif isinstance(type, EnumType):
            made = self._enum(type)
        elif isinstance(type, FixedType):
            made = self._fixed(type)
        else:
            made = self._blocks(type)
        self._level -= 1
        later.append(made)
        del self._making[key]
        if isinstance(type, NamedType):
            self._made[key] = made
        return made

    def _recursive(self, later: list[F], frames: int) -> F:
        limits: Final = self._limits

        def recursive(data: bytes, at: int) -> Any:
            limits.enter(frames)
            result = later[0](data, at)
            limits.depth -= frames
            return result

        return cast(F, recursive)

    @abstractmethod
    def _record(self, type: RecordType) -> F: ...

    @abstractmethod
    def _union(self, type: UnionType) -> F: ...

    @abstractmethod
    def _enum(self, type: EnumType) -> F: ...

    @abstractmethod
    def _fixed(self, type: FixedType) -> F: ...

    @abstractmethod
    def _blocks(self, type: AvroType) -> F:
        """Of an array or a map."""
