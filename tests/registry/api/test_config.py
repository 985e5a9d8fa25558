"""Config: of subjects, contexts and the registry; what it has beside the level."""

from __future__ import annotations

from typing import Any

import pytest

from support.registry import Asked


def test_an_update_changes_what_it_names(ask: Asked) -> None:
    given = {"compatibility": "full", "alias": "other", "compatibilityGroup": "major", "normalize": True}
    answer = ask("PUT", "/config/g-a", given)
    assert answer.json == {**given, "compatibility": "FULL"}
    assert ask("PUT", "/config/g-a", {"alias": None, "validateFields": False}).json == {
        "compatibility": "FULL",
        "normalize": True,
        "validateFields": False,
        "compatibilityGroup": "major",
    }
    assert ask.get("/config/g-a")["compatibilityLevel"] == "FULL"


def test_without_a_level_it_is_the_default_one(ask: Asked) -> None:
    ask("PUT", "/config/g-b", {"normalize": True})
    assert ask.get("/config/g-b") == {"normalize": True, "compatibilityLevel": "BACKWARD"}


def test_scopes(ask: Asked) -> None:
    ask("PUT", "/config/:.g:", {"compatibility": "FORWARD"})
    assert ask.get("/config/:.g:a?defaultToGlobal=true") == {"compatibilityLevel": "FORWARD"}
    assert ask("GET", "/config/:.g:a").code == 40401
    ask("PUT", "/config/:.g:a", {"compatibility": "NONE"})
    assert ask.get("/config/:.g:a") == {"compatibilityLevel": "NONE"}
    assert ask.get("/contexts/.g/config") == {"compatibilityLevel": "FORWARD"}
    assert ask.get("/contexts/g/config/a") == {"compatibilityLevel": "NONE"}
    assert ask.get("/config/:.other:a?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    ask("PUT", "/config/:.__GLOBAL:", {"compatibility": "FULL_TRANSITIVE"})
    assert ask.get("/config/:.other:a?defaultToGlobal=true") == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert ask("DELETE", "/config/:.__GLOBAL:").json == {"compatibilityLevel": "FULL_TRANSITIVE"}


def test_the_global_one_is_always_there(ask: Asked) -> None:
    ask("PUT", "/config", {"compatibility": "NONE"})
    assert ask.get("/config/g-c?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    assert ask("DELETE", "/config").json == {"compatibilityLevel": "NONE"}
    assert ask.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert ask.get("/config/:.:") == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": "SOME"}, 42203),
        ({"compatibility": 5}, 400),
        ({"normalize": "yes"}, 400),
        ({"alias": 5}, 400),
        ({"defaultMetadata": 5}, 400),
        ({"overrideRuleSet": {"domainRules": [{"name": "a"}]}}, 42210),
    ],
)
def test_what_is_refused(ask: Asked, body: Any, code: int) -> None:
    for path in ("/config", "/config/g-d"):
        assert ask("PUT", path, body).code == code
    assert ask("PUT", "/config/__EMPTY", {}).code == 42208
