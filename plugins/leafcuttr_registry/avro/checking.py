"""Whether bytes are data of a schema, without making values of them: a function for each type, made once, that takes
where a value begins and gives where it ends.

It is what each record of a topic goes through, so the common forms are read in place: numbers of one byte, short
strings, a union with null. A position beyond the end is not noticed at once: it is compared at the end.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from leafcuttr_registry.avro.functions import Functions
from leafcuttr_registry.avro.reading import Fault, block, length, value_of, varint
from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)

Check: TypeAlias = Callable[[bytes, int], int]

_INT: Final = 1 << 31


def _null(data: bytes, at: int) -> int:
    return at


def _boolean(data: bytes, at: int) -> int:
    if data[at] > 1:
        raise Fault("neither true nor false")
    return at + 1


def _int(data: bytes, at: int) -> int:
    if data[at] < 128:
        return at + 1
    value, at = varint(data, at)
    if not -_INT <= value < _INT:
        raise Fault("out of the range of an int")
    return at


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 128 else varint(data, at)[1]


def _float(data: bytes, at: int) -> int:
    return at + 4


def _double(data: bytes, at: int) -> int:
    return at + 8


def _bytes(data: bytes, at: int) -> int:
    size = data[at]
    return length(data, at)[1] if size & 129 else at + 1 + (size >> 1)


def _string(data: bytes, at: int) -> int:
    size = data[at]
    if size & 129:
        at, end = length(data, at)
    else:
        at += 1
        end = at + (size >> 1)
    data[at:end].decode()
    return end


_PRIMITIVES: Final[dict[str, Check]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


class Checks(Functions[Check]):
    """Makes the functions for the types of one schema."""

    primitives = _PRIMITIVES

    def _record(self, type: RecordType) -> Check:
        made: list[Check] = []
        for field in type.fields:
            # What takes no bytes is nothing to check, and there may be very much of it.
            if self._sizes.least(field.type):
                made.append(self.of(field.type))
        fields = tuple(made)
        empty, limits = self._sizes.empty_fields(type), self._limits

        def record(data: bytes, at: int) -> int:
            for field in fields:
                at = field(data, at)
            return at

        def with_empty(data: bytes, at: int) -> int:
            limits.spend(empty)
            for field in fields:
                at = field(data, at)
            return at

        return with_empty if empty else record

    def _union(self, type: UnionType) -> Check:
        branches: list[Check] = []
        for branch in type.branches:
            branches.append(self.of(branch))
        count = len(branches)

        def union(data: bytes, at: int) -> int:
            branch = data[at]
            if branch & 129:
                branch, at = varint(data, at)
                if branch < 0:
                    raise Fault("no such branch")
            else:
                branch >>= 1
                at += 1
            if branch >= count:
                raise Fault("no such branch")
            return branches[branch](data, at)

        return union

    def _blocks(self, type: AvroType) -> Check:
        value = value_of(type)
        check, key = self.of(value), isinstance(type, MapType)
        assert key or isinstance(type, ArrayType)
        least, empty, limits = self._sizes.least(value) + key, self._sizes.empty(value), self._limits

        def blocks(data: bytes, at: int) -> int:
            while data[at]:
                count, at, end = block(data, at, least, empty, limits)
                if key and empty:
                    limits.spend(count * empty)
                if least:
                    for _ in range(count):
                        if key:
                            at = _string(data, at)
                        at = check(data, at)
                if end and at != end:
                    raise Fault("a block ends elsewhere than it says")
                if not count:
                    return at
            return at + 1

        return blocks

    def _enum(self, type: EnumType) -> Check:
        return _enum(len(type.symbols))

    def _fixed(self, type: FixedType) -> Check:
        return _fixed(type.size)


def _enum(count: int) -> Check:
    def enum(data: bytes, at: int) -> int:
        symbol, at = varint(data, at)
        if not 0 <= symbol < count:
            raise Fault("no such symbol")
        return at

    return enum


def _fixed(size: int) -> Check:
    return lambda data, at: at + size
