"""The OpenAPI document is the code's: every route has its page and the other way round, and requests made from the
document get answers that it foresees."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from quart_trio import QuartTrio

from leafcuttr.embedded import run_broker
from leafcuttr_http import app, documentation, passwords
from leafcuttr_http.errors import CODES
from support.http_proxy import Running

AUTH = ("alice", "sesame")


class Served(NamedTuple):
    """A proxy, and what its clients have to say."""

    url: str
    auth: tuple[str, str] | None


@pytest.fixture(scope="module", params=["none", "basic"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("openapi")
    passwords.write_passwords(folder / "passwords", {AUTH[0]: passwords.Hash.of(AUTH[1])})
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(folder / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.http.proxy.enable": True,
        "lc.http.proxy.port": 0,
        "lc.http.proxy.request.timeout.ms": 10_000,
        "lc.http.proxy.auth": request.param,
        "lc.http.proxy.passwords.file": str(folder / "passwords"),
    }
    with run_broker(given) as broker:
        url = f"http://{broker.listeners['lc.http.proxy']}"
        yield Served(url, AUTH if request.param == "basic" else None)


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


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "ways", [("none",), ("basic",), ("none", "basic", "bearer"), ("mtls",), ("bearer", "mtls")]
)
def test_the_document_of_each_way_to_authenticate(ways: tuple[str, ...]) -> None:
    import schemathesis

    document = documentation.describe(app.PARTS, "1", ways)
    schemathesis.openapi.from_dict(document).validate()
    offered = [way for way in ways if way != "none"]
    assert [*document["components"].get("securitySchemes", {})] == offered
    plain = documentation.describe(app.PARTS, "1", ("none",))
    operations = _operations(document)
    assert len(operations) == len(_routes())
    for operation, without in zip(operations, _operations(plain), strict=True):
        refusals = {"401", "403"} & operation["responses"].keys()
        of_topics = {"403"} & without["responses"].keys()
        assert refusals == ({"403"} if offered == ["mtls"] else {"401"} if offered else set()) | of_topics


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for operations in document["paths"].values() for each in operations.values()]


@pytest.mark.one_in(2)
def test_requests_made_from_the_document(served: Served, pytestconfig: pytest.Config) -> None:
    """No 500, and status, type and body of each answer are those that the document has. With authentication, the same
    request without credentials or with wrong ones is refused, as its security schemes promise (`ignored_auth`)."""
    import schemathesis
    from schemathesis.generation import GenerationMode

    document = schemathesis.openapi.from_url(f"{served.url}/openapi.json", auth=served.auth)
    document.validate()
    assert bool(document.raw_schema.get("security")) == (served.auth is not None)
    examples = 300 if pytestconfig.getoption("--long") else 4 if served.auth is None else 2
    # A valid request may be for a topic, a partition or a consumer that is not there.
    names = ["positive_data_acceptance"]
    if served.auth is not None:
        # It takes credentials for a parameter that it may get wrong, and then sends the right ones all the same.
        names.append("negative_data_rejection")
    excluded = [schemathesis.checks.CHECKS.get_one(name) for name in names]
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/stream"):
            continue  # answers without end: see test_sse.py
        can_be_wrong = list(operation.body) or [
            each for each in operation.iter_parameters() if each.definition["schema"]["type"] != "string"
        ]
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and not can_be_wrong:
                continue  # any text will do: hypothesis would look a thousand times for one that will not

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
            def ask(case: Any) -> None:
                nonlocal tried
                case.call_and_validate(excluded_checks=excluded, timeout=30, auth=served.auth)
                tried += 1

            ask()
    assert tried > examples * 10


def test_it_is_there_for_tools(served: Served) -> None:
    headers = {"accept": "application/vnd.oai.openapi+json"}
    answer = httpx.get(f"{served.url}/openapi.json", headers=headers, auth=served.auth)
    assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"
