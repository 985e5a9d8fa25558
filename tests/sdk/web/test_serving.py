"""What the handlers of a service share, and how its failures are told."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest
import trio

from leafcuttr_sdk.web import Application, Exchange, Serving
from leafcuttr_sdk.web.serving import Failures
from support.web_service import serving


def test_a_failure_has_its_traceback_and_a_lack_one_line(caplog: pytest.LogCaptureFixture) -> None:
    tell = Failures(logging.getLogger("tested"))
    error = RuntimeError("broken")
    assert tell(error, "GET /") is None
    assert tell(OSError(errno.EMFILE, "no"), "GET /a") == "Too many open files"
    assert tell(OSError(errno.EMFILE, "no"), "GET /b") == "Too many open files"
    told = [(record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert told == [("GET / failed", True), ("GET /a failed: Too many open files", False)], (
        "one line a minute"
    )


async def test_what_is_begun_outlives_its_request_and_sees_the_stop(tmp_path: Path) -> None:
    seen: list[str] = []

    def make(given: Serving) -> Application:
        async def later() -> None:
            await given.closing.wait()
            seen.append("closing")

        async def handle(exchange: Exchange) -> None:
            assert exchange.serving is given
            given.nursery.start_soon(later)
            await exchange.reply([given.limits.prefix, list(given.authentication.ways), given.memory.taken])

        return Application(handle)

    async with serving(tmp_path, make) as served, served.client() as client:
        answer = await client.get("/")
        assert answer.json() == ["lc.plugin.tested", ["none"], 0]
        assert seen == []
    assert seen == ["closing"]


async def test_what_a_request_lacks_is_said_with_503(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(exchange: Exchange) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError(errno.EMFILE, "no")

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        for _ in range(3):
            answer = await client.get("/")
            assert (answer.status_code, "Too many open files" in answer.json()["message"]) == (503, True)
    assert [record.getMessage() for record in caplog.records if "failed" in record.getMessage()] == [
        "GET / failed: Too many open files"
    ]
