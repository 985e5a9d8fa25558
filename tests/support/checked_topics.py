"""A broker with the registry in it, topics whose records are checked, and schemas for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from leafcuttr_sdk import schema_framing as framing
from leafcuttr_sdk.schemas import SchemaError, SchemaProviderError
from leafcuttr_sdk.testing import RunningBroker
from support.waiting import until

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker, RegisteredSchema

AVRO = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"}]}'
OTHER = '{"type":"record","name":"Other","fields":[{"name":"id","type":"long"}]}'
JSON = '{"type":"object","title":"Order","properties":{"id":{"type":"integer"}},"required":["id"]}'
PROTOBUF = """syntax = "proto3";
package shop;

message Order {
  int64 id = 1;

  message Line {
    string text = 1;
  }
}

message Other {
  string text = 1;
}
"""


class Shop(NamedTuple):
    """A broker, and what its tests do in it."""

    broker: RunningBroker

    def register(self, subject: str, text: str, format: str = "AVRO") -> RegisteredSchema:
        """Tried again where a machine under load lets the time pass that a schema may take to be read."""

        async def register(broker: Broker) -> RegisteredSchema:
            assert broker.schemas is not None
            return await broker.schemas.register(subject, format, text)

        def attempt() -> RegisteredSchema | None:
            try:
                return self.broker.call(register)
            except (SchemaError, SchemaProviderError) as error:
                if "it took longer than" in str(error) or "The registry is busy" in str(error):
                    return None
                raise

        return until(attempt, f"a schema of {subject}")

    def topic(self, name: str, **settings: str) -> str:
        """`value="id"` for `lc.schema.validation.value`; others by their names with `_` for `.`."""
        short = {"key": "lc.schema.validation.key", "value": "lc.schema.validation.value"}
        configs = {short.get(each, each.replace("_", ".")): value for each, value in settings.items()}
        if self.broker.call(_has(name)):
            return name
        self.broker.create_topic(name, configs=configs)
        return name

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.broker.consume(topic)]


def _has(topic: str) -> Callable[[Broker], Awaitable[bool]]:
    async def has(broker: Broker) -> bool:
        return broker.topics.get(topic) is not None

    return has


def framed(schema: RegisteredSchema, data: bytes = b"") -> bytes:
    return framing.id_prefix(schema.id) + data


def guid_header(schema: RegisteredSchema, part: str = "value", path: bytes = b"") -> tuple[str, bytes]:
    """`path`: the indexes of a message of Protobuf, behind the guid as Confluent's clients write them."""
    return f"__{part}_schema_id", framing.guid_prefix(UUID(schema.guid)) + path
