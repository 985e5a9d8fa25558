"""What the formats are called, and what is said where there is no registry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_http.schemas.types import MEDIA_TYPES, PRODUCED, TYPES
from support.http_proxy import Running, running


@pytest.fixture
async def plain(tmp_path: Any) -> Any:
    async with running(tmp_path / "plain") as found:
        yield found


def test_names() -> None:
    assert {name: TYPES[name] for name in MEDIA_TYPES} == {
        "avro": "AVRO",
        "jsonschema": "JSON",
        "protobuf": "PROTOBUF",
    }
    assert sorted(PRODUCED) == sorted(
        f"application/vnd.kafka.{name}{version}+json" for name in MEDIA_TYPES for version in ("", ".v2")
    )


async def test_without_a_registry(plain: Running) -> None:
    async with plain.client() as client:
        answers = [
            (
                await client.post("/topics/t", content=b'{"records":[{}]}', headers={"content-type": type}),
                415,
                41501,
            )
            for type in PRODUCED
        ]
        for name in MEDIA_TYPES:
            body = json.dumps({"format": name}).encode()
            answers.append((await client.post("/consumers/g", content=body), 406, 40601))
        for name in TYPES:
            answers.append((await client.get(f"/topics/t/stream?format={name}"), 422, 422))
        for answer, status, code in answers:
            assert (answer.status_code, answer.json()["error_code"]) == (status, code)
            assert "lc.schema.registry.enable=true" in answer.json()["message"]
    assert plain.broker.topics.names() == []
