"""A format of schemas that is as small as one can be: names of columns, separated by commas. A column that is gone, or
stands elsewhere, is a difference. For tests of what works with any format; worker processes import it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from leafcuttr_sdk.schemas import DataError, Difference, JsonValue, ResolvedReference, SchemaError, SchemaRule


class Head:
    record_name = None
    needs_worker = False

    def __init__(self, names: Sequence[str], references: Mapping[str, ResolvedReference]) -> None:
        self.names = list(names)
        self.references = references
        self.canonical = ",".join(names)

    def message_name(self, message: Sequence[int] = (0,)) -> str | None:
        return self.record_name

    def normalized(self) -> str:
        return ",".join(sorted(self.names))

    def formatted(self, how: str) -> str:
        if how != "resolved":
            return self.canonical
        return ",".join(
            self.references[name[1:]].text if name.startswith("@") else name for name in self.names
        )

    def codec(self, message: Sequence[int] = (0,)) -> Head:
        return self

    def decode(self, data: bytes) -> JsonValue:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DataError(str(error).partition("\n")[0]) from None
        if not isinstance(found, dict) or set(found) != set(self.names):
            raise DataError(f"it has not the columns {self.canonical[:100]}")
        return found

    def encode(self, value: JsonValue) -> bytes:
        return json.dumps(value).encode()

    def check(self, data: bytes) -> None:
        self.decode(data)


class Columns:
    name = "COLUMNS"
    summary = "names of columns"
    rules = (
        SchemaRule("COLUMN_MOVED", "A column is gone or stands elsewhere.", True, "id,name", "name"),
        SchemaRule("COLUMN_ADDED", "A column is new at the end.", False, "id", "id,name"),
    )

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> Head:
        names = [name.strip() for name in text.split(",")]
        for at, name in enumerate(names):
            if name == "slow":
                _waste()
            if name.startswith("@") and name[1:] in references:
                continue
            if not name.isidentifier():
                raise SchemaError(f"{name[:40]!a} is no name of a column", path=f"/{at}")
        return Head(names, references)

    def differences(self, reader: Head, writer: Head) -> list[Difference]:
        found = dict(enumerate(reader.names))
        return [
            Difference("COLUMN_MOVED", f"/{at}", old, found.get(at), f"Column {at} was {old}.")
            for at, old in enumerate(writer.names)
            if found.get(at) != old
        ]


def _waste() -> None:
    while True:
        pass
