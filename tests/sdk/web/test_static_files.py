"""The files of a folder: what is answered, what caches are told, and what lies outside."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from leafcuttr_sdk.web import Application, Routes, StaticFiles
from support.web_service import serving

LARGE = os.urandom(700_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>hello</h1>")
    (folder / "js" / "app.js").write_text("run()")
    (folder / "large.bin").write_bytes(LARGE)
    (folder / ".secret").write_text("CONFIDENTIAL")
    (tmp_path / "outside.txt").write_text("CONFIDENTIAL")
    (tmp_path / "static-too").mkdir()
    (tmp_path / "static-too" / "a.txt").write_text("CONFIDENTIAL")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "sibling").symlink_to(tmp_path / "static-too")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.fixture
async def client(tmp_path: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    routes = Routes()
    routes.add("GET", "/app/{path*}", StaticFiles(folder, fallback="index.html", max_age_s=0))
    routes.add("GET", "/{path*}", StaticFiles(folder, max_age_s=60))
    async with serving(tmp_path, lambda _: Application(routes)) as served, served.client() as client:
        yield client


async def test_files_and_what_caches_are_told(client: httpx.AsyncClient) -> None:
    answer = await client.get("/js/app.js")
    assert (answer.status_code, answer.text) == (200, "run()")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "max-age=60"
    assert answer.headers["x-content-type-options"] == "nosniff"
    etag = answer.headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = await client.get("/js/app.js", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert (await client.get("/js/app.js", headers={"if-none-match": '"other"'})).status_code == 200
    index = await client.get("/")
    assert (index.text, index.headers["content-type"]) == ("<h1>hello</h1>", "text/html; charset=utf-8")
    assert (await client.get("/large.bin")).content == LARGE
    head = await client.head("/large.bin")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(LARGE)))


async def test_a_change_has_another_etag(client: httpx.AsyncClient, folder: Path) -> None:
    before = (await client.get("/js/app.js")).headers["etag"]
    (folder / "js" / "app.js").write_text("run(2)")
    answer = await client.get("/js/app.js", headers={"if-none-match": before})
    assert (answer.status_code, answer.text) == (200, "run(2)")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/.secret",
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/js/..%2f..%2foutside.txt",
        "/..%2fstatic-too%2fa.txt",
        "/%2fetc%2fpasswd",
        "/link.txt",
        "/sibling/a.txt",
        "/loop",
        "/fifo",
        "/js",
        "/a%00b",
        "/" + "long" * 1000,
    ],
)
async def test_what_is_not_there(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(httpx.URL(str(client.base_url).rstrip("/") + path))
    assert (answer.status_code, "CONFIDENTIAL" in answer.text) == (404, False)


async def test_the_fallback_stands_for_what_is_no_file(client: httpx.AsyncClient) -> None:
    answer = await client.get("/app/orders/7")
    assert (answer.text, answer.headers["cache-control"]) == ("<h1>hello</h1>", "no-cache")
    assert (await client.get("/app/js/app.js")).text == "run()"
