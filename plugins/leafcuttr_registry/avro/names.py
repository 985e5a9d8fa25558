"""Names of Avro (specification, "Names"): simple names, namespaces and fullnames."""

import re
from typing import Final, NamedTuple

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
COMPLEX: Final = ("record", "enum", "array", "map", "union", "fixed")
_STRICT: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset((*PRIMITIVES, *COMPLEX))


class Name(NamedTuple):
    """The name of a record, enum or fixed."""

    simple: str
    namespace: str | None

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple

    def within(self, namespace: str | None) -> str:
        """How a schema in that namespace names it, as Java's library writes it: a simple name that is also one of a
        type is written in full."""
        return self.simple if self.namespace == namespace and self.simple not in _RESERVED else self.full


def name_of(text: str, namespace: str | None) -> Name:
    """A name that has dots is a fullname; any other one is in the namespace."""
    space, dot, simple = text.rpartition(".")
    return Name(simple, (space if dot else namespace) or None)


def full_name(text: str, namespace: str | None) -> str:
    """The fullname that a reference means at first."""
    return f"{namespace}.{text}" if namespace and "." not in text else text


def fault(name: str, *, strict: bool) -> str | None:
    """What is wrong with a simple name. Strict is the specification's `[A-Za-z_][A-Za-z0-9_]*`; else letters and
    digits of any script do, as in versions of Avro's library before 1.12."""
    if not name:
        return "is empty"
    if _STRICT.fullmatch(name):
        return None
    if strict:
        return "is no name: letters of ASCII, digits and _ are allowed, and no digit at first"
    if (name[0].isalpha() or name[0] == "_") and all(one.isalnum() or one == "_" for one in name):
        return None
    return "is no name: letters, digits and _ are allowed, and no digit at first"
