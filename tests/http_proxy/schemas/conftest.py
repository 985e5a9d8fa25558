"""A proxy in a broker with a schema registry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.http_proxy import Running
from support.http_schemas import serving


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data") as found:
        yield found
