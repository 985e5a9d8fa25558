"""Plain handlers by method and path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_sdk.web import Application, Exchange, Routes, Serving
from support.web_service import serving


async def show(exchange: Exchange) -> None:
    await exchange.reply({"endpoint": exchange.endpoint, **exchange.parameters})


def routes() -> Routes:
    found = Routes()
    found.add("GET", "/", show)
    found.add("GET", "/rows", show, {"summary": "All", "responses": {}})
    found.add("GET", "/rows/latest", show)
    found.add("PUT", "/rows/{key}", show)
    found.add("GET", "/rows/{key}", show, {"summary": "One", "responses": {}})
    found.add("GET", "/files/{rest*}", show, {"summary": "Files", "responses": {}})
    return found


async def test_requests_reach_their_handlers(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda _: Application(routes())) as served, served.client() as client:

        async def got(path: str, method: str = "GET") -> Any:
            answer = await client.request(method, path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert await got("/") == {"endpoint": "/"}
        assert await got("/rows/") == {"endpoint": "/rows"}
        assert await got("/rows/latest") == {"endpoint": "/rows/latest"}
        assert await got("/rows/a%2Fb%20c") == {"endpoint": "/rows/{key}", "key": "a/b c"}
        assert await got("/rows/caf%C3%A9", "PUT") == {"endpoint": "/rows/{key}", "key": "café"}
        assert await got("/files/a/b.txt") == {"endpoint": "/files/{rest*}", "rest": "a/b.txt"}
        assert await got("/files") == {"endpoint": "/files/{rest*}", "rest": ""}
        head = await client.head("/rows/latest")
        assert (head.status_code, head.content, int(head.headers["content-length"]) > 0) == (200, b"", True)
        missing = await client.get("/nowhere")
        assert (missing.status_code, missing.json()) == (
            404,
            {"error_code": 404, "message": "There is nothing at /nowhere."},
        )
        assert (await client.get("/rows/%FF")).status_code == 404
        refused = await client.delete("/rows/a")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, PUT")
        assert refused.json()["message"] == "/rows/a does not take DELETE."
        page = await served.metrics()
        assert 'leafcuttr_tested_requests_total{endpoint="/rows/{key}",method="GET",status="200"} 1.0' in page
        assert 'leafcuttr_tested_requests_total{endpoint="other",method="GET",status="404"} 2.0' in page


async def test_a_literal_part_is_preferred_whatever_was_added_first(tmp_path: Path) -> None:
    """What a path matches is tested with the patterns: tests/sdk/test_paths.py."""
    found = Routes()
    found.add("GET", "/{table}/{key}", show)
    found.add("GET", "/{table}/latest", show)
    async with serving(tmp_path, lambda _: Application(found)) as served, served.client() as client:
        assert (await client.get("/rows/latest")).json() == {"endpoint": "/{table}/latest", "table": "rows"}
        assert (await client.get("/rows/l%61test")).json() == {
            "endpoint": "/{table}/latest",
            "table": "rows",
        }
        for odd in ("/rows/%zz", "/rows/%4", "/rows/%2e%2e"):
            assert (await client.get(odd)).status_code == 404


def test_routes_that_differ_in_names_only_are_refused() -> None:
    with pytest.raises(ValueError, match=r"/rows/\{row\} cannot be told from /rows/\{key\}"):
        routes().add("DELETE", "/rows/{row}", show)


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", "/a"), ("GET", "a"), ("GET", "/rows"), ("GET", "/{a*}/b"), ("GET", "/{a}/{a}")],
)
def test_what_is_no_route_is_refused(method: str, path: str) -> None:
    with pytest.raises(ValueError, match=r"/a|no method|there already|only the last"):
        routes().add(method, path, show)


def test_the_document_has_what_has_an_operation() -> None:
    document = routes().describe("Rows", "3", {"Row": {"type": "object"}}, description="All of them.")
    assert document["info"] == {"title": "Rows", "version": "3", "description": "All of them."}
    assert {path: [*each] for path, each in document["paths"].items()} == {
        "/rows": ["get"],
        "/rows/{key}": ["get"],
        "/files/{rest}": ["get"],
    }
    assert set(document["components"]["schemas"]) == {"Error", "Row"}


def test_a_service_needs_serving_only_to_be_made() -> None:
    assert Application(routes()).websocket is None
    assert Serving.__doc__
