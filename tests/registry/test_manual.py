"""The endpoints of LeafCuttr's manual, call by call and in its order: paths, bodies, codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.registry import Asked, running_registry

V1 = json.dumps({"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]})
V2 = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int", "default": 0}],
    }
)
BAD = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string"}, {"name": "email", "type": "string"}],
    }
)
LEVELS = [
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    settings = {"unstable.api.versions.enable": "true"}
    with running_registry(tmp_path_factory.mktemp("registry"), settings) as running:
        yield running.ask


def same(text: str, schema: str) -> bool:
    found: bool = json.loads(text) == json.loads(schema)
    return found


def error(ask: Asked, method: str, path: str, status: int, code: int, body: Any = None) -> None:
    answer = ask(method, path, body)
    assert (answer.status, answer.code) == (status, code), answer
    assert set(answer.json) == {"error_code", "message"} and isinstance(answer.json["message"], str)


def test_the_endpoints_in_the_order_of_the_manual(ask: Asked) -> None:
    # Root
    root = ask("GET", "/")
    assert (root.status, root.json) == (200, {})
    assert root.headers["content-type"] == "application/vnd.schemaregistry.v1+json"

    # Register: a new one, the same again, one that is not compatible, none
    registered = ask(
        "POST", "/subjects/user%2Fvalue/versions", {"schema": V1, "schemaType": "AVRO", "references": []}
    )
    assert registered.status == 200
    first = registered.json["id"]
    assert isinstance(first, int)
    assert ask("POST", "/subjects/user%2Fvalue/versions", {"schema": V1}).json["id"] == first
    second = ask("POST", "/subjects/user%2Fvalue/versions", {"schema": V2}).json["id"]
    assert second == first + 1
    assert ask("POST", "/subjects/user%2Fvalue/versions", {"schema": V1}).json["id"] == first
    error(ask, "POST", "/subjects/user%2Fvalue/versions", 409, 409, {"schema": BAD})
    error(ask, "POST", "/subjects/user%2Fvalue/versions", 422, 42201, {"schema": '{"type":"none"'})
    error(ask, "POST", "/subjects/user%2Fvalue/versions", 422, 42201, {"schema": ""})
    error(ask, "POST", "/subjects/user%2Fvalue/versions", 422, 42201, {})

    # Schemas
    found = ask.get(f"/schemas/ids/{first}")
    assert same(found["schema"], V1) and "schemaType" not in found
    error(ask, "GET", "/schemas/ids/99999", 404, 40403)
    assert same(ask("GET", f"/schemas/ids/{first}/schema").text, V1)
    error(ask, "GET", "/schemas/ids/99999/schema", 404, 40403)
    types = ask.get("/schemas/types")
    assert types[:3] == ["AVRO", "JSON", "PROTOBUF"]

    # Subjects
    assert ask.get("/subjects") == ["user/value"]
    assert ask.get("/subjects/user%2Fvalue/versions") == [1, 2]
    error(ask, "GET", "/subjects/none/versions", 404, 40401)
    version = ask.get("/subjects/user%2Fvalue/versions/1")
    assert {key: version[key] for key in ("subject", "id", "version")} == {
        "subject": "user/value",
        "id": first,
        "version": 1,
    }
    assert same(version["schema"], V1) and "schemaType" not in version
    for latest in ("latest", "-1"):
        assert ask.get(f"/subjects/user%2Fvalue/versions/{latest}")["version"] == 2
    error(ask, "GET", "/subjects/none/versions/1", 404, 40401)
    error(ask, "GET", "/subjects/user%2Fvalue/versions/7", 404, 40402)
    error(ask, "GET", "/subjects/user%2Fvalue/versions/0", 422, 42202)
    error(ask, "GET", "/subjects/user%2Fvalue/versions/one", 422, 42202)
    assert same(ask("GET", "/subjects/user%2Fvalue/versions/latest/schema").text, V2)
    error(ask, "GET", "/subjects/none/versions/1/schema", 404, 40401)
    error(ask, "GET", "/subjects/user%2Fvalue/versions/7/schema", 404, 40402)

    # Look-up
    looked_up = ask("POST", "/subjects/user%2Fvalue", {"schema": V1, "schemaType": "AVRO"})
    assert looked_up.status == 200 and looked_up.json["id"] == first and looked_up.json["version"] == 1
    assert same(looked_up.json["schema"], V1) and "schemaType" not in looked_up.json
    error(ask, "POST", "/subjects/none", 404, 40401, {"schema": V1})
    error(ask, "POST", "/subjects/user%2Fvalue", 404, 40403, {"schema": BAD})
    error(ask, "POST", "/subjects/user%2Fvalue", 422, 42201, {"schema": "{"})

    # Config
    assert ask.get("/config") == {"compatibilityLevel": "BACKWARD"}
    for level in LEVELS:
        answer = ask("PUT", "/config", {"compatibility": level})
        assert (answer.status, answer.json) == (200, {"compatibility": level})
        assert ask.get("/config") == {"compatibilityLevel": level}
    error(ask, "PUT", "/config", 422, 42203, {"compatibility": "SOME"})
    ask("PUT", "/config", {"compatibility": "BACKWARD"})
    error(ask, "GET", "/config/user%2Fvalue", 404, 40401)
    assert ask.get("/config/user%2Fvalue?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    error(ask, "DELETE", "/config/user%2Fvalue", 404, 40401)
    answer = ask("PUT", "/config/user%2Fvalue", {"compatibility": "FORWARD"})
    assert (answer.status, answer.json) == (200, {"compatibility": "FORWARD"})
    assert ask.get("/config/user%2Fvalue") == {"compatibilityLevel": "FORWARD"}
    error(ask, "PUT", "/config/user%2Fvalue", 422, 42203, {"compatibility": "SOME"})
    answer = ask("DELETE", "/config/user%2Fvalue")
    assert (answer.status, answer.json) == (200, {"compatibilityLevel": "FORWARD"})
    error(ask, "GET", "/config/user%2Fvalue", 404, 40401)

    # Compatibility
    against = "/compatibility/subjects/user%2Fvalue/versions"
    assert ask("POST", f"{against}/latest", {"schema": V1}).json == {"is_compatible": True}
    assert ask("POST", f"{against}/1", {"schema": BAD, "schemaType": "AVRO"}).json == {"is_compatible": False}
    error(ask, "POST", "/compatibility/subjects/none/versions/1", 404, 40401, {"schema": V1})
    error(ask, "POST", f"{against}/7", 404, 40402, {"schema": V1})
    error(ask, "POST", f"{against}/1", 422, 42201, {"schema": "{"})
    assert ask("POST", against, {"schema": V2}).json == {"is_compatible": True}
    assert ask("POST", "/compatibility/subjects/none/versions", {"schema": V1}).json == {
        "is_compatible": True
    }
    error(ask, "POST", against, 422, 42201, {"schema": "{"})

    # Deletion, first not for good
    answer = ask("DELETE", "/subjects/user%2Fvalue/versions/1")
    assert (answer.status, answer.json) == (200, 1)
    assert same(ask.get(f"/schemas/ids/{first}")["schema"], V1)
    error(ask, "GET", "/subjects/user%2Fvalue/versions/1", 404, 40402)
    error(ask, "DELETE", "/subjects/none/versions/1", 404, 40401)
    error(ask, "DELETE", "/subjects/user%2Fvalue/versions/7", 404, 40402)
    error(ask, "DELETE", "/subjects/user%2Fvalue/versions/x", 422, 42202)
    answer = ask("DELETE", "/subjects/user%2Fvalue/versions/1?permanent=true")
    assert (answer.status, answer.json) == (200, 1)
    error(ask, "GET", f"/schemas/ids/{first}", 404, 40403)
    answer = ask("DELETE", "/subjects/user%2Fvalue")
    assert (answer.status, answer.json) == (200, [2])
    assert ask.get("/subjects") == [] and ask.get("/subjects?deleted=true") == ["user/value"]
    assert same(ask.get(f"/schemas/ids/{second}")["schema"], V2)
    answer = ask("DELETE", "/subjects/user%2Fvalue?permanent=true")
    assert (answer.status, answer.json) == (200, [2])
    assert ask.get("/subjects?deleted=true") == []
    error(ask, "DELETE", "/subjects/user%2Fvalue", 404, 40401)

    # What was given is never given again
    assert ask("POST", "/subjects/again/versions", {"schema": V1}).json["id"] == second + 1

    # Restart
    answer = ask("POST", "/restart")
    assert (answer.status, answer.json) == (200, {"success": True})
    assert ask.get("/subjects") == ["again"]
    assert ask("POST", "/subjects/more/versions", {"schema": V2}).json["id"] == second + 2

    # Common errors
    answer = ask("POST", "/subjects/again/versions", content=b"{")
    assert (answer.status, answer.code) == (400, 400)
    answer = ask("POST", "/subjects/again/versions", {"schema": V1}, headers={"content-type": "text/plain"})
    assert (answer.status, answer.code) == (415, 415)


@pytest.mark.long
def test_restart_is_not_there_unless_it_is_enabled(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_registry(tmp_path_factory.mktemp("without")) as running:
        error(running.ask, "POST", "/restart", 404, 40401)
