"""Which error codes an answer carries, at whatever depth: compiled from the declaration of its class, as its writer is.

The codes are found in fields named `error_code` (one API says `partition_error_code`). Null arrays and structs have
none. As in `codec` there is a second form for answers of very many elements, a generator.
"""

from collections.abc import Callable, Generator
from typing import Any, Final

from leafcuttr.wire.emit import PER_STEP, Emitter
from leafcuttr.wire.schema import INT16, Array, PrimitiveType, declaration

_NAMES: Final = frozenset({"error_code", "partition_error_code"})

ErrorCodes = Callable[[Any], list[int]]
ErrorCodesInSteps = Callable[[Any], Generator[None, None, list[int]]]

_compiled: dict[tuple[type[Any], bool], Any] = {}


def error_codes(cls: type[Any]) -> ErrorCodes:
    """The function that lists the codes, other than 0, of a message of this class."""
    found: ErrorCodes = _compile(cls, in_steps=False)
    return found


def error_codes_in_steps(cls: type[Any]) -> ErrorCodesInSteps:
    """`error_codes` for messages of very many elements."""
    found: ErrorCodesInSteps = _compile(cls, in_steps=True)
    return found


def _compile(cls: type[Any], *, in_steps: bool) -> Any:
    key = cls, in_steps
    if key not in _compiled:
        _compiled[key] = _Walk(cls, in_steps).build()
    return _compiled[key]


class _Walk(Emitter):
    def __init__(self, cls: type[Any], in_steps: bool) -> None:
        super().__init__(declaration(cls).name)
        self._cls = cls
        self._in_steps = in_steps
        self._depth_of_loops = 0

    def build(self) -> Callable[..., Any]:
        with self.block("def walk(message):"):
            self.line("found = []")
            if self._in_steps:
                self.line("step = 0")
            self._struct(self._cls, "message")
            if self._in_steps:
                self.line("yield")
            self.line("return found")
        return self.compile("walk")

    def _struct(self, cls: type[Any], source: str) -> None:
        for spec in declaration(cls).fields:
            value = f"{source}.{spec.name}"
            if spec.name in _NAMES and spec.type == INT16:
                with self.block(f"if {value}:"):
                    self.line(f"found.append({value})")
            elif isinstance(spec.type, Array):
                element = spec.type.element
                if not isinstance(element, PrimitiveType) and _has_codes(element):
                    self._loop(element, value)
            elif not isinstance(spec.type, PrimitiveType) and _has_codes(spec.type):
                with self.block(f"if {value} is not None:"):
                    self._struct(spec.type, value)

    def _loop(self, element: type[Any], source: str) -> None:
        self._depth_of_loops += 1
        each = f"each{self._depth_of_loops}"
        with self.block(f"for {each} in {source} or ():"):
            if self._in_steps:
                self.line("step += 1")
                with self.block(f"if step % {PER_STEP} == 0:"):
                    self.line("yield")
            self._struct(element, each)
        self._depth_of_loops -= 1


def _has_codes(cls: type[Any]) -> bool:
    for spec in declaration(cls).fields:
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if isinstance(inner, PrimitiveType):
            if spec.name in _NAMES and inner == INT16:
                return True
        elif _has_codes(inner):
            return True
    return False
