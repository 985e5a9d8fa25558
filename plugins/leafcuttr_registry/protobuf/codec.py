"""Data of a message: to JSON and back, and whether they are of it.

JSON is Protobuf's own mapping (https://protobuf.dev/programming-guides/json/) with fields of the default value shown,
as Confluent's REST proxy and console tools have it. The prefix of a record, with its id and message indexes, is not
here: `leafcuttr_sdk.schema_framing`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message

from leafcuttr_sdk.schemas import DataError

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import JsonValue

MAX_DEPTH = 100
"""Of JSON values, as of encoded messages in protobuf."""
_TOLD: Final = 10
_SEARCHED: Final = 1000
"""Messages in one that are searched for required fields which they lack."""


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
        missing = ", ".join(islice(_missing(message), _TOLD))[:200] or "of messages that it has"
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
        except SystemError:
            # Of protobuf's own tables of names (protobuf 7.36.2).
            raise DataError(f"the value is no message {self.name}: a name in it is no Unicode") from None
        except RecursionError:
            raise DataError("the value is nested too deep") from None
        return data


def _missing(message: Any) -> Iterator[str]:
    """The required fields that it lacks, with those of the messages in it, but for values of maps.

    protobuf's own `FindInitializationErrors` ends the process at a map key that is no UTF-8, which proto2 allows
    (protobuf 7.36.2).
    """
    left = [("", message)]
    for _ in range(_SEARCHED):
        if not left:
            return
        path, message = left.pop()
        fields = message.DESCRIPTOR.fields
        yield from (
            f"{path}{field.name}"
            for field in fields
            if _is_required(field) and not message.HasField(field.name)
        )
        for field, value in message.ListFields():
            kind = field.message_type
            if kind is None or kind.GetOptions().map_entry:
                continue
            if isinstance(value, Message):
                left.append((f"{path}{field.name}.", value))
                continue
            left += [
                (f"{path}{field.name}[{at}].", each)
                for at, each in enumerate(value[: max(_SEARCHED - len(left), 0)])
            ]


def _is_required(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_required"):
        return field.is_required
    return getattr(field, "label", None) == FieldDescriptor.LABEL_REQUIRED  # before protobuf 6.31


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
