"""A schema registry in a broker of its own process, and what asks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from support.broker_process import BrokerProcess, running_broker
from support.waiting import until

TESTS = str(Path(__file__).parents[1])
SETTINGS = {
    "lc.schema.registry.enable": "true",
    "lc.schema.registry.host": "127.0.0.1",
    "lc.schema.registry.port": "0",
}
V1 = "application/vnd.schemaregistry.v1+json"
PLUGIN = """
import sys
sys.path.append({tests!r})
from leafcuttr_sdk import Plugin, ProduceValidatorSpec
PLUGIN = Plugin("columns", 1, "formats of schemas for tests")

def leafcuttr_register_schema_formats():
    from support.column_schemas import Columns
    yield Columns()

def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("refuse-all", "takes nothing", RefuseAll)

class RefuseAll:
    def __init__(self, context):
        pass

    def validate(self, record):
        return "nothing is taken"

    def close(self):
        pass
"""


class Answer(NamedTuple):
    status: int
    json: Any
    text: str
    headers: httpx.Headers

    @property
    def code(self) -> int:
        code: int = self.json["error_code"]
        return code


class Asked:
    """What an URL answers: `ask("GET", "/subjects")`."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        self.url = url
        self._client = client

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        if body is not None:
            content = json.dumps(body).encode()
        given = {"content-type": V1} if content is not None else {}
        answer = self._client.request(
            method, f"{self.url}{path}", content=content, headers={**given, **(headers or {})}
        )
        try:
            found = answer.json()
        except ValueError:
            found = None
        return Answer(answer.status_code, found, answer.text, answer.headers)

    def get(self, path: str, status: int = 200) -> Any:
        answer = self("GET", path)
        assert answer.status == status, answer
        return answer.json

    def register(self, subject: str, schema: str, status: int = 200, **more: Any) -> Any:
        """The answer; of a schema of columns unless `schemaType` says otherwise. Tried again where a machine under
        load lets the time pass that a schema may take to be read."""
        body = {"schema": schema, "schemaType": "COLUMNS", **more}

        def attempt() -> Answer | None:
            answer = self("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
            return None if status == 200 and "it took longer than" in answer.text else answer

        answer = until(attempt, f"a schema of {subject}")
        assert answer.status == status, answer
        return answer.json


class RegistryProcess(NamedTuple):
    ask: Asked
    broker: BrokerProcess

    @property
    def url(self) -> str:
        return self.ask.url


def plugin_settings(folder: Path) -> dict[str, str]:
    """Those that bring the formats of tests."""
    plugins = folder / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    (plugins / "columns.py").write_text(PLUGIN.format(tests=TESTS))
    return {"lc.plugins.path": str(plugins)}


@contextmanager
def running_registry(folder: Path, settings: dict[str, str] | None = None) -> Iterator[RegistryProcess]:
    """A registry on a free port until the end of the context, whose stop must be clean."""
    given = {**SETTINGS, **plugin_settings(folder), **(settings or {})}
    with running_broker(folder / "broker", given) as process, httpx.Client(timeout=60) as client:
        address = process.about["plugin_listeners"]["lc.schema.registry"]
        yield RegistryProcess(Asked(f"http://{address}", client), process)
