"""A format of schemas whose texts never end to be read. For tests of what others get meanwhile; worker processes import
it."""

from __future__ import annotations

from collections.abc import Mapping

from leafcuttr_sdk.schemas import ResolvedReference
from support.column_schemas import Columns, Head


class Endless(Columns):
    name = "ENDLESS"

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> Head:
        while True:
            pass
