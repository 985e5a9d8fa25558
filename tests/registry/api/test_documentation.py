"""The OpenAPI document is the code's: every endpoint has its page, and requests made from the document get answers that
it foresees."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from leafcuttr_registry.api import documentation
from support.pages import DOCS
from support.registry import Asked, RegistryProcess

TABLE = (DOCS / "reference/registry.md").read_text().partition("## Endpoints")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


def described(ask: Asked) -> Any:
    return ask.get("/openapi.json")


def test_every_endpoint_has_its_page(ask: Asked) -> None:
    """An endpoint without one is an error of the start."""
    pages = {
        (method.upper(), path)
        for path, operations in described(ask)["paths"].items()
        for method in operations
    }
    assert pages == documentation._OPERATIONS.keys()
    paths = {path for _, path in pages}
    named = {
        path
        for path in re.findall(r"`(?:GET|POST|PUT|DELETE)? ?(/[^`]*)`", TABLE)
        if "{context}/" not in path
    }
    assert named - {"/contexts/{context}"} <= paths


def test_the_document_is_one(ask: Asked) -> None:
    import schemathesis

    document = described(ask)
    schemathesis.openapi.from_dict(document).validate()
    text = str(document)
    for name in document["components"]["schemas"]:
        assert f"#/components/schemas/{name}'" in text, f"nobody uses {name}"
    answer = ask("GET", "/openapi.json", headers={"accept": "application/vnd.oai.openapi+json"})
    assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"


@pytest.mark.long
def test_requests_made_from_the_document(registry: RegistryProcess, pytestconfig: pytest.Config) -> None:
    """No 500, and status, type and body of each answer are those that the document has."""
    import schemathesis
    from schemathesis.generation import GenerationMode

    document = schemathesis.openapi.from_url(f"{registry.url}/openapi.json")
    examples = 100 if pytestconfig.getoption("--long") else 3
    # A valid request may be for a subject that is not there, or with a text that is no schema.
    names = ("positive_data_acceptance", "negative_data_rejection")
    excluded = [schemathesis.checks.CHECKS.get_one(name) for name in names]
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()
        if operation.path == "/restart":
            continue

        @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def answers(case: Any) -> None:
            case.call_and_validate(excluded_checks=excluded)

        answers()
        tried += 1
    assert tried >= len(documentation._OPERATIONS) - 2  # it passes over the document itself
