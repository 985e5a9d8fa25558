"""Which logical types are valid (specification, "Logical Types"). One that is not is ignored, and kept in the text."""

import math
from collections.abc import Callable
from typing import Final

from leafcuttr_registry.avro.types import AvroType, FixedType

_UUID_BYTES: Final = 16
_DURATION_BYTES: Final = 12
_MOST_PRECISION: Final = (1 << 31) - 1
# Java's library ignores a logical type beside these, which say how the value is held in Java.
_EXCLUDING: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")


def _decimal(of: AvroType) -> bool:
    precision, scale = of.props.get("precision"), of.props.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return False
    if isinstance(of, FixedType):
        # "For `fixed(n)`: floor(log10(2^(8n-1) - 1))", for which Java takes the logarithm apart.
        most = math.floor(math.log10(2) * (8 * of.size - 1) + 0.0)
    else:
        most = _MOST_PRECISION
    return of.kind in ("bytes", "fixed") and 0 < precision <= most and 0 <= scale <= precision


def _of(*kinds: str) -> Callable[[AvroType], bool]:
    return lambda of: of.kind in kinds


def _sized(size: int, *kinds: str) -> Callable[[AvroType], bool]:
    return lambda of: of.size == size if isinstance(of, FixedType) else of.kind in kinds


_VALID: Final[dict[str, Callable[[AvroType], bool]]] = {
    "decimal": _decimal,
    "big-decimal": _of("bytes"),
    "uuid": _sized(_UUID_BYTES, "string"),
    "duration": _sized(_DURATION_BYTES),
    "date": _of("int"),
    "time-millis": _of("int"),
    **{
        name: _of("long")
        for name in (
            "time-micros",
            *(
                f"{local}timestamp-{unit}"
                for local in ("", "local-")
                for unit in ("millis", "micros", "nanos")
            ),
        )
    },
}
NAMES: Final = frozenset(_VALID)


def logical_type(of: AvroType) -> str | None:
    """The logical type that a type names, where it is valid."""
    name = of.props.get("logicalType")
    if not isinstance(name, str) or name not in _VALID or not _VALID[name](of):
        return None
    return None if any(isinstance(of.props.get(one), str) for one in _EXCLUDING) else name
