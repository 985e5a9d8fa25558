"""The OpenAPI document is the code's: every route has its page and the other way round, and requests made from the
document get answers that it foresees."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from quart_trio import QuartTrio

from leafcuttr.embedded import run_broker
from leafcuttr_http import app, documentation
from leafcuttr_http.errors import CODES
from support.http_proxy import Running


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("openapi")
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(folder / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.http.proxy.enable": True,
        "lc.http.proxy.port": 0,
        "lc.http.proxy.request.timeout.ms": 10_000,
    }
    with run_broker(given) as broker:
        yield f"http://{broker.listeners['lc.http.proxy']}"


async def test_every_route_has_its_page(proxy: Running) -> None:
    async with proxy.client() as client:
        answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert document["openapi"].startswith("3.1.")
    pages = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
        if method != "parameters"
    }
    assert pages == _routes()


def _routes() -> set[tuple[str, str]]:
    """Methods and paths of the application; HEAD and OPTIONS are everywhere."""
    found: Any = QuartTrio("leafcuttr_http", static_folder=None)
    app.add_routes(found, None)  # type: ignore[arg-type]
    return {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in found.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }


def test_every_reference_leads_somewhere() -> None:
    document = documentation.describe(app.PARTS, "1")
    text = json.dumps(document)
    for name in re.findall(r'"#/components/schemas/(\w+)"', text):
        assert name in document["components"]["schemas"]
    for name in document["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, f"nobody uses {name}"
    assert document["components"]["schemas"]["Error"]["properties"]["error_code"]["enum"] == sorted(CODES)


def test_requests_made_from_the_document(url: str, pytestconfig: pytest.Config) -> None:
    """No 500, and status, type and body of each answer are those that the document has."""
    import schemathesis
    from schemathesis.generation import GenerationMode

    document = schemathesis.openapi.from_url(f"{url}/openapi.json")
    examples = 300 if pytestconfig.getoption("--long") else 4
    # A valid request may be for a topic, a partition or a consumer that is not there.
    excluded = [schemathesis.checks.CHECKS.get_one("positive_data_acceptance")]
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/stream"):
            continue  # answers without end: see test_sse.py
        for mode in GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
            def ask(case: Any) -> None:
                nonlocal tried
                case.call_and_validate(excluded_checks=excluded, timeout=30)
                tried += 1

            try:
                ask()
            except Unsatisfiable:
                assert (
                    mode is GenerationMode.NEGATIVE
                )  # nothing can be wrong with a request that has no parts
    assert tried > examples * 10


def test_it_is_there_for_tools(url: str) -> None:
    answer = httpx.get(f"{url}/openapi.json", headers={"accept": "application/vnd.oai.openapi+json"})
    assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"
