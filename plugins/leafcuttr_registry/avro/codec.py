"""Data of one schema: check, decode, encode."""

import io
from typing import Any

from leafcuttr_registry.avro.checking import Checks
from leafcuttr_registry.avro.decoding import Decodings
from leafcuttr_registry.avro.encoding import Encodings
from leafcuttr_registry.avro.reading import Fault, Limits, Sizes
from leafcuttr_registry.avro.types import AvroType
from leafcuttr_sdk.schemas import DataError, JsonValue


class AvroCodec:
    """Avro's binary encoding, without a header, to and from its JSON encoding. By one thread at a time.

    fastavro writes. It does not read: it does not tell which branch of a union a value is of, makes as many items of no
    bytes as a block claims, and data of a recursive type that are nested deep end the process.
    """

    def __init__(self, root: AvroType) -> None:
        self._root = root
        self._limits = Limits()
        self._sizes = Sizes(root)
        self._empty = self._sizes.empty(root)
        self._check = Checks(self._sizes, self._limits).of(root)
        self._decode: Any = None
        self._encode: Any = None

    def check(self, data: bytes) -> None:
        """Raises DataError for whatever is not exactly one datum."""
        self._limits.begin()
        try:
            if self._check(data, 0) == len(data) and not self._empty:
                return
        except (Fault, IndexError, UnicodeDecodeError, RecursionError):
            pass
        # The reason is found by those who say where in the value they are.
        self.decode(data)

    def decode(self, data: bytes) -> JsonValue:
        """Raises DataError."""
        if self._decode is None:
            self._decode = Decodings(self._sizes, self._limits).of(self._root)
        self._limits.begin()
        try:
            self._limits.spend(self._empty)
            value: JsonValue
            value, end = self._decode(data, 0)
        except Fault as fault:
            raise fault.error() from None
        except IndexError:
            raise DataError("the data end within a value") from None
        except RecursionError:
            raise DataError("nested too deep") from None
        if end != len(data):
            raise DataError(f"{len(data) - end} bytes follow the value")
        return value

    def encode(self, value: JsonValue) -> bytes:
        """Raises DataError. A field of a record has to be there, also where it has a default."""
        import fastavro

        if self._encode is None:
            convert, schema = Encodings(self._limits).of(self._root)
            self._encode = convert, fastavro.parse_schema(schema)
        convert, schema = self._encode
        self._limits.begin()
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, schema, convert(value))
        except Fault as fault:
            raise fault.error() from None
        except RecursionError:
            raise DataError("nested too deep") from None
        return out.getvalue()
