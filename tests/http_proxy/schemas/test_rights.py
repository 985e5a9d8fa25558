"""Schemas that a client of the proxy gives as texts: it needs rights on their subjects."""

from __future__ import annotations

from pathlib import Path

import httpx

from support.http_schemas import AVRO, serving
from support.http_users import ALICE, STANDARD, grant, refused, revoke, user

TEXT = {"value_schema": '"string"', "records": [{"value": "v"}]}


async def test_a_text_needs_rights_on_its_subject(tmp_path: Path) -> None:
    settings = {"authorizer.class.name": STANDARD}
    async with (
        serving(tmp_path / "data", {"auth": "basic"}, **settings) as proxy,
        proxy.client(auth=ALICE) as client,
    ):

        async def produce(body: object) -> httpx.Response:
            return await client.post("/topics/t", json=body, headers={"content-type": AVRO})

        await user(proxy, *ALICE)
        await proxy.broker.topics.create("t", partitions=1)
        await grant(proxy, "WRITE TOPIC t")
        refused(await produce(TEXT), "User:alice may not WRITE topic subject/t-value")
        await grant(proxy, "READ TOPIC subject/t-value")
        refused(await produce(TEXT), "User:alice may not WRITE topic subject/t-value")
        await grant(proxy, "WRITE TOPIC subject/t-value")
        answer = await produce(TEXT)
        assert answer.status_code == 200, answer.text
        id = answer.json()["value_schema_id"]
        # Known, and remembered by the proxy: it is looked up, which who may read or write may do, and nobody else.
        await revoke(proxy)
        await grant(proxy, "WRITE TOPIC t")
        refused(await produce(TEXT), "User:alice may not WRITE topic subject/t-value")
        await grant(proxy, "READ TOPIC subject/t-value")
        assert (await produce(TEXT)).json()["value_schema_id"] == id
        # An id may be that of any subject: it shows nothing of the schema.
        await revoke(proxy)
        await grant(proxy, "WRITE TOPIC t")
        assert (await produce({"value_schema_id": id, "records": [{"value": "v"}]})).status_code == 200
