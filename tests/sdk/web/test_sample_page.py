"""The page of tests/sample_plugin over HTTP, with that plugin's own authenticator."""

from __future__ import annotations

import struct
from pathlib import Path

import httpx
import httpx_sse
import pytest

from leafcuttr.embedded import open_broker
from support.installed import SAMPLE

PAGE = "lc.plugin.greenhouse.page"


async def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLE / "src"))
    import leafcuttr_greenhouse  # type: ignore[import-not-found]

    given = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": "0",
        "lc.plugins.strict": "true",
        "lc.plugin.greenhouse.token": "sesame",
        f"{PAGE}.port": "0",
        f"{PAGE}.auth": "bearer",
        f"{PAGE}.authenticators": "greenhouse-token",
    }
    async with open_broker(given, plugins=[leafcuttr_greenhouse]) as broker:
        url = f"http://{broker.listeners[PAGE].rpartition('/')[2]}/sensors"
        headers = {"authorization": "Bearer sesame"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            assert (await client.get(f"{url}/7")).status_code == 404
            assert (await client.get(f"{url}/7", headers={"authorization": "Bearer x"})).status_code == 401
            await broker.produce("greenhouse", struct.pack(">Hf", 7, 21.5))
            async with httpx_sse.aconnect_sse(client, "GET", url) as source:
                async for event in source.aiter_sse():
                    assert (event.event, event.json()) == ("readings", {"7": 21.5})
                    break
            answer = await client.get(f"{url}/7")
            assert answer.json() == {"celsius": 21.5, "for": "User:station"}
