"""What tests of the HTTP proxy share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from support.http_proxy import Running, running


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    """The proxy with its defaults."""
    async with running(tmp_path / "data") as found:
        yield found


@pytest.fixture
async def client(proxy: Running) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the proxy that the test's own module may have set up in another way."""
    async with proxy.client() as found:
        yield found
