"""`/` and what the server is."""

from __future__ import annotations

from support.registry import Asked


def test_root(ask: Asked) -> None:
    assert ask.get("/") == {}
    assert ask("POST", "/", {}).json == {}


def test_what_it_is(ask: Asked) -> None:
    clusters = ask.get("/v1/metadata/id")["scope"]["clusters"]
    assert clusters["schema-registry-cluster"] == "schema-registry" and len(clusters["kafka-cluster"]) == 22
    assert set(ask.get("/v1/metadata/version")) == {"version", "commitId"}
