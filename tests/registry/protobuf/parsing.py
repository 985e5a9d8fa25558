"""Shorthands of these tests."""

from __future__ import annotations

import re

import pytest

from leafcuttr_registry.protobuf.format import FORMAT
from leafcuttr_registry.protobuf.schema import ProtobufSchema
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError


def parsed(text: str, references: dict[str, str] | None = None) -> ProtobufSchema:
    """References are texts without references of their own."""
    return FORMAT.parse(
        text, {name: ResolvedReference(each, {}) for name, each in (references or {}).items()}
    )


def refused(
    text: str, saying: str, line: int | None = None, references: dict[str, str] | None = None
) -> None:
    """The text is refused at this line, for a reason with these words."""
    with pytest.raises(SchemaError, match=re.escape(saying)) as caught:
        parsed(text, references)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    if line is not None:
        assert caught.value.line == line
        assert f"line {line}: " in str(caught.value)
