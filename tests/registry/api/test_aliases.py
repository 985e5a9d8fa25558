"""The `alias` of a subject's config."""

from __future__ import annotations

import pytest

from support.registry import Asked


def columns(schema: str) -> dict[str, str]:
    return {"schema": schema, "schemaType": "COLUMNS"}


def test_a_subject_with_an_alias_stands_for_it(ask: Asked) -> None:
    id = ask.register("a-real", "a,b")["id"]
    ask("PUT", "/config/a-al", {"alias": "a-real"})
    assert ask.get("/subjects/a-al/versions") == [1]
    assert ask.get("/subjects/a-al/versions/latest")["subject"] == "a-real"
    assert ask("GET", "/subjects/a-al/metadata").code == 40403, "a subject without such metadata"
    assert ask("POST", "/subjects/a-al", columns("a,b")).json["subject"] == "a-real"
    path = "/compatibility/subjects/a-al/versions"
    assert ask("POST", path, columns("b")).json == {"is_compatible": False}
    assert ask.register("a-al", "a,b,c")["version"] == 2
    assert ask.get(f"/schemas/ids/{id}?subject=a-al")["subject"] == "a-real"
    assert ask("DELETE", "/subjects/a-al/versions/2").json == 2
    assert ask.get("/subjects/a-real/versions") == [1]
    assert "a-al" not in ask.get("/subjects?deleted=true")


def test_config_and_mode_are_those_of_the_subject_itself(ask: Asked) -> None:
    ask("PUT", "/config/a-own", {"alias": "a-other"})
    ask("PUT", "/mode/a-own", {"mode": "READONLY"})
    assert ask.get("/config/a-own")["alias"] == "a-other"
    assert ask("GET", "/config/a-other").status == ask("GET", "/mode/a-other").status == 404
    assert ask.register("a-own", "a")["version"] == 1, "the mode of the alias holds"
    ask("DELETE", "/mode/a-own")
    ask("PUT", "/config/a-own", {"alias": None})
    assert ask("GET", "/subjects/a-own/versions").code == 40401


def test_an_alias_of_an_alias_goes_one_step(ask: Asked) -> None:
    ask.register("a-end", "a")
    ask("PUT", "/config/a-second", {"alias": "a-end"})
    ask("PUT", "/config/a-first", {"alias": "a-second"})
    assert ask.get("/subjects/a-second/versions") == [1]
    assert ask("GET", "/subjects/a-first/versions").code == 40401


@pytest.mark.parametrize(
    "path", ["/contexts/a/subjects/al", "/subjects/:.a:al", "/contexts/a/subjects/:.a:al"]
)
def test_within_a_context(ask: Asked, path: str) -> None:
    """An alias is written with its context; an alias of another context is not asked for."""
    if ask("GET", "/subjects/:.a:real/versions").status == 404:
        ask.register(":.a:real", "a")
    ask("PUT", "/contexts/a/config/al", {"alias": ":.a:real"})
    assert ask.get(f"{path}/versions/latest")["subject"] == ":.a:real"
    assert ask.get("/contexts/a/schemas/ids/1?subject=al")["subject"] == ":.a:real"
    assert ask("GET", "/contexts/b/subjects/al/versions").code == 40401
    assert ask("GET", "/subjects/:.:al/versions").code == 40401
