"""Media types, bodies and their limits; paths that are none."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from leafcuttr_registry.api import bodies
from leafcuttr_registry.api.bodies import Parsed, parse_within
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.checks.turns import DEADLINE_S, PATIENCE, of_request
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.workers import WorkerDeadlineError, WorkerError
from support.registry import V1, Asked

BODY = json.dumps({"schema": "a", "schemaType": "COLUMNS"}).encode()


@pytest.mark.parametrize(
    "kind",
    [
        V1,
        "application/vnd.schemaregistry+json",
        "application/json",
        "application/octet-stream",
        "application/json; charset=utf-8",
        "Application/JSON",
    ],
)
def test_types_that_bodies_have(ask: Asked, kind: str) -> None:
    assert ask("POST", "/subjects/e-a/versions", content=BODY, headers={"content-type": kind}).status == 200


def test_no_type_at_all(ask: Asked) -> None:
    import httpx

    answer = httpx.request("POST", f"{ask.url}/subjects/e-a/versions", content=BODY)
    assert answer.request.headers.get("content-type") is None and answer.status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/json; charset=latin-1"])
def test_other_types_are_415(ask: Asked, kind: str) -> None:
    for path in ("/subjects/e-a/versions", "/subjects/e-a", "/compatibility/subjects/e-a/versions"):
        assert ask("POST", path, content=BODY, headers={"content-type": kind}).code == 415
    assert ask("PUT", "/config", content=b"{}", headers={"content-type": kind}).code == 415
    assert ask("PUT", "/mode", content=b"{}", headers={"content-type": kind}).code == 415
    assert ask("GET", "/subjects", headers={"content-type": kind}).status == 200


def test_accept(ask: Asked) -> None:
    for accept in ("application/json", "application/vnd.schemaregistry+json", V1):
        assert ask("GET", "/subjects", headers={"accept": accept}).headers["content-type"] == accept
    weighted = f"{V1}; q=0.9, application/json; q=0.5"
    assert ask("GET", "/subjects", headers={"accept": weighted}).headers["content-type"] == V1
    assert ask("GET", "/subjects", headers={"accept": "text/html"}).code == 406
    assert (
        ask("GET", "/nothing", headers={"accept": "application/json"}).headers["content-type"]
        == "application/json"
    )


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", 400),
        (b"\xff\xfe\xfd", 400),
        (b'{"schema":"\xff"}', 400),
        (b'{"schema":"\\ud800"}', 400),
        (b"[" * 100_000, 400),
        (b"[]", 400),
        (b"5", 400),
        (b"null", 422),
        (b"", 422),
        (b'{"schema":"' + b"a" * 5_000_000 + b'"}', 413),
        (b'{"schema":"' + b"1" * 1_000_000 + b'"}', 42201),
    ],
)
def test_bodies(ask: Asked, content: bytes, code: int) -> None:
    answer = ask("POST", "/subjects/e-b/versions", content=content)
    assert answer.code == code, answer.text[:300]


def test_of_two_members_with_one_name_the_last_counts_as_in_jackson(ask: Asked) -> None:
    content = b'{"schema":"1","schema":"ok","schemaType":"COLUMNS"}'
    assert ask("POST", "/subjects/e-c/versions", content=content).json["schema"] == "ok"


def test_paths_that_are_none(ask: Asked) -> None:
    for path in ("/nothing", "/subjects/a/none", "/schemas/ids", "/contexts/c/none"):
        answer = ask("GET", path)
        assert (answer.status, answer.code) == (404, 404)
    answer = ask("PATCH", "/config")
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PUT")


def test_others_are_served_while_a_schema_takes_too_long(ask: Asked) -> None:
    import time

    answers = []
    body = {"schema": "slow", "schemaType": "COLUMNS"}
    slow = threading.Thread(
        target=lambda: answers.append(Asked(ask.url, _client())("POST", "/subjects/e-s/versions", body))
    )
    began = time.monotonic()
    slow.start()
    asked = 0
    while slow.is_alive():
        assert ask("GET", "/subjects").status == 200
        asked += 1
    assert time.monotonic() - began < 30 and asked > 10
    (answer,) = answers
    assert answer.code == 42201 and "too complex" in answer.json["message"]


def _client() -> Any:
    import httpx

    return httpx.Client(timeout=60)


def test_a_long_list_lets_others_have_their_turn() -> None:
    """As `/schemas` of a large registry."""
    turns: list[int] = []
    given: list[bytes] = []

    class Exchange(RegistryExchange):
        def __init__(self) -> None:
            pass

        async def give_bytes(self, body: bytes, status: int = 200) -> None:
            given.append(body)

    async def other() -> None:
        while not given:
            turns.append(1)
            await trio.lowlevel.checkpoint()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await trio.lowlevel.checkpoint()
            await Exchange().give_all({"schema": "é" * 100_000} for _ in range(50))

    trio.run(run)
    assert json.loads(given[0]) == [{"schema": "é" * 100_000}] * 50
    assert len(turns) > 10


def test_a_body_is_limited_by_the_processor_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_within(10.0, b'{"a":1}')
    assert found.value == {"a": 1} and 0 < found.used_s < 10
    waited = threading.Event()

    def waits(data: bytes) -> bytes:
        waited.wait(0.1)
        return data

    monkeypatch.setattr(bodies, "parse", waits)
    assert parse_within(0.05, b"x").value == b"x"

    def works(data: bytes) -> None:
        while data:
            pass

    monkeypatch.setattr(bodies, "parse", works)
    with pytest.raises(WorkerDeadlineError, match=r"^it used more than 0\.02 s of the processor$"):
        parse_within(0.02, b"x")


@pytest.mark.parametrize("error", [None, WorkerDeadlineError("too long")])
async def test_a_large_body_takes_from_the_time_of_its_request(error: WorkerError | None) -> None:
    body = b'{"schema":"' + b"a" * 300_000 + b'"}'

    async def run_in_worker(*given: object, **limits: float) -> Parsed:
        assert given == (parse_within, DEADLINE_S, body)
        assert limits["deadline_s"] == DEADLINE_S * PATIENCE
        if error is not None:
            raise error
        return Parsed({"schema": "a"}, 0.75)

    class Exchange(RegistryExchange):
        def __init__(self) -> None:
            self.serving: Any = SimpleNamespace(broker=SimpleNamespace(run_in_worker=run_in_worker))

        def check_type(self) -> None:
            pass

        async def read(self) -> bytes:
            return body

    if error is not None:
        with pytest.raises(ApiError) as caught:
            await Exchange().body_json()
        assert caught.value.code == 413
        return
    assert await Exchange().body_json() == {"schema": "a"}
    limit = of_request()
    assert limit is not None and (limit.worked_s, limit.waited_s) == (0.75, 0.0)
