"""A registry over HTTP: what is requested and what is remembered, by scripted answers. `test_provider.py` in
tests/registry has it at a real one."""

from __future__ import annotations

import pickle
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.http_schemas import HttpRegistry
from leafcuttr_sdk.http_schemas import registry as registry_module
from leafcuttr_sdk.schemas import (
    RegisteredSchema,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
    SchemaVersion,
)
from support.column_schemas import Columns
from support.http_registry import Requested, ScriptedRegistry, scripted_registry
from support.waiting import free_port

GUID = "0b8d2b1e-0000-0000-0000-000000000007"
SEVEN = {"id": 7, "guid": GUID, "schema": '"int"'}
KNOWN = RegisteredSchema(7, GUID, "AVRO", '"int"')


def give(asked: Requested) -> tuple[int, object]:
    path, _, _ = asked.path.partition("?")
    if path == "/schemas/ids/7":
        # As Confluent's, which leaves out the id; with a subject others name that of its place.
        return 200, {name: value for name, value in SEVEN.items() if name != "id"}
    if path == f"/schemas/guids/{GUID}/ids":
        return 200, [{"context": ".", "id": 7}]
    if path == f"/schemas/guids/{GUID}":
        return 200, {"schema": '"int"'}
    if path in ("/subjects/s/versions/3", "/subjects/s/versions/latest", "/subjects/s"):
        return 200, {"subject": "s", "version": 3, **SEVEN}
    if path == "/subjects/s/versions":
        return 200, {"id": 7}
    return 404, {"error_code": 40403, "message": f"{path} is not there"}


@pytest.fixture
def server() -> Iterator[ScriptedRegistry]:
    with scripted_registry(give) as running:
        yield running


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those that were made, each at its longest, without waiting."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    return found


def registry_at(*servers: ScriptedRegistry, **given: str) -> HttpRegistry:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    return HttpRegistry({"schema.registry.url": ",".join(each.url for each in servers), **properties})


def test_an_id_is_requested_once(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    assert registry.get(7) is None
    for _ in range(3):
        assert registry.by_id(7) == KNOWN
    assert registry.by_id(GUID) == KNOWN
    assert registry.get(GUID.upper()) == KNOWN
    assert server.paths() == ["/schemas/ids/7?fetchMaxId=false"]


def test_the_context_of_an_id_is_that_of_a_subject(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    registry.by_id(7, "orders")
    registry.by_id(7, "others")
    registry.by_id(7, ":.far:orders")
    assert server.paths() == [
        "/schemas/ids/7?fetchMaxId=false&subject=orders",
        "/schemas/ids/7?fetchMaxId=false&subject=%3A.far%3Aorders",
    ]


def test_another_form_of_a_text(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    assert registry.formatted(7, "serialized") == '"int"'
    assert registry.formatted(7, "serialized", ":.far:") == '"int"'
    assert server.paths() == [
        "/schemas/ids/7?format=serialized",
        "/schemas/ids/7?format=serialized&subject=%3A.far%3A",
    ]
    with pytest.raises(SchemaNotFoundError):
        registry.formatted(8, "serialized")


def test_a_guid_is_requested_once(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    for _ in range(2):
        assert registry.by_id(GUID) == KNOWN
    assert registry.by_id(7) == KNOWN
    assert server.paths() == [f"/schemas/guids/{GUID}/ids", f"/schemas/guids/{GUID}"]


def test_a_guid_without_an_id(server: ScriptedRegistry) -> None:
    server.give = lambda asked: (200, [])
    with pytest.raises(SchemaNotFoundError, match=f"^Schema {GUID} not found$"):
        registry_at(server).by_id(GUID)


def test_a_version_is_requested_once_and_the_latest_each_time(server: ScriptedRegistry) -> None:
    registry, wanted = registry_at(server), SchemaVersion("s", 3, KNOWN)
    for _ in range(2):
        assert registry.by_version("s", 3) == wanted
        assert registry.by_version("s") == wanted
        assert registry.by_version("s", -1) == wanted
    assert server.paths() == [
        "/subjects/s/versions/3",
        *["/subjects/s/versions/latest"] * 4,
    ]
    assert registry.belongs(7, "s")
    assert registry.get(7) == KNOWN


def test_find_and_register_are_requested_once(server: ScriptedRegistry) -> None:
    registry = registry_at(server, normalize_schemas="true")
    for _ in range(2):
        assert registry.find("s", "JSON", "{}") == SchemaVersion("s", 3, KNOWN)
        assert registry.register("s", "AVRO", '"int"') == KNOWN
    assert [(each.method, each.path, each.body) for each in server.requests] == [
        ("POST", "/subjects/s?normalize=true", {"schema": "{}", "schemaType": "JSON"}),
        ("POST", "/subjects/s/versions?normalize=true", {"schema": '"int"'}),
    ]
    registry.register("s", "AVRO", '"long"')
    assert len(server.requests) == 3
    assert registry.belongs(GUID, "s")


def test_what_a_registry_makes_of_a_text_is_what_is_given(server: ScriptedRegistry) -> None:
    """It answers `register` with the id alone."""
    registry = registry_at(server)
    assert registry.register("s", "AVRO", ' "int"').text == '"int"'
    assert server.paths() == ["/subjects/s/versions", "/schemas/ids/7?fetchMaxId=false&subject=s"]


def test_an_empty_text_is_no_schema(server: ScriptedRegistry) -> None:
    """To registries it means the latest one."""
    with pytest.raises(SchemaError, match=r"^the schema is empty$"):
        registry_at(server).register("s", "AVRO", " \n")
    assert server.requests == []


def test_names_are_encoded(server: ScriptedRegistry) -> None:
    with pytest.raises(SchemaNotFoundError):
        registry_at(server).by_version("a/b c:ü", 1)
    assert server.paths() == ["/subjects/a%2Fb%20c%3A%C3%BC/versions/1"]


def test_references_are_there_before_a_schema_is_registered(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    with pytest.raises(SchemaNotFoundError, match="/subjects/missing/versions/1 is not there"):
        registry.register("s", "AVRO", "x", [SchemaReference("n", "missing", 1)])
    registry.register("s", "AVRO", "x", [SchemaReference("n", "s", 3), SchemaReference("l", "s", -1)])
    assert server.paths()[1:4] == [
        "/subjects/s/versions/3",
        "/subjects/s/versions/latest",
        "/subjects/s/versions",
    ]
    with pytest.raises(SchemaNotFoundError, match=r"/subjects/:\.far:s/versions/3"):
        server.give = lambda asked: (404, {"error_code": 40401, "message": asked.path.replace("%3A", ":")})
        registry.register(":.far:s", "AVRO", "x", [SchemaReference("n", "s", 3)])


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 0])
def test_what_passes_is_requested_again(server: ScriptedRegistry, status: int, pauses: list[float]) -> None:
    left = [2]

    def fails_twice(asked: Requested) -> tuple[int, object]:
        left[0] -= 1
        return (status, {"error_code": status, "message": "later"}) if left[0] >= 0 else give(asked)

    server.give = fails_twice
    assert registry_at(server).by_id(7) == KNOWN
    assert len(server.requests) == 3
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 501])
def test_what_does_not_pass_is_not(server: ScriptedRegistry, status: int, pauses: list[float]) -> None:
    server.give = lambda asked: (status, {"error_code": status, "message": "no"})
    with pytest.raises(Exception, match="no"):
        registry_at(server).by_id(7)
    assert len(server.requests) == 1
    assert pauses == []


def test_pauses_are_bounded_and_a_registry_may_want_longer_ones(
    server: ScriptedRegistry, pauses: list[float]
) -> None:
    server.give = lambda asked: (503, None)
    registry = registry_at(server, max_retries="5", retries_wait_ms="1000", retries_max_wait_ms="5000")
    with pytest.raises(SchemaProviderError, match=r"^the schema registry at http://\S+ answers 503$"):
        registry.by_id(7)
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]
    pauses.clear()
    server.headers["Retry-After"] = "3"
    with pytest.raises(SchemaProviderError):
        registry.by_id(7)
    assert pauses == [3.0, 3.0, 4.0, 5.0, 5.0]
    pauses.clear()
    server.headers["Retry-After"] = "3000"
    with pytest.raises(SchemaProviderError):
        registry.by_id(7)
    assert pauses == [5.0] * 5


def test_another_address_is_tried_before_a_pause(server: ScriptedRegistry, pauses: list[float]) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with scripted_registry(lambda asked: (503, None)) as busy:
        registry = HttpRegistry({"schema.registry.url": f"{away},{busy.url},{server.url}"})
        assert registry.by_id(7) == KNOWN
        assert len(busy.requests) == 1
        # The one that has answered comes first from then on.
        registry.by_version("s", 3)
        assert len(busy.requests) == 1
    assert pauses == []
    assert registry.name == f"{away},{busy.url},{server.url}"


def test_what_is_no_registry_is_said(server: ScriptedRegistry) -> None:
    server.give = lambda asked: (200, b"<html>")
    registry = registry_at(server, max_retries="0")
    line = rf"^what answers at {server.url} is no schema registry: "
    with pytest.raises(SchemaProviderError, match=line):
        registry.by_id(7)
    for body in ([], {"id": 7}, {"schema": 1}, "x"):
        server.give = lambda asked, body=body: (200, body)  # type: ignore[misc]
        for call in (
            lambda: registry.by_id(7),
            lambda: registry.by_id(GUID),
            lambda: registry.by_version("s", 3),
            lambda: registry.find("s", "AVRO", "x"),
        ):
            with pytest.raises((SchemaProviderError, SchemaNotFoundError)):
                call()
    server.give = lambda asked: (200, {"id": "x"})
    with pytest.raises(SchemaProviderError, match=line):
        registry.register("s", "AVRO", "x")


def test_an_id_that_is_not_there_is_not_requested_again_for_a_time(
    server: ScriptedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    registry = registry_at(server, missing_id_cache_ttl_sec="5")
    for _ in range(3):
        with pytest.raises(SchemaNotFoundError, match="8"):
            registry.by_id(8)
    assert len(server.requests) == 1
    now[0] += 5
    with pytest.raises(SchemaNotFoundError):
        registry.by_id(8)
    assert len(server.requests) == 2
    each_time = registry_at(server)
    for _ in range(2):
        with pytest.raises(SchemaNotFoundError):
            each_time.by_id(8)
    assert len(server.requests) == 4


def test_so_many_are_remembered(server: ScriptedRegistry) -> None:
    server.give = lambda asked: (200, {"schema": asked.path})
    registry = registry_at(server, cache_capacity="3")
    for id in range(5):
        registry.by_id(id)
    assert [registry.get(id) is not None for id in range(5)] == [False, False, True, True, True]


def linked(names: dict[str, list[str]]) -> Any:
    """A registry whose subjects refer to others."""

    def answer(asked: Requested) -> tuple[int, object]:
        subject = asked.path.split("/")[2]
        references = [{"name": f"N{each}", "subject": each, "version": 1} for each in names[subject]]
        return 200, {
            "subject": subject,
            "version": 1,
            "id": 1 + list(names).index(subject),
            "schema": f"text {subject}",
            "schemaType": "COLUMNS",
            "references": references,
        }

    return answer


def test_references_are_a_tree(server: ScriptedRegistry) -> None:
    server.give = linked({"a": ["b", "c"], "b": ["c"], "c": []})
    registry = registry_at(server)
    schema = registry.by_version("a", 1).schema
    for _ in range(2):
        resolved = registry.resolved(schema, "a")
        assert {name: each.text for name, each in resolved.items()} == {"Nb": "text b", "Nc": "text c"}
        assert {name: each.text for name, each in resolved["Nb"].references.items()} == {"Nc": "text c"}
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "names",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["a"]},
        {f"s{number}": [f"s{number + 1}"] for number in range(40)} | {"s40": [], "a": ["s0"]},
        {"a": ["b"] * 900, "b": ["c"] * 900, "c": []},
    ],
    ids=["itself", "a circle", "deep", "a bomb"],
)
def test_a_tree_that_is_too_large_is_refused(server: ScriptedRegistry, names: dict[str, list[str]]) -> None:
    server.give = linked(names)
    registry = registry_at(server)
    schema = registry.by_version("a", 1).schema
    with pytest.raises(
        SchemaError, match="refers to more than 1000 others, or to more than 32 below each other"
    ):
        registry.resolved(schema, "a")


def test_a_schema_is_parsed_with_what_it_refers_to(server: ScriptedRegistry) -> None:
    server.give = linked({"a": ["b"], "b": []})
    formats = {"COLUMNS": Columns()}
    registry = HttpRegistry({"schema.registry.url": server.url}, formats=formats)  # type: ignore[arg-type]
    found = registry.by_version("a", 1)
    assert len(server.requests) == 2
    with pytest.raises(SchemaError):
        registry.parsed(found.schema.id)  # that is no schema of columns, and nothing more is requested
    assert len(server.requests) == 2
    assert registry.parsed(99) is None


def test_without_formats_nothing_is_parsed(server: ScriptedRegistry) -> None:
    registry = registry_at(server)
    registry.by_id(7)
    with pytest.raises(SchemaError, match=r"^there is no schema format AVRO$"):
        registry.parsed(7)


def test_it_goes_to_other_processes_without_what_it_has(server: ScriptedRegistry) -> None:
    registry = registry_at(server, basic_auth_user_info="ada:sesame")
    registry.by_id(7)
    other = pickle.loads(pickle.dumps(registry))
    assert other.settings == registry.settings
    assert other.get(7) is None
    assert other.by_id(7) == KNOWN
    registry.close()
    assert registry.by_version("s", 3).schema == KNOWN


def test_threads_share_it(server: ScriptedRegistry) -> None:
    server.give = lambda asked: (200, {"schema": asked.path})
    registry, failed = registry_at(server, cache_capacity="20"), list[Exception]()

    def read() -> None:
        try:
            for id in range(100):
                assert registry.by_id(id % 30).id == id % 30
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []


def test_properties_that_cannot_be_used() -> None:
    with pytest.raises(PluginError, match=r"schema\.registry\.url is not given"):
        HttpRegistry({})
    assert registry_module.HttpRegistry is HttpRegistry
