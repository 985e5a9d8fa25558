"""The page of streams in the OpenAPI document; their requests are served below Quart, by `Front`."""

from typing import Any

from quart_trio import QuartTrio

from leafcuttr_http import openapi
from leafcuttr_http.parts import Part
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.schemas.types import TYPES
from leafcuttr_http.streams.events import FORMATS
from leafcuttr_http.streams.sse import EVENTS


def attach(app: QuartTrio, proxy: Proxy) -> None:
    return


def paths() -> dict[str, Any]:
    def query(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "description": text, "schema": schema}

    text = openapi.TEXT
    parameters = [
        openapi.TOPIC,
        query("from", "Begin with the first record, or with the next one", {"enum": ["earliest", "latest"]}),
        query("offset", "Begin with this offset: one for all partitions, or `partition:offset,...`", text),
        query("time", "Begin with the first record of this time or later: milliseconds, or a date", text),
        query("key", "Only records with this key, or one of these", {"type": "array", "items": text}),
        query("format", "How keys and values are written", {"enum": [*FORMATS, *TYPES]}),
        query("last_event_id", "As Last-Event-ID, for clients that cannot set headers", text),
        {"name": "last-event-id", "in": "header", "description": "Go on behind this event", "schema": text},
    ]
    operation = {
        "summary": "The records of a topic as server-sent events; with `Upgrade: websocket` as a WebSocket",
        "parameters": parameters,
        "responses": {
            "200": {"description": "Events, without end", "content": {EVENTS: {"schema": text}}},
            **{
                code: answer
                for code, answer in openapi.answers(None, (404, 422, 503)).items()
                if code != "200"
            },
        },
    }
    return {"/topics/{topic}/stream": {"get": operation}}


PART = Part(attach, paths)
