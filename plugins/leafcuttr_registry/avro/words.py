"""Types in messages: short, whatever they are."""

from typing import Final

from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    UnionType,
)

_LONGEST: Final = 300
_MOST: Final = 20
_VOWELS: Final = tuple("aeiou")


def cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def listed(texts: list[str]) -> str:
    """`A, B and C`; the first twenty."""
    if len(texts) > _MOST:
        return f"{', '.join(texts[:_MOST])} and {len(texts) - _MOST} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def shown(of: AvroType) -> str:
    """`record com.acme.Order`, `array of int`, `union of null and string`."""
    text = ""
    while isinstance(of, ArrayType | MapType) and len(text) < _LONGEST:
        text += f"{of.kind} of "
        of = of.items if isinstance(of, ArrayType) else of.values
    if isinstance(of, UnionType):
        labels = [branch.label for branch in of.branches]
        return cut(f"{text}union of {listed(labels) if labels else 'nothing'}")
    if isinstance(of, FixedType):
        return cut(f"{text}fixed {of.name.full} of {of.size} bytes")
    return cut(f"{text}{of.kind} {of.name.full}" if isinstance(of, NamedType) else text + of.kind)


def an(text: str) -> str:
    return f"{'an' if text.startswith(_VOWELS) and not text.startswith('union') else 'a'} {text}"


def symbols(of: EnumType) -> str:
    return cut(", ".join(of.symbols[: _MOST * 5]))
