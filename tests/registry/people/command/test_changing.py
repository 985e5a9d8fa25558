"""`schemas delete`, `schemas config` and `schemas mode`."""

from __future__ import annotations

import json
from collections.abc import Callable

from leafcuttr_sdk.testing import CommandResult
from support.registry import Asked

Schemas = Callable[..., CommandResult]


def test_delete_a_version_and_a_subject(schemas: Schemas, ask: Asked) -> None:
    for text in ("a", "a,b", "a,b,c"):
        ask.register("doomed", text)
    assert schemas("delete", "doomed", "1", "--yes").out == "deleted doomed: 1\n"
    assert ask.get("/subjects/doomed/versions") == [2, 3]
    # Two steps at once: what is not deleted is, then for good.
    assert schemas("delete", "doomed", "2", "--permanent", "--yes").out == "deleted doomed: 2\n"
    assert ask.get("/subjects/doomed/versions?deleted=true") == [1, 3]
    done = schemas("delete", "doomed", "--permanent", "--yes", "--json")
    assert json.loads(done.out) == [1, 3]
    assert ask("GET", "/subjects/doomed/versions?deleted=true").code == 40401


def test_delete_asks_first(schemas: Schemas, ask: Asked) -> None:
    ask.register("asked", "a")
    done = schemas("delete", "asked", stdin="n\n")
    assert done.status == 1 and "Delete all versions of asked?" in done.err
    assert ask.get("/subjects/asked/versions") == [1]
    assert schemas("delete", "asked", stdin="y\n").status == 0


def test_config(schemas: Schemas, ask: Asked) -> None:
    ask.register("configured", "a")
    assert schemas("config").out == "BACKWARD\n"
    assert schemas("config", "configured").out == "BACKWARD\n"
    assert schemas("config", "configured", "--set", "full").out == "FULL\n"
    assert schemas("config", "configured").out == "FULL\n"
    assert schemas("config", "configured", "--delete").out == "FULL\n"
    assert json.loads(schemas("config", "configured", "--json").out) == {"compatibilityLevel": "BACKWARD"}
    assert schemas("config", "configured", "--delete", "--set", "NONE").status == 2


def test_mode(schemas: Schemas, ask: Asked) -> None:
    ask.register("moded", "a")
    assert schemas("mode").out == "READWRITE\n"
    assert schemas("mode", "moded", "--set", "readonly").out == "READONLY\n"
    assert schemas("mode", "moded").out == "READONLY\n"
    assert ask("POST", "/subjects/moded/versions", {"schema": "b", "schemaType": "COLUMNS"}).status == 422
    assert schemas("mode", "moded", "--delete").out == "READONLY\n"
    refused = schemas("mode", "moded", "--set", "IMPORT")
    assert refused.status == 1 and len(refused.err.splitlines()) == 1
    assert schemas("mode", "moded", "--set", "IMPORT", "--force").out == "IMPORT\n"
    assert schemas("mode", "--delete").status == 2
