"""`consume --filter`: a condition of `leafcuttr_sdk.conditions`, for messages of confluent-kafka."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr_sdk.conditions import Condition


class MessageFilter:
    """A condition with the formats of keys and values."""

    def __init__(self, condition: Condition, codecs: Codecs) -> None:
        self._matches = condition.matches
        self._codecs = codecs

    def __call__(self, message: Any) -> bool:
        """Whether it is true for a message. Bytes that are not of their format are null to it."""
        if self._codecs.need_headers:
            return self._matches(_MessageFields(message), partial(self._text_by_headers, message))
        return self._matches(_MessageFields(message), self._text)

    def _text_by_headers(self, message: Any, part: Literal["key", "value"], data: bytes) -> str:
        codec, place = self._codecs.of_record(part, message.headers)
        return codec.decode(data, place)

    def _text(self, part: Literal["key", "value"], data: bytes) -> str:
        codec, place = self._codecs.of(part)
        return codec.decode(data, place)


class _MessageFields:
    """A message as a condition reads it: each part is made when it is first needed."""

    __slots__ = ("_message",)

    def __init__(self, message: Any) -> None:
        self._message = message

    @property
    def key(self) -> bytes | None:
        data: bytes | None = self._message.key()
        return data

    @property
    def value(self) -> bytes | None:
        data: bytes | None = self._message.value()
        return data

    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]:
        return self._message.headers() or ()

    @property
    def timestamp(self) -> int | None:
        kind, timestamp = self._message.timestamp()
        return timestamp if kind else None

    @property
    def topic(self) -> str:
        return str(self._message.topic())

    @property
    def partition(self) -> int:
        return int(self._message.partition())

    @property
    def offset(self) -> int:
        return int(self._message.offset())
