"""Data of a message: to JSON and back, and whether they are of it.

JSON is Protobuf's own mapping (https://protobuf.dev/programming-guides/json/) with fields of the default value shown,
as Confluent's REST proxy and console tools have it. The prefix of a record, with its id and message indexes, is not
here: `leafcuttr_sdk.schema_framing`.
"""

from typing import TYPE_CHECKING, Any, cast

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError

from leafcuttr_sdk.schemas import DataError

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import JsonValue

MAX_DEPTH = 100
"""Of JSON values, as of encoded messages in protobuf."""


class ProtobufCodec:
    """Of one message. Its methods raise DataError."""

    def __init__(self, pool: DescriptorPool, descriptor: Descriptor) -> None:
        self._pool = pool
        self._class: Any = message_factory.GetMessageClass(descriptor)
        self.name = descriptor.full_name

    def _read(self, data: bytes) -> Any:
        try:
            message = self._class.FromString(data)
        except DecodeError as error:
            raise DataError(f"the data are no message {self.name}: {_line(error)}") from None
        if not message.IsInitialized():
            raise self._lacks(message)
        return message

    def _lacks(self, message: Any) -> DataError:
        missing = ", ".join(message.FindInitializationErrors())[:200]
        return DataError(f"the message {self.name} lacks required fields: {missing}")

    def check(self, data: bytes) -> None:
        self._read(data)

    def decode(self, data: bytes) -> "JsonValue":
        message = self._read(data)
        try:
            value: JsonValue = json_format.MessageToDict(
                message, always_print_fields_with_no_presence=True, descriptor_pool=self._pool
            )
        except (json_format.Error, TypeError, ValueError, OverflowError, KeyError) as error:
            # Values that the JSON forms of well-known types have not: a date of year 10000, a type that is unknown.
            raise DataError(f"the message {self.name} has no JSON form: {_line(error)}") from None
        except RecursionError:
            raise DataError(f"the message {self.name} is nested too deep") from None
        return value

    def encode(self, value: "JsonValue") -> bytes:
        message = self._class()
        try:
            if not isinstance(value, dict) and not self.name.startswith("google.protobuf."):
                raise DataError(f"the value of a message {self.name} is a JSON object")
            json_format.ParseDict(
                cast("Any", value), message, descriptor_pool=self._pool, max_recursion_depth=MAX_DEPTH
            )
            data: bytes = message.SerializeToString()
        except json_format.Error as error:
            raise DataError(f"the value is no message {self.name}: {_line(error)}") from None
        except EncodeError:
            raise self._lacks(message) from None
        except DataError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError, KeyError) as error:
            raise DataError(f"the value is no message {self.name}: {_line(error)}") from None
        except RecursionError:
            raise DataError("the value is nested too deep") from None
        return data


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
