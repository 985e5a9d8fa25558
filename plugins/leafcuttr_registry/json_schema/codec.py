"""Data of JSON Schema: UTF-8 JSON, read strictly and validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leafcuttr_registry.json_schema import text
from leafcuttr_registry.json_schema.text import shortened
from leafcuttr_registry.json_schema.validators import validator
from leafcuttr_sdk.schemas import DataError, JsonValue

if TYPE_CHECKING:
    from leafcuttr_registry.json_schema.graph import Node

MAX_BYTES = 16 * 1024 * 1024


class JsonCodec:
    """The data of one schema."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._validator = None if isinstance(root.value, bool) else validator(root)

    def decode(self, data: bytes) -> JsonValue:
        """The value of a JSON text that is valid. Raises DataError."""
        if len(data) > MAX_BYTES:
            raise DataError(f"{len(data)} bytes of JSON, {MAX_BYTES} are allowed")
        try:
            value: JsonValue = text.read(text.decode(data), exact=False)
        except text.TextError as error:
            raise DataError(str(error)) from None
        self._validate(value)
        return value

    def encode(self, value: JsonValue) -> bytes:
        """The JSON text of a value that is valid, without spaces. Raises DataError."""
        self._validate(value)
        try:
            return text.write(value).encode()
        except UnicodeEncodeError:
            raise DataError("a string has a half of a surrogate pair") from None
        except (TypeError, ValueError) as error:
            raise DataError(f"no value of JSON: {error}") from None

    def check(self, data: bytes) -> None:
        """Raises DataError for what `decode` refuses."""
        self.decode(data)

    def _validate(self, value: Any) -> None:
        if self._validator is None:
            if not self._root.value:
                raise DataError("the schema is false: nothing is valid")
            return
        try:
            error = next(self._validator.iter_errors(value), None)
        except RecursionError:
            raise DataError("the value is nested too deeply to be validated") from None
        if error is not None:
            where = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
            )
            raise DataError(f"at {shortened('$' + where)}: {shortened(self._told(error), 200)[1:-1]}")

    def _told(self, error: Any) -> str:
        """With a regular expression as the schema has it, not as Python's."""
        if error.validator != "pattern":
            return str(error.message)
        pattern = error.validator_value
        written = self._root._graph.documents.known.patterns.get(pattern, pattern)
        return f"{error.instance!r} does not match the pattern {written}"
