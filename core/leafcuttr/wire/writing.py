"""Generates the source of a writer: from an object to the bytes of one version.

The mirror of `reading`: one function for the whole tree, fixed-size neighbours in one `pack`. Records that
are not bytes but a file region (anything with a `length`) get their length prefix only; where their bytes
belong is noted in `regions`, and the transport sends them from the file.

As in `reading` there is a second function for messages of very many elements, a generator.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from leafcuttr.wire.emit import PER_STEP, Emitter, literal, locate_writing, present_fields
from leafcuttr.wire.errors import EncodeError, ManyElements
from leafcuttr.wire.primitives import write_unsigned_varint
from leafcuttr.wire.schema import UUID, Array, FieldSpec, FieldType, PrimitiveType, declaration

_ANY: Final = 1 << 62  # elements: no limit


def compile_writer(cls: type[Any], version: int, *, in_steps: bool = False) -> Callable[..., Any]:
    """Compile `write(message, out, regions, allowed=...)` for one version of a message.

    In steps it is a generator `write(message, out, regions)`.
    """
    return _Writer(cls, version, in_steps).build()


def undo(out: bytearray, regions: list[Any], start: int) -> None:
    """Take back what a writer that failed has left behind.

    A region at `start` itself is an earlier message's: a length precedes every region.
    """
    del out[start:]
    while regions and regions[-1][0] > start:
        regions.pop()


class _Writer(Emitter):
    def __init__(self, cls: type[Any], version: int, in_steps: bool) -> None:
        super().__init__(declaration(cls).name)
        self._in_steps = in_steps
        self._cls = cls
        self._version = version
        self._flexible = version in declaration(cls).flexible
        self._pending: list[tuple[str, str]] = []
        self._names = 0
        self._out = "out"
        self.scope |= {
            "varint": write_unsigned_varint,
            "pack_array": struct.pack,
            "BYTES": frozenset((bytes, bytearray, memoryview)),
            "Unencodable": EncodeError,
            "Many": ManyElements,
            "CAUGHT": (EncodeError, struct.error, AttributeError, TypeError, ValueError, OverflowError),
            "locate": locate_writing,
            "undo": undo,
        }

    def build(self) -> Callable[..., Any]:
        head = "" if self._in_steps else f", allowed={_ANY}"
        with self.block(f"def write(message, out, regions{head}):"):
            self.line("start = len(out)")
            if self._in_steps:
                self.line("step = 0")
            with self.block("try:"):
                self._struct(self._cls, "message")
                self._flush()
                if self._in_steps:
                    self.line("yield")  # a generator, even if there is no array to stop in
            with self.block("except Many:"):
                self.line("undo(out, regions, start)")
                self.line("raise")
            with self.block("except CAUGHT as error:"):
                self.line("undo(out, regions, start)")
                self.line("raise locate(error, LABELS) from error")
        return self.compile("write")

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _fixed(self, code: str, expression: str) -> None:
        self._pending.append((code, expression))

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        self._pack(pending)

    def _pack(self, pending: list[tuple[str, str]]) -> None:
        codes = "".join(code for code, _ in pending)
        values = ", ".join(value for _, value in pending if value)
        if codes in ("x", "B"):
            self.line(f"{self._out}.append({values or 0})")
        elif values:
            self.line(f"{self._out} += {self.packer('pack', codes)}({values})")
        elif codes:
            self.line(f"{self._out} += {bytes(len(codes))!r}")

    def _struct(self, cls: type[Any], source: str) -> None:
        name = declaration(cls).name
        plain, tagged = present_fields(cls, self._version)
        for spec in plain:
            with self.labelled(f"{name}.{spec.name}"):
                self._value(spec.type, f"{source}.{spec.name}", nullable=self._version in spec.nullable)
        with self.labelled(name):
            if self._flexible:
                self._tags(name, source, tagged)

    def _value(self, type_: FieldType, source: str, *, nullable: bool) -> None:
        if isinstance(type_, Array):
            self._array(type_.element, source, nullable)
        elif not isinstance(type_, PrimitiveType):
            self._nested(type_, source, nullable)
        elif type_.code:
            self._fixed(type_.code, source)
        else:
            self._bytes(type_, source, nullable)

    def _nested(self, cls: type[Any], source: str, nullable: bool) -> None:
        name = self._fresh("m")
        self._flush()
        self.line(f"{name} = {source}")
        if not nullable:
            self._struct(cls, name)
            return
        with self.block(f"if {name} is None:"):
            self.line(f"{self._out}.append(255)")
        with self.block("else:"):
            self._fixed("b", "1")
            self._struct(cls, name)
            self._flush()

    def _prefix(self, code: str) -> None:
        """Write the pending run and the length `n` (of compact types: the length plus 1, 0 for null)."""
        pending, self._pending = self._pending, []
        if not self._flexible:
            self._pack([*pending, (code, "n")])
            return
        with self.block("if n < 128:"):
            self._pack([*pending, ("B", "n")])
        with self.block("else:"):
            self._pack(pending)
            self.line(f"varint({self._out}, n)")

    def _measured(self, source: str, nullable: bool, convert: str, length: str, empty: str) -> None:
        """Put a value into `v` and its length prefix into `n`."""
        plus = " + 1" if self._flexible else ""
        self.line(f"v = {source}")
        if nullable:
            with self.block("if v is None:"):
                self.line(f"v = {empty}; n = {0 if self._flexible else -1}")
            with self.block("else:"):
                self.line(f"{convert}n = {length}{plus}")
        else:
            self.line(f"{convert}n = {length}{plus}")

    def _bytes(self, kind: PrimitiveType, source: str, nullable: bool) -> None:
        if kind.name == "records":
            self._records(source, nullable)
            return
        is_string = kind.name == "string"
        self._measured(source, nullable, "v = v.encode(); " if is_string else "", "len(v)", 'b""')
        if is_string and self._flexible:
            with self.block("if n > 32768:"):
                self.line('raise Unencodable("a string of more than 32767 bytes")')
        self._prefix("h" if is_string else "i")
        self.line(f"{self._out} += v")

    def _records(self, source: str, nullable: bool) -> None:
        self._measured(source, nullable, "", "(len(v) if v.__class__ in BYTES else v.length)", 'b""')
        self._prefix("i")
        with self.block("if v.__class__ in BYTES:"):
            self.line(f"{self._out} += v")
        with self.block("else:"):
            self.line(f"regions.append((len({self._out}), v))")

    def _array(self, element: PrimitiveType | type[Any], source: str, nullable: bool) -> None:
        self._measured(source, nullable, "", "len(v)", "()")
        self._prefix("i")
        if isinstance(element, PrimitiveType) and element.code and element is not UUID:
            self.line(f'{self._out} += pack_array(f">{{len(v)}}{element.code}", *v)')
            return
        if not self._in_steps:
            self.line("allowed -= len(v)")
            with self.block("if allowed < 0:"):
                self.line("raise Many")
        item = self._fresh("m")
        with self.block(f"for {item} in v:"):
            if self._in_steps:
                self.line("step += 1")
                with self.block(f"if step == {PER_STEP}:"):
                    self.line("step = 0; yield")
            if isinstance(element, PrimitiveType):
                self._value(element, item, nullable=False)
            else:
                self._struct(element, item)
            self._flush()

    def _tags(self, name: str, source: str, tagged: list[FieldSpec]) -> None:
        if not tagged:
            self._fixed("x", "")
            return
        at_default = [self._is_default(spec, f"{source}.{spec.name}") for spec in tagged]
        pending, self._pending = self._pending, []
        with self.block(f"if {' and '.join(at_default)}:"):
            self._pack([*pending, ("x", "")])
        with self.block("else:"):
            self._pack(pending)
            self.line(f"{self._out}.append({' + '.join(f'(not {test})' for test in at_default)})")
            for spec, test in zip(tagged, at_default, strict=True):
                with self.labelled(f"{name}.{spec.name}"), self.block(f"if not {test}:"):
                    self._tag(spec, f"{source}.{spec.name}")

    def _tag(self, spec: FieldSpec, source: str) -> None:
        outer, self._out = self._out, self._fresh("out")
        self.line(f"{self._out} = bytearray()")
        self._value(spec.type, source, nullable=self._version in spec.nullable)
        self._flush()
        inner, self._out = self._out, outer
        self.line(f"varint({outer}, {spec.tag}); varint({outer}, len({inner})); {outer} += {inner}")

    def _is_default(self, spec: FieldSpec, source: str) -> str:
        if spec.default is None:
            return f"({source} is None)"
        if isinstance(spec.type, Array):
            return f"({source} is not None and not {source})"
        default = literal(self, spec.default)
        if isinstance(spec.type, PrimitiveType):
            return f"({source} == {default})"
        return f"({source} is {default} or {source} == {default})"
