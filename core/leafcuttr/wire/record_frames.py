"""Readers of records, generated from the layout in `wire/record_layout.py`.

Each reader of records takes something else out of them, and a call for each number would double what a record costs.
So a reader is written as a frame: Python with one step for each field, which becomes the lines that read this field in
place. A step is a line of its own, `@verb field`; the frame's own lines see the position `at` and the bytes `data`.

    @end length limit:          where the record ends, in `end`; the lines below the step see a `length` below 0, or an
                                `end` beyond the limit
    @read field                 the field's value, in a variable of its name
    @read field unless far      the same; if `far` is true, adding the number to the base timestamp may wrap
    @expect field due:          a number that is nearly always `due`; the lines below the step see another one
    @skip field                 only step over it
    @skip field null: LINE      and run a statement if it is null
    @pass field                 the same for a number of any length, which is not checked
    @size field                 its length as it is encoded (zigzag), in `field_size`, and stop in front of its bytes
    @count field                how many elements it claims to have, in `field_count`, and stop in front of them
    @leave field                the frame goes on elsewhere; always the last steps

A frame has to name all fields in their order, so that none can be forgotten when the layout changes.

A frame is compiled at its first use. Numbers of one byte or two are read in place, longer ones by a call. Where the
data ends, indexing raises IndexError: frames say what that means.
"""

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any, Final, TypeVar, cast

from leafcuttr.wire.emit import Emitter
from leafcuttr.wire.errors import EndlessNumber, MalformedRecord
from leafcuttr.wire.primitives import (
    LONG_MAX,
    LONG_MIN,
    Buffer,
    as_long,
    more_of_unsigned_varint,
    read_varlong,
)
from leafcuttr.wire.record_layout import RECORD, Byte, Bytes, Field, Number, Repeated

_FAR: Final = 1 << 62
"""A base timestamp (ms) below it is not taken out of the range of a long by a delta of one byte or two."""
_ENCODING: Final = '"utf-8", "surrogateescape"'


F = TypeVar("F", bound=Callable[..., Any])


def compile_frame(
    like: F,
    frame: str,
    *,
    misfit: str,
    scope: Mapping[str, Any] | None = None,
    length: str = "unsigned(data, {at})",
) -> F:
    """The function `read` that the frame defines; it takes and returns what `like` does.

    `misfit` is what is said of a negative length other than that of null: an f-string about `index` and `size`, in
    which "{field}" stands for the field's name. `length` is how a record's length of three bytes or more is read, as it
    is encoded.
    """
    return cast(F, _Frame(frame, misfit, scope or {}, length).compile("read"))


def encoded_record_length(data: Buffer, at: int, index: int) -> tuple[int, int]:
    """The length of the record of this index without its zigzag, and the position behind it, as Kafka's
    `ByteUtils.readVarint` reads it: at most five bytes, of which the bits above 32 fall away. Raises EndlessNumber, and
    IndexError where the data ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, at
        shift += 7
        if shift > 28:
            raise EndlessNumber(f"the length of record {index} takes more than 5 bytes")


def _unsigned(data: Buffer, at: int) -> tuple[int, int]:
    """A varint of at most 32 bits without its zigzag. Raises IndexError where the data ends."""
    first = data[at]
    return (first, at + 1) if first < 0x80 else more_of_unsigned_varint(data, at + 1, first)


def _varint(data: Buffer, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


class _Frame(Emitter):
    def __init__(self, frame: str, misfit: str, scope: Mapping[str, Any], length: str) -> None:
        super().__init__("records")
        self.scope |= {
            "Bad": MalformedRecord,
            "FAR": _FAR,
            "encoded_record_length": encoded_record_length,
            "unsigned": _unsigned,
            "varint": _varint,
            "varlong": read_varlong,
            "as_long": as_long,
            "LONG_MAX": LONG_MAX,
            "LONG_MIN": LONG_MIN,
        }
        self.scope |= scope
        self._misfit, self._length = misfit, length
        self._behind = 0  # bytes that have been passed, but not added to `at` yet
        due = iter(RECORD)
        for line in dedent(frame).strip().splitlines():
            text = line.lstrip()
            self._depth = (len(line) - len(text)) // 4
            if text.startswith("@"):
                verb, name, *rest = text[1:].split(" ", 2)
                field = next(due)
                assert field.name == name.rstrip(":"), f"{text}: the next field is {field.name}"
                self._step(verb, field, rest[0] if rest else "")
            else:
                assert not self._behind, f"{text}: a byte is still to be passed"
                self.line(text)
        assert next(due, None) is None, "a frame has to name all fields"

    def _step(self, verb: str, field: Field, rest: str) -> None:
        if verb == "leave":
            return
        if isinstance(field, Byte):
            self._behind += 1
            return
        if isinstance(field, Number):
            self._number(verb, field, rest)
        elif isinstance(field, Bytes):
            self._bytes(verb, field, rest)
        else:
            self._repeated(verb, field)
        self._behind = 0

    def _at(self, more: int = 0) -> str:
        return f"at + {self._behind + more}" if self._behind + more else "at"

    def _number(self, verb: str, field: Number, rest: str) -> None:
        if verb == "end":
            self._end(rest.rstrip(":"))
        elif verb == "skip":
            self._skip_number(field)
        elif verb == "pass":
            self._pass_number()
        elif verb == "expect":
            self._expect(field, rest.rstrip(":"))
        else:
            self._read_number(field, rest.removeprefix("unless "))

    def _end(self, limit: str) -> None:
        self._size("n", self._length)
        self.line("end = at + (n >> 1)")
        with self.block(f"if n & 1 or end > {limit}:"):
            self.line(f"length = {_decoded('n')}")

    def _read_number(self, field: Number, far: str) -> None:
        name = field.name
        near = f"not {far} and " if far else ""
        self.line(f"{name} = data[{self._at()}]")
        with self.block(f"if {near}{name} < 128:"):
            self.line(f"{name} = {_decoded(name)}; at += {self._behind + 1}")
        with self.block(f"elif {near}(more := data[{self._at(1)}]) < 128:"):
            self.line(f"{name} = {name} & 127 | more << 7")
            self.line(f"{name} = {_decoded(name)}; at += {self._behind + 2}")
        with self.block("else:"):
            self.line(f"{name}, at = {self._slow(field)}")
            if far:
                self.line(f"{name} = as_long(base_timestamp + {name}) - base_timestamp")

    def _slow(self, field: Number) -> str:
        return f"{'varlong' if field.is_long else 'varint'}(data, {self._at()})"

    def _skip_number(self, field: Number) -> None:
        """Up to nine bytes any number fits into 64 bits, up to four into 32."""
        sure = 9 if field.is_long else 4
        with self.block(f"if data[{self._at()}] < 128:"):
            self.line(f"at += {self._behind + 1}")
        with self.block("else:"):
            self.line(f"stop = {self._at(1)}")
            with self.block("while data[stop] > 127:"):
                self.line("stop += 1")
            with self.block(f"if stop - at < {sure + self._behind}:"):
                self.line("at = stop + 1")
            with self.block("else:"):
                self.line(f"_, at = {self._slow(field)}")

    def _pass_number(self) -> None:
        if self._behind:
            self.line(f"at += {self._behind}")
        with self.block("while data[at] > 127:"):
            self.line("at += 1")
        self.line("at += 1")

    def _expect(self, field: Number, due: str) -> None:
        low, high = f"{due} << 1", f"{due} << 1 & 127 | 128"
        with self.block(f"if {due} < 64 and data[{self._at()}] == {low}:"):
            self.line(f"at += {self._behind + 1}")
        with self.block(
            f"elif 64 <= {due} < 8192 and data[{self._at()}] == {high} and data[{self._at(1)}] == {due} >> 6:"
        ):
            self.line(f"at += {self._behind + 2}")
        with self.block("else:"):
            self.line(f"{field.name}, at = {self._slow(field)}")

    def _bytes(self, verb: str, field: Bytes, rest: str) -> None:
        name = field.name
        if verb == "size":
            self._size(f"{name}_size")
            return
        self._size("n", passing=verb == "skip")
        with self.block("if n & 1:"):
            with self.block("if n > 1:"):
                self.line(f"size = {_decoded('n')}")
                self.line(f'raise Bad(f"{self._misfit.replace("{field}", name)}")')
            self.line(f"{name} = None" if verb == "read" else rest.removeprefix("null: ") or "pass")
        if verb == "read":
            with self.block("else:"):
                self.line(f"stop = at + (n >> 1); {name} = data[at:stop]; at = stop")

    def _size(self, name: str, slow: str = "unsigned(data, {at})", *, passing: bool = False) -> None:
        """Read a length as it is encoded; `passing` goes on behind so many bytes (none, if it is that of null)."""
        bytes_ = f" + ({name} >> 1)" if passing else ""
        self.line(f"{name} = data[{self._at()}]")
        with self.block(f"if {name} < 128:"):
            self.line(f"at += {self._behind + 1}{bytes_}")
        with self.block(f"elif (more := data[{self._at(1)}]) < 128:"):
            self.line(f"{name} = {name} & 127 | more << 7; at += {self._behind + 2}{bytes_}")
        with self.block("else:"):
            self.line(f"{name}, at = {slow.format(at=self._at())}")
            if passing:
                self.line(f"at += {name} >> 1")

    def _repeated(self, verb: str, field: Repeated) -> None:
        name = field.name
        least = len(field.fields)  # each takes a byte at least, which refuses a count that is only claimed
        if verb == "count":
            self._size(f"{name}_count")
            self.line(f"{name}_count = {_decoded(f'{name}_count')}")
            return
        with self.block("if data[at]:"):
            self._size("n")
            self.line(f"count_ = {_decoded('n')}")
            with self.block(f"if not 0 <= {least} * count_ <= end - at:"):
                self.line(f'raise Bad(f"{{count_}} {name} do not fit into {{end - at}} bytes")')
            self._elements(verb == "read", field)
        with self.block("else:"):
            self.line("at += 1" + (f"; {name} = ()" if verb == "read" else ""))

    def _elements(self, keep: bool, field: Repeated) -> None:
        if keep:
            self.line(f"{field.name} = []")
        with self.block("for _ in range(count_):"):
            for part in field.fields:
                self._element_bytes(keep, field, part)
            if keep:
                parts = ", ".join(f"{field.singular}_{part.name}" for part in field.fields)
                self.line(f"{field.name}.append(({parts}))")
        if keep:
            self.line(f"{field.name} = tuple({field.name})")

    def _element_bytes(self, keep: bool, field: Repeated, part: Bytes) -> None:
        self._size("n")
        self.line("stop = at + (n >> 1)")
        with self.block(f"if stop > end or n & 1{' and n > 1' if part.nullable else ''}:"):
            said = f"a {field.singular} {part.name} of {{size}} bytes does not fit into its record"
            self.line(f'size = {_decoded("n")}; raise Bad(f"{said}")')
        if keep:
            found = "data[at:stop]" + (f".decode({_ENCODING})" if part.is_text else "")
            null = "None if n & 1 else " if part.nullable else ""
            self.line(f"{field.singular}_{part.name} = {null}{found}")
        self.line("at = stop")


def _decoded(name: str) -> str:
    """What a number says whose encoding is in the variable."""
    return f"~({name} >> 1) if {name} & 1 else {name} >> 1"
