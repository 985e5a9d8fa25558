"""What the generators of reader and writer source share: lines with labels, constants bound as globals,
errors.

Each generated line carries the label "Class.field"; when one raises, its line number says which field it was,
so the good path pays nothing for good messages. The wire format is in `reading` and `writing`.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from leafcuttr.wire.errors import EncodeError, MalformedMessage, WireError
from leafcuttr.wire.schema import Array, FieldSpec, FieldType, PrimitiveType, declaration

PER_STEP: Final = 100
"""Array elements that are read or written between two stops of a reader or writer in steps: about 0.1 ms."""


class Emitter:
    """Source under construction: its lines, the globals they refer to, and the label of each line."""

    def __init__(self, name: str) -> None:
        self.scope: dict[str, Any] = {}
        self.label = name
        self._lines: list[str] = []
        self._labels: list[str] = [""]  # line numbers start at 1
        self._depth = 0

    def line(self, text: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{text}")
        self._labels.append(self.label)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    @contextmanager
    def labelled(self, label: str) -> Iterator[None]:
        before, self.label = self.label, label
        yield
        self.label = before

    def constant(self, name: str, value: Any) -> str:
        """Bind a global of the generated function; the same name always stands for the same value."""
        assert self.scope.setdefault(name, value) is value or self.scope[name] == value, name
        return name

    def unique(self, stem: str, value: Any) -> str:
        """Bind a global under a name of its own."""
        name = f"{stem}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def packer(self, verb: str, codes: str) -> str:
        """Bind `verb` ("unpack_from", "pack") of the precompiled big-endian Struct of `codes`."""
        name = f"{verb}_{codes}".replace("?", "o")
        if name not in self.scope:
            self.scope[name] = getattr(struct.Struct(f">{codes}"), verb)
        return name

    def compile(self, function: str) -> Callable[..., Any]:
        self.scope["LABELS"] = tuple(self._labels)
        source = "\n".join(self._lines)
        exec(compile(source, f"<leafcuttr codec {function} {self.label}>", "exec"), self.scope)
        made: Callable[..., Any] = self.scope[function]
        return made


def locate_reading(error: BaseException, at: int, labels: Sequence[str]) -> WireError:
    """The MalformedMessage for what a compiled reader ran into; `at` is where the field, or its run,
    starts."""
    reason = (
        str(error) if isinstance(error, WireError) else _READING.get(type(error), "the bytes end too early")
    )
    return MalformedMessage(f"{_label_of(error, labels)} at byte {at}: {reason}")


def locate_writing(error: BaseException, labels: Sequence[str]) -> WireError:
    """The EncodeError for what a compiled writer ran into."""
    return EncodeError(f"{_label_of(error, labels)} cannot be written: {error}")


_READING: dict[type[BaseException], str] = {UnicodeDecodeError: "the string is not UTF-8"}


def _label_of(error: BaseException, labels: Sequence[str]) -> str:
    trace = error.__traceback__
    return labels[trace.tb_lineno] if trace is not None and trace.tb_lineno < len(labels) else "message"


def literal(emitter: Emitter, value: Any) -> str:
    """Source for a default value: written out where Python folds it, else bound as a global."""
    if value is None or isinstance(value, bool | int | str) or value == ():
        return repr(value)
    return emitter.unique("default", value)


def present_fields(cls: type[Any], version: int) -> tuple[list[FieldSpec], list[FieldSpec]]:
    """The fields of a struct that a version has: (in order of declaration, tagged ones in order of their
    tags)."""
    fields = [spec for spec in declaration(cls).fields if version in spec.versions]
    plain = [spec for spec in fields if version not in spec.tagged]
    return plain, sorted((spec for spec in fields if version in spec.tagged), key=lambda spec: spec.tag)


def least_size(type_: FieldType, version: int, flexible: bool, *, nullable: bool = False) -> int:
    """The fewest bytes that a value of the type can take: what a claimed array length is checked against."""
    if isinstance(type_, Array):
        return 1 if flexible else 4
    if isinstance(type_, PrimitiveType):
        return type_.size or (1 if flexible else 2 if type_.name == "string" else 4)
    if nullable:
        return 1
    plain, _ = present_fields(type_, version)
    fields = sum(least_size(s.type, version, flexible, nullable=version in s.nullable) for s in plain)
    return max(1, fields + flexible)
