"""Generates the source of a reader: from the bytes of one version to an object.

The whole tree of structs becomes one function. Fixed-size neighbours, together with the length prefix or
first varint byte that follows them, are one `unpack_from` straight into the slots of the objects. The buffer
is cut at the end of the frame first, so that fixed-size reads and indexing fail by themselves; every other
length is compared with `end`.

A message of very many elements is read by a second function, a generator that stops every so often: the plain one
raises ManyElements as soon as it meets an array that exceeds what the caller allows. So the plain one pays nothing.

Where a length is short of what the type allows, Kafka's own rules hold: any negative length is null, strings
have at most 32767 bytes. A tagged field that is declared must have exactly the size it claims.
"""

import struct
from collections.abc import Callable
from typing import Any

from leafcuttr.wire.emit import (
    PER_STEP,
    Emitter,
    least_size,
    literal,
    locate_reading,
    present_fields,
)
from leafcuttr.wire.errors import MalformedMessage, ManyElements
from leafcuttr.wire.primitives import more_of_unsigned_varint
from leafcuttr.wire.schema import UUID, Array, FieldSpec, FieldType, PrimitiveType, declaration

MAX_ELEMENTS = 25_000
"""The most array elements and tagged fields that one message may have, all levels together.

An element can take a single byte of the frame, but a microsecond and a hundred bytes of memory to make: without this
limit a frame of 100 MB could hold the loop for a minute. A request about all of 10,000 partitions has 20,000.
"""

_NULL = 'Malformed("is null, which this version does not allow")'
_SHORT = 'Malformed("the length exceeds what is left of the frame")'
_MANY = f'Malformed("more than {MAX_ELEMENTS} array elements and tagged fields")'


def compile_reader(cls: type[Any], version: int, *, in_steps: bool = False) -> Callable[..., Any]:
    """Compile `read(buffer, at, end, allowed=...) -> (object, position after it)` for one version of a message.

    In steps it is a generator `read(buffer, at, end)` that returns the same.
    """
    return _Reader(cls, version, in_steps).build()


class _Reader(Emitter):
    def __init__(self, cls: type[Any], version: int, in_steps: bool) -> None:
        super().__init__(declaration(cls).name)
        self._in_steps = in_steps
        self._cls = cls
        self._version = version
        self._flexible = version in declaration(cls).flexible
        self._pending: list[tuple[str, str]] = []
        self._names = 0
        self.scope |= {
            "new": object.__new__,
            "more": more_of_unsigned_varint,
            "unpack_array": struct.unpack_from,
            "Malformed": MalformedMessage,
            "Many": ManyElements,
            "CAUGHT": (MalformedMessage, struct.error, IndexError, UnicodeDecodeError),
            "locate": locate_reading,
        }

    def build(self) -> Callable[..., Any]:
        head = "" if self._in_steps else f", allowed={MAX_ELEMENTS}"
        with self.block(f"def read(buffer, at, end{head}):"):
            left = f"left = {MAX_ELEMENTS}; step = 0" if self._in_steps else "left = allowed"
            self.line(f"buffer = memoryview(buffer)[:end]; {left}")
            with self.block("try:"):
                made = self._struct(self._cls)
                self.line(f"return {made}, at")
                if self._in_steps:
                    self.line("yield")  # a generator, even if there is no array to stop in
            with self.block("except CAUGHT as error:"):
                self.line("raise locate(error, at, LABELS) from None")
        return self.compile("read")

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _fixed(self, code: str, target: str) -> None:
        self._pending.append((code, target))

    def _flush(self) -> None:
        if not self._pending:
            return
        codes = "".join(code for code, _ in self._pending)
        targets = ", ".join(target for _, target in self._pending)
        self._pending.clear()
        size = struct.calcsize(f">{codes}")
        if codes == "B":
            self.line(f"{targets} = buffer[at]; at += 1")
        else:
            comma = "" if ", " in targets else ","
            self.line(f"{targets}{comma} = {self.packer('unpack_from', codes)}(buffer, at); at += {size}")

    def _struct(self, cls: type[Any]) -> str:
        found = declaration(cls)
        made = self._fresh("m")
        plain, tagged = present_fields(cls, self._version)
        with self.labelled(found.name):
            self.line(f"{made} = new({self.constant(f'open_{found.name}', found.open_class)})")
            absent = [spec for spec in found.fields if spec not in plain]
            for spec in absent:
                self.line(f"{made}.{spec.name} = {literal(self, spec.default)}")
        for spec in plain:
            with self.labelled(f"{found.name}.{spec.name}"):
                self._value(spec.type, f"{made}.{spec.name}", nullable=self._version in spec.nullable)
        with self.labelled(found.name):
            if self._flexible:
                self._tags(found.name, made, tagged)
            self._flush()
            self.line(f"{made}.__class__ = {self.constant(f'frozen_{found.name}', cls)}")
        return made

    def _value(self, type_: FieldType, target: str, *, nullable: bool) -> None:
        if isinstance(type_, Array):
            self._array(type_.element, target, nullable)
        elif not isinstance(type_, PrimitiveType):
            self._nested(type_, target, nullable)
        elif type_.code:
            self._fixed(type_.code, target)
        else:
            self._bytes(type_, target, nullable)

    def _nested(self, cls: type[Any], target: str, nullable: bool) -> None:
        if not nullable:
            self._flush()
            self.line(f"{target} = {self._struct(cls)}")
            return
        self._fixed("b", "n")
        self._flush()
        with self.block("if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.line(f"{target} = {self._struct(cls)}")

    def _length(self, code: str, target: str, nullable: bool) -> None:
        """Read a length into `n` (a compact one counts from 1) and settle null; an `else` block must
        follow."""
        self._fixed("B" if self._flexible else code, "n")
        self._flush()
        if self._flexible:
            with self.block("if n > 127:"):
                self.line("n, at = more(buffer, at, n)")
        with self.block("if n == 0:" if self._flexible else "if n < 0:"):
            self.line(f"{target} = None" if nullable else f"raise {_NULL}")

    def _bytes(self, kind: PrimitiveType, target: str, nullable: bool) -> None:
        is_string = kind.name == "string"
        self._length("h" if is_string else "i", target, nullable)
        with self.block("else:"):
            self.line(f"stop = at + n{' - 1' if self._flexible else ''}")
            with self.block("if stop > end:"):
                self.line(f"raise {_SHORT}")
            if is_string and self._flexible:
                with self.block("if n > 32768:"):
                    self.line('raise Malformed("a string of more than 32767 bytes")')
            take = {"string": 'str(buffer[at:stop], "utf-8")', "bytes": "bytes(buffer[at:stop])"}
            self.line(f"{target} = {take.get(kind.name, 'buffer[at:stop]')}; at = stop")

    def _array(self, element: PrimitiveType | type[Any], target: str, nullable: bool) -> None:
        self._length("i", target, nullable)
        least = least_size(element, self._version, self._flexible)
        with self.block("else:"):
            if self._flexible:
                self.line("n -= 1")
            with self.block(f"if n{f' * {least}' if least > 1 else ''} > end - at:"):
                self.line(f"raise {_SHORT}")
            self._spend("n")
            if isinstance(element, PrimitiveType) and element is UUID:
                self.line(f"{target} = tuple([bytes(buffer[i:i + 16]) for i in range(at, at + n * 16, 16)])")
                self.line("at += n * 16")
            elif isinstance(element, PrimitiveType) and element.code:
                self.line(
                    f'{target} = unpack_array(f">{{n}}{element.code}", buffer, at); at += n * {element.size}'
                )
            else:
                self._loop(element, target)

    def _loop(self, element: PrimitiveType | type[Any], target: str) -> None:
        items = self._fresh("items")
        self.line(f"{items} = []")
        with self.block("for _ in range(n):"):
            self._pause()
            if isinstance(element, PrimitiveType):
                self._value(element, "item", nullable=False)
                self.line(f"{items}.append(item)")
            else:
                self.line(f"{items}.append({self._struct(element)})")
        self.line(f"{target} = tuple({items})")

    def _tags(self, name: str, made: str, tagged: list[FieldSpec]) -> None:
        count, stop = self._fresh("tags"), self._fresh("stop")
        self._fixed("B", count)
        self._flush()
        with self.block(f"if {count}:"):
            self._rest(count)
            self._spend(count)
            with self.block(f"for _ in range({count}):"):
                self._pause()
                self.line("tag = buffer[at]; at += 1")
                self._rest("tag")
                self.line("n = buffer[at]; at += 1")
                self._rest("n")
                with self.block("if n > end - at:"):
                    self.line(f"raise {_SHORT}")
                self.line(f"{stop} = at + n")
                verb = "if"
                for spec in tagged:
                    with self.labelled(f"{name}.{spec.name}"), self.block(f"{verb} tag == {spec.tag}:"):
                        self._value(spec.type, f"{made}.{spec.name}", nullable=self._version in spec.nullable)
                        self._flush()
                        with self.block(f"if at != {stop}:"):
                            self.line('raise Malformed("a tagged field does not have the size it claims")')
                    verb = "elif"
                if tagged:
                    with self.block("else:"):
                        self.line(f"at = {stop}")
                else:
                    self.line(f"at = {stop}")

    def _spend(self, count: str) -> None:
        self.line(f"left -= {count}")
        with self.block("if left < 0:"):
            if not self._in_steps:
                with self.block(f"if allowed < {MAX_ELEMENTS}:"):
                    self.line("raise Many")
            self.line(f"raise {_MANY}")

    def _pause(self) -> None:
        if self._in_steps:
            self.line("step += 1")
            with self.block(f"if step == {PER_STEP}:"):
                self.line("step = 0; yield")

    def _rest(self, name: str) -> None:
        with self.block(f"if {name} > 127:"):
            self.line(f"{name}, at = more(buffer, at, {name})")
