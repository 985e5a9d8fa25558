"""Schemas, and what is asked of a proxy in a broker with a schema registry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from leafcuttr_sdk.schemas import SchemaProvider
from support.http_proxy import Running, running

REGISTRY = {
    "lc.schema.registry.enable": "true",
    "lc.schema.registry.host": "127.0.0.1",
    "lc.schema.registry.port": "0",
    "group.initial.rebalance.delay.ms": "0",
}
V2 = "application/vnd.kafka.v2+json"
AVRO, JSONSCHEMA, PROTOBUF = (
    f"application/vnd.kafka.{name}.v2+json" for name in ("avro", "jsonschema", "protobuf")
)
TYPES = {AVRO: "AVRO", JSONSCHEMA: "JSON", PROTOBUF: "PROTOBUF"}
USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}],
    }
)
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
)
ORDER = """syntax = "proto3";
message Order { int64 id = 1; string note = 2; message Line { int32 n = 1; } }
message Other { bool b = 1; }
"""


@asynccontextmanager
async def serving(
    folder: Path, settings: Mapping[str, str | int] | None = None, **broker: str | int
) -> AsyncIterator[Running]:
    async with running(folder, settings, broker={**REGISTRY, **broker}) as found:
        yield found


def schemas_of(proxy: Running) -> SchemaProvider:
    found = proxy.broker.schemas
    assert found is not None
    return found


async def post(proxy: Running, topic: str, body: Any, type: str = AVRO, **headers: str) -> httpx.Response:
    """Produce; `body` as JSON, or bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with proxy.client() as client:
        return await client.post(f"/topics/{topic}", content=content, headers={"content-type": type, **named})


async def produced(proxy: Running, topic: str, body: Any, type: str = AVRO) -> Any:
    """The answer of a request that is right."""
    answer = await post(proxy, topic, body, type)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(proxy: Running, topic: str, body: Any, code: int, type: str = AVRO) -> str:
    """The message."""
    answer = await post(proxy, topic, body, type)
    assert answer.json()["error_code"] == code, answer.text
    assert answer.status_code == (code if code < 1000 else code // 100)
    return str(answer.json()["message"])


class HttpConsumer:
    """Of REST proxy API v2."""

    def __init__(self, client: httpx.AsyncClient, path: str, format: str) -> None:
        self._client = client
        self._path = path
        self._accept = f"application/vnd.kafka.{format}.v2+json"

    async def post(self, what: str, body: Any) -> None:
        answer = await self._client.post(
            f"{self._path}/{what}", content=json.dumps(body).encode(), headers={"content-type": V2}
        )
        assert answer.status_code in (200, 204), answer.text

    async def ask(self, **headers: str) -> httpx.Response:
        return await self._client.get(
            f"{self._path}/records?timeout=15000", headers={"accept": self._accept, **headers}
        )

    async def read(self) -> list[Any]:
        answer = await self.ask()
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == self._accept
        found: list[Any] = answer.json()
        return found


async def consumer(client: httpx.AsyncClient, topic: str, format: str, **settings: Any) -> HttpConsumer:
    """One that reads partition 0 of the topic from its beginning."""
    body = {"format": format, "consumer.request.timeout.ms": 20_000, **settings}
    answer = await client.post(
        f"/consumers/of-{format}", content=json.dumps(body).encode(), headers={"content-type": V2}
    )
    assert answer.status_code == 200, answer.text
    made = HttpConsumer(client, f"/consumers/of-{format}/instances/{answer.json()['instance_id']}", format)
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    await made.post("assignments", partitions)
    await made.post("positions/beginning", partitions)
    return made
